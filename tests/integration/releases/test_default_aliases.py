"""The alias that every adapter with an approved version has."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from registry.errors import InvalidInput
from registry.models import AuditRecord, Version
from registry.services.approvals import approve_version
from registry.states import Role, VersionState
from releases.errors import TargetNotServable
from releases.models import Alias, AliasRevision, AliasSplit
from releases.ports import PORTS
from releases.services.aliases import roll_back_alias, set_alias
from releases.services.splits import SplitWish, set_split
from tests.factories.registry import make_actor, make_adapter, make_member, make_tenant, make_version
from tests.factories.releases import commit, make_default, point_alias

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent", "signer")]


def approve(version: Version) -> Version:
    reviewer = make_member(version.adapter.tenant, Role.REVIEWER)
    return approve_version(actor=reviewer, version=version, digest=version.root_digest)


def test_the_first_approval_makes_the_default_with_its_history_and_one_record() -> None:
    version = make_version(state=VersionState.CANDIDATE)
    line = version.adapter
    reviewer = make_member(line.tenant, Role.REVIEWER)
    approve_version(actor=reviewer, version=version, digest=version.root_digest)
    alias = Alias.objects.get(tenant=line.tenant)
    assert (alias.name, alias.version, alias.adapter, alias.revision) == (f"{line.name}.default", version, line, 1)
    row = AliasRevision.objects.get(alias=alias)
    assert (row.kind, row.actor_id, row.reason) == ("set", reviewer.id, "The first approved version.")
    actions = list(AuditRecord.objects.filter(chain=line.tenant.name).order_by("seq").values_list("action", flat=True))
    assert actions[-2:] == ["adapter:version:approve", "tenant:alias:set"]
    commit()


def test_a_later_approval_leaves_the_default_where_it_is() -> None:
    first = approve(make_version(state=VersionState.CANDIDATE))
    approve(make_version(adapter=first.adapter, state=VersionState.CANDIDATE))
    alias = Alias.objects.get(tenant=first.adapter.tenant)
    assert (alias.version, alias.revision) == (first, 1)


def test_an_approval_that_is_refused_makes_no_default() -> None:
    version = make_version(state=VersionState.CANDIDATE)
    with pytest.raises(Exception, match="digest"):
        approve_version(actor=make_member(version.adapter.tenant, Role.REVIEWER), version=version, digest="0" * 64)
    assert not Alias.objects.exists()


def test_each_adapter_of_a_tenant_has_its_own() -> None:
    tenant = make_tenant()
    lines = [make_adapter(tenant=tenant) for _number in range(2)]
    for line in lines:
        approve(make_version(adapter=line, state=VersionState.CANDIDATE))
    names = set(Alias.objects.filter(tenant=tenant).values_list("name", flat=True))
    assert names == {f"{line.name}.default" for line in lines}


def test_the_longest_name_of_an_adapter_has_a_default_too() -> None:
    version = make_version(adapter=make_adapter(name="a" * 63), state=VersionState.CANDIDATE)
    approve(version)
    assert Alias.objects.get(tenant=version.adapter.tenant).name == f"{'a' * 63}.default"


def test_nothing_is_warmed_for_an_approval(
    monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(PORTS, "prewarm", lambda **facts: asked.append(facts))
    with django_capture_on_commit_callbacks(execute=True):
        approve(make_version(state=VersionState.CANDIDATE))
    assert asked == []


def test_a_default_is_moved_and_rolled_back_as_other_aliases_are() -> None:
    first = make_version()
    alias = make_default(first)
    second = make_version(adapter=first.adapter)
    assert point_alias(name=alias.name, version=second).revision == 2
    assert roll_back_alias(actor=make_actor(), alias=alias).version == first


def test_a_default_stands_for_its_own_adapter_alone() -> None:
    alias = make_default(make_version())
    other = make_version(adapter=make_adapter(tenant=alias.tenant))
    with pytest.raises(TargetNotServable, match="its own adapter"):
        point_alias(name=alias.name, version=other)


def test_a_default_is_split_between_versions_of_its_own_adapter_alone() -> None:
    alias = make_default(make_version())
    own = make_version(adapter=alias.adapter)
    other = make_version(adapter=make_adapter(tenant=alias.tenant, base_model=alias.adapter.base_model))
    for field, wish in {
        "candidate": SplitWish(candidate=other),
        "shadow": SplitWish(candidate=own, shadow=other),
    }.items():
        with pytest.raises(TargetNotServable, match="its own adapter") as caught:
            set_split(actor=make_actor(), alias=alias, wish=wish)
        assert caught.value.field == field
    split = set_split(actor=make_actor(), alias=alias, wish=SplitWish(candidate=own, shadow=own))
    for field in ("candidate_id", "shadow_id"):
        with pytest.raises(IntegrityError, match="stands for its versions"), transaction.atomic():
            AliasSplit.objects.filter(pk=split.pk).update(**{field: other.pk})


def test_nobody_makes_a_default_by_hand() -> None:
    version = make_version(state=VersionState.CANDIDATE)
    line = version.adapter
    with pytest.raises(TargetNotServable, match="first approved version"):
        set_alias(actor=make_actor(), tenant=line.tenant, name=f"{line.name}.default", adapter=line, version=version)


@pytest.mark.parametrize("name", ["x.y", ".default", "x.default.default", "x.Default", "X.default"])
def test_other_names_with_a_dot_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        point_alias(name=name, version=make_version())
