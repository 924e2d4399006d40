import pytest

from registry.models import AuditRecord
from registry.states import Role
from releases.models import ReleaseTemplate
from releases.services.templates import write_template
from tests.concurrency.racing import errors_in, race
from tests.factories.registry import make_member, make_tenant

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("attempt", range(3))
def test_editions_that_are_written_together_all_count(attempt: int) -> None:
    tenant = make_tenant()
    actor = make_member(tenant, Role.RELEASE_MANAGER)

    def writing(approvals: int) -> ReleaseTemplate:
        return write_template(actor=actor, tenant=tenant, name="careful", text=f"approvals: {approvals}")

    results = race(*(lambda number=number: writing(number) for number in (1, 2, 3, 3)))
    assert errors_in(results) == []
    numbers = list(ReleaseTemplate.objects.order_by("number").values_list("number", flat=True))
    assert numbers in ([1, 2, 3], [1, 2, 3, 4])
    assert AuditRecord.objects.filter(action="tenant:release_template:write").count() == len(numbers)
