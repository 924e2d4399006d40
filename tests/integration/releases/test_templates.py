import pytest

from registry.actors import Actor
from registry.errors import InvalidInput, NotFound, PermissionDenied
from registry.models import AuditRecord, Tenant
from registry.naming import NamingError
from registry.states import Role
from releases.models import ReleaseTemplate
from releases.plan.document import PlanDocument
from releases.plan.parse import plan_of
from releases.services import templates
from releases.services.templates import write_template
from releases.templates import get_release_template, list_release_templates, template_in_use
from tests.factories.registry import make_actor, make_member, make_person, make_tenant

pytestmark = pytest.mark.django_db
TWO = "approvals: 2 # careful\n"


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant(name="acme")


@pytest.fixture
def manager(tenant: Tenant) -> Actor:
    return make_member(tenant, Role.RELEASE_MANAGER)


def write(actor: Actor, tenant: Tenant, text: str = TWO, *, name: str = "careful") -> ReleaseTemplate:
    return write_template(actor=actor, tenant=tenant, name=name, text=text)


def test_a_template_keeps_every_edition_and_the_newest_is_in_use(tenant: Tenant, manager: Actor) -> None:
    first, second = write(manager, tenant), write(manager, tenant, "approvals: 3")
    assert (first.number, second.number) == (1, 2)
    assert plan_of(second.document).approvals == 3
    assert template_in_use(tenant=tenant, name="careful") == second
    found = get_release_template(actor=manager, tenant="acme", name="careful", number=1)
    assert (found.text, found.written_by.email) == (TWO, manager.id)
    records = AuditRecord.objects.filter(action="tenant:release_template:write").order_by("seq")
    assert [(record.before, record.after["number"]) for record in records if record.after] == [
        (None, 1),
        ({"number": 1, "digest": first.digest}, 2),
    ]


def test_writing_the_same_again_is_quiet(tenant: Tenant, manager: Actor) -> None:
    first, again = write(manager, tenant), write(manager, tenant)
    assert again == first
    assert AuditRecord.objects.filter(action="tenant:release_template:write").count() == 1


def test_what_was_before_the_newest_may_be_written_again(tenant: Tenant, manager: Actor) -> None:
    texts = (TWO, "approvals: 3", TWO)
    assert [write(manager, tenant, text).number for text in texts] == [1, 2, 3]


def test_who_has_written_none_has_the_built_in_one(tenant: Tenant, manager: Actor) -> None:
    (built_in,) = list_release_templates(actor=manager, tenant="acme")
    assert (built_in.name, built_in.number) == ("default", 0)
    assert plan_of(built_in.document) == PlanDocument()
    assert template_in_use(tenant=tenant, name="careful") is None
    assert not ReleaseTemplate.objects.exists()


def test_a_tenants_own_default_stands_before_the_built_in_one(tenant: Tenant, manager: Actor) -> None:
    own = write(manager, tenant, name="default")
    assert list_release_templates(actor=manager, tenant="acme") == [own]
    assert template_in_use(tenant=tenant, name="default") == own
    assert get_release_template(actor=manager, tenant="acme", name="default", number=0).number == 0


def test_templates_of_others_are_not_seen(tenant: Tenant, manager: Actor) -> None:
    other = make_tenant(name="other")
    write(make_member(other, Role.RELEASE_MANAGER), other)
    assert [template.name for template in list_release_templates(actor=manager, tenant="acme")] == ["default"]
    for number in (None, 1):
        with pytest.raises(NotFound, match="no release template named careful"):
            get_release_template(actor=manager, tenant="acme", name="careful", number=number)
    with pytest.raises(NotFound):
        list_release_templates(actor=manager, tenant="other")
    with pytest.raises(NotFound):
        write(manager, other)


@pytest.mark.parametrize(
    ("text", "field"),
    [("approvals: many", "approvals"), ("- 1", "text"), ("canary: [{}]", "canary[0]"), (r'"\U00110000"', "text")],
)
def test_a_text_that_is_no_plan_is_refused_with_its_path(tenant: Tenant, manager: Actor, text: str, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        write(manager, tenant, text)
    assert refused.value.field == field
    assert not ReleaseTemplate.objects.exists()


def test_a_name_is_one_that_others_have_as_well(tenant: Tenant, manager: Actor) -> None:
    with pytest.raises(NamingError):
        write(manager, tenant, name="Not a name")


def test_a_tenant_has_so_many_templates_and_no_more(
    tenant: Tenant, manager: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(templates, "MOST_TEMPLATES", 2)
    write(manager, tenant, name="one")
    write(manager, tenant, name="two")
    with pytest.raises(InvalidInput, match="2 release templates already"):
        write(manager, tenant, name="three")
    assert write(manager, tenant, "approvals: 3", name="two").number == 2


@pytest.mark.parametrize("role", list(Role))
def test_release_managers_alone_write_templates_and_all_members_read_them(tenant: Tenant, role: Role) -> None:
    actor = make_member(tenant, role)
    if role is Role.RELEASE_MANAGER:
        write(actor, tenant)
    else:
        with pytest.raises(PermissionDenied):
            write(actor, tenant)
    assert list_release_templates(actor=actor, tenant="acme")


def test_the_system_writes_no_template_and_neither_does_an_admin(tenant: Tenant) -> None:
    for actor in (make_actor(), make_actor(make_person(is_platform_admin=True))):
        with pytest.raises(PermissionDenied):
            write(actor, tenant)
