"""Cache policies that are proposed and approved at the same moment."""

import pytest

from cachecontrol.models import CachePolicy
from cachecontrol.policies import active_policy
from cachecontrol.services.policies import approve_policy, roll_back_policy
from cachecontrol.states import PolicyState
from registry.errors import StaleState
from tests.concurrency.racing import errors_in, race
from tests.factories.cachecontrol import make_policy
from tests.factories.registry import make_actor, make_base_revision, make_person

pytestmark = pytest.mark.django_db(transaction=True)


def test_of_two_first_proposals_at_once_one_comes_again_and_both_have_numbers_of_their_own() -> None:
    base = make_base_revision().base_model
    actors = [make_actor(make_person(is_platform_admin=True)) for _ in range(3)]
    acts = [
        lambda actor=actor, limit=limit: make_policy(
            base_model=base, more=f"loading: {{queue_limit: {limit}}}", by=actor
        )
        for limit, actor in enumerate(actors, 1)
    ]
    results = race(*acts)
    errors = errors_in(results)
    assert all(isinstance(error, StaleState) for error in errors)
    assert len(errors) < len(results)
    numbers = list(CachePolicy.objects.order_by("number").values_list("number", flat=True))
    assert numbers == list(range(1, len(results) - len(errors) + 1))


def test_policies_that_are_approved_and_rolled_back_at_once_leave_exactly_one_in_force() -> None:
    base = make_base_revision().base_model
    ada, ben = (make_actor(make_person(is_platform_admin=True)) for _ in range(2))
    first, *rest = (make_policy(base_model=base, more=f"loading: {{queue_limit: {n}}}", by=ada) for n in range(1, 4))
    approve_policy(actor=ben, policy=first, digest=first.digest)
    acts = [lambda policy=policy: approve_policy(actor=ben, policy=policy, digest=policy.digest) for policy in rest]
    results = race(*acts, lambda: roll_back_policy(actor=ben, base_model=base, to=1))
    assert errors_in(results) == []
    active = CachePolicy.objects.get(base_model=base, state=PolicyState.ACTIVE.value)
    assert active_policy(base.pk).number == active.number
    assert CachePolicy.objects.filter(state=PolicyState.SUPERSEDED.value).count() == 2
