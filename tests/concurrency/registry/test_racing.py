import itertools
from typing import Any

import pytest

from registry.actors import system_actor
from registry.audit import append_record
from registry.errors import VersionExists, WrongState
from registry.models import Approval, AuditRecord, Signature, Version
from registry.services.approvals import approve_version, decline_version
from registry.services.uploads import start_upload
from registry.services.withdrawals import revoke_version
from registry.signing.manifest import SignedFile
from registry.states import Role, VersionState
from tests.concurrency.racing import errors_in, race
from tests.factories.registry import digest_for, make_adapter, make_base_revision, make_member, make_version

pytestmark = pytest.mark.django_db(transaction=True)


def files(seed: str) -> list[SignedFile]:
    return [
        SignedFile(path="adapter_config.json", size=2, sha256=digest_for(f"config {seed}")),
        SignedFile(path="adapter_model.safetensors", size=9, sha256=digest_for(seed)),
    ]


@pytest.mark.parametrize("attempt", range(5))
def test_two_uploads_of_one_name_make_one_version(store: Any, sent: list[Any], attempt: int) -> None:
    adapter = make_adapter()
    make_base_revision(base_model=adapter.base_model, label="r1")
    ana, bo = make_member(adapter.tenant, Role.UPLOADER), make_member(adapter.tenant, Role.UPLOADER)

    def upload(actor: Any, seed: str) -> Any:
        return lambda: (
            start_upload(actor=actor, adapter=adapter, base_revision="r1", files=files(seed), name="v1").version
        )

    results = race(upload(ana, "a"), upload(bo, "b"))
    assert [type(error) for error in errors_in(results)] == [VersionExists]
    assert Version.objects.filter(adapter=adapter).count() == 1


def test_uploads_at_once_get_different_names(store: Any, sent: list[Any]) -> None:
    adapter = make_adapter()
    make_base_revision(base_model=adapter.base_model, label="r1")
    ana = make_member(adapter.tenant, Role.UPLOADER)
    acts = [
        lambda seed=seed: start_upload(actor=ana, adapter=adapter, base_revision="r1", files=files(str(seed)))
        for seed in range(6)
    ]
    assert errors_in(race(*acts)) == []
    counters = sorted(int(version.name.rpartition(".")[2]) for version in Version.objects.filter(adapter=adapter))
    assert counters == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("attempt", range(5))
def test_one_reviewer_approving_twice_at_once_approves_and_signs_once(
    signer: Any, sent: list[Any], attempt: int
) -> None:
    version = make_version(state=VersionState.CANDIDATE)
    ben = make_member(version.adapter.tenant, Role.REVIEWER)

    def approve() -> Version:
        return approve_version(actor=ben, version=version, digest=version.root_digest)

    assert errors_in(race(approve, approve)) == []
    assert Approval.objects.filter(version=version).count() == 1
    assert Signature.objects.filter(version=version).count() == 1
    assert AuditRecord.objects.filter(action="adapter:version:approve").count() == 1


@pytest.mark.parametrize("attempt", range(5))
def test_approving_and_declining_at_once_has_one_winner(signer: Any, sent: list[Any], attempt: int) -> None:
    version = make_version(state=VersionState.CANDIDATE)
    ben, cora = (make_member(version.adapter.tenant, Role.REVIEWER) for _ in range(2))
    results = race(
        lambda: approve_version(actor=ben, version=version, digest=version.root_digest),
        lambda: decline_version(actor=cora, version=version, reason="no"),
    )
    assert [type(error) for error in errors_in(results)] == [WrongState]
    version.refresh_from_db()
    decided = version.approvals.get().decision
    assert (version.state, decided) in {("approved", "approved"), ("rejected", "declined")}


def test_approving_and_revoking_at_once_never_ends_approved_without_a_signature(signer: Any, sent: list[Any]) -> None:
    version = make_version(state=VersionState.CANDIDATE)
    ben = make_member(version.adapter.tenant, Role.REVIEWER)
    race(
        lambda: approve_version(actor=ben, version=version, digest=version.root_digest),
        lambda: revoke_version(actor=ben, version=version, reason="leak"),
    )
    version.refresh_from_db()
    assert version.state == VersionState.REVOKED


def test_eight_writers_leave_one_contiguous_chain() -> None:
    def write() -> None:
        for _ in range(25):
            append_record(
                actor=system_actor("test"),
                chain="acme",
                action="tenant:thing:do",
                object_={"kind": "thing", "id": "1", "name": "thing"},
            )

    assert errors_in(race(*[write] * 8)) == []
    records = list(AuditRecord.objects.filter(chain="acme").order_by("seq"))
    assert [record.seq for record in records] == list(range(1, 201))
    assert all(later.prev_hash == earlier.hash for earlier, later in itertools.pairwise(records))
