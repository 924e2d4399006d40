"""Signed checkpoints of the audit chains: made when due, kept in the store, never signed over what was changed."""

from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest
from django.db import connection
from django.utils import timezone

from registry.actors import system_actor
from registry.audit import append_record
from registry.errors import AuditBroken, PermissionDenied
from registry.models import AuditCheck, AuditCheckpoint, AuditRecord
from registry.services.audit import checkpoints as service
from registry.services.audit.checkpoints import chains_due, make_checkpoint, read_checkpoint
from registry.services.audit.checks import begin_check
from registry.services.keys import revoke_signing_key
from registry.services.stores import checkpoint_store
from registry.signing.checkpoints import open_checkpoint
from registry.signing.keys import TrustedKey, TrustedKeys
from registry.signing.local_key import LocalKeySigner, generate_key_file
from registry.states import Scope
from registry.stores.checkpoints import KeptCheckpoint
from registry.stores.errors import StoreUnavailable
from tests.factories.registry import make_actor, make_person, make_tenant
from workers.jobs import audit as job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store", "signer")]
SYSTEM = system_actor("test")


def grow(chain: str = "acme", count: int = 1) -> None:
    for number in range(count):
        append_record(actor=SYSTEM, chain=chain, action="tenant:thing:do", object_={"kind": "thing", "id": str(number)})


@pytest.fixture
def tenant() -> Any:
    return make_tenant(name="acme")


def checkpoint(chain: str = "acme") -> AuditCheckpoint:
    made = make_checkpoint(actor=SYSTEM, chain=chain)
    assert made is not None
    return made


def tamper(sql: str) -> None:
    """As somebody would who owns the database: the guard is switched off first."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE registry_auditrecord DISABLE TRIGGER USER")
        cursor.execute(sql)
        cursor.execute("ALTER TABLE registry_auditrecord ENABLE ALWAYS TRIGGER audit_no_update_or_delete")
        cursor.execute("ALTER TABLE registry_auditrecord ENABLE ALWAYS TRIGGER audit_no_truncate")


def killed(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def away(*_: object) -> NoReturn:
    raise StoreUnavailable("away")


def keys_of(signer: LocalKeySigner) -> TrustedKeys:
    return TrustedKeys([TrustedKey(signer._public_key)])


def test_a_checkpoint_says_where_the_chain_stands_and_is_signed(signer: LocalKeySigner, tenant: Any) -> None:
    grow(count=3)
    made = checkpoint()
    said = open_checkpoint(read_checkpoint(checkpoint=made), keys_of(signer))
    hashes = list(AuditRecord.objects.filter(chain="acme").order_by("seq").values_list("hash", flat=True))
    assert (said.chain, said.seq, said.head, said.first) == ("acme", 3, hashes[-1], hashes[0])
    assert said.previous == ""
    assert made.object_key.startswith("audit/acme/0000000000000003-")


def test_each_names_the_one_before(signer: LocalKeySigner, tenant: Any) -> None:
    grow()
    first = checkpoint()
    grow()
    said = open_checkpoint(read_checkpoint(checkpoint=checkpoint()), keys_of(signer))
    assert said.previous == first.sha256


def test_a_chain_that_has_not_grown_gets_no_second_one(tenant: Any) -> None:
    grow()
    assert checkpoint() == checkpoint()
    assert make_checkpoint(actor=SYSTEM, chain="globex") is None


def test_chains_are_due_when_they_have_grown_and_the_last_one_is_old(settings: Any, tenant: Any) -> None:
    assert chains_due() == []
    grow()
    assert chains_due() == ["acme"]
    checkpoint()
    checkpoint("platform")
    grow()
    assert chains_due() == []
    settings.AUDIT_CHECKPOINT_S = 0
    assert chains_due() == ["acme"]


def test_only_the_platform_makes_them() -> None:
    with pytest.raises(PermissionDenied):
        make_checkpoint(actor=make_actor(make_person(), scopes=Scope), chain="acme")


def test_a_run_killed_between_store_and_database_is_taken_up_by_the_next(
    tenant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(count=2)
    with monkeypatch.context() as patch:
        patch.setattr(service, "_remember", killed)
        with pytest.raises(KeyboardInterrupt):
            checkpoint()
    assert not AuditCheckpoint.objects.filter(chain="acme").exists()
    grow()
    checkpoint()
    assert list(AuditCheckpoint.objects.filter(chain="acme").order_by("seq").values_list("seq", flat=True)) == [2, 3]


def test_two_at_once_make_one(tenant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    grow()
    put = type(checkpoint_store()).put

    def put_second(self: Any, key: str, body: bytes) -> KeptCheckpoint:
        put(self, key, body)
        return put(self, key, body)

    monkeypatch.setattr(type(checkpoint_store()), "put", put_second)
    checkpoint()
    assert AuditCheckpoint.objects.filter(chain="acme").count() == 1


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("UPDATE registry_auditrecord SET payload = payload || ' ' WHERE seq = 4", "at record 4"),
        ("DELETE FROM registry_auditrecord WHERE seq = 4", "at record 4"),
        ("UPDATE registry_auditrecord SET hash = repeat('a', 64) WHERE seq = 3", "Record 3 .* not the one"),
        ("DELETE FROM registry_auditrecord WHERE seq > 2", "had 3 records"),
        ("TRUNCATE registry_auditrecord", "had 3 records"),
    ],
)
def test_what_was_changed_since_is_not_signed_over(tenant: Any, sql: str, told: str) -> None:
    grow(count=3)
    checkpoint()
    grow(count=2)
    tamper(sql)
    with pytest.raises(AuditBroken, match=told):
        checkpoint()
    assert AuditCheckpoint.objects.filter(chain="acme").count() == 1


def test_a_database_set_back_is_found_by_what_the_store_has(tenant: Any) -> None:
    grow(count=3)
    checkpoint()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE registry_auditcheckpoint DISABLE TRIGGER USER")
        cursor.execute("DELETE FROM registry_auditcheckpoint")
        cursor.execute("ALTER TABLE registry_auditcheckpoint ENABLE ALWAYS TRIGGER audit_checkpoint_no_change")
    tamper("TRUNCATE registry_auditrecord")
    grow(count=4)
    with pytest.raises(AuditBroken, match="contradicts"):
        checkpoint()


def test_what_nobody_of_us_signed_stops_no_checkpoint(tenant: Any, caplog: pytest.LogCaptureFixture) -> None:
    grow()
    checkpoint_store().put("audit/acme/0000000000000001-00000000000000aa.json", b"{}")
    assert checkpoint().seq == 1
    assert "counts for nothing" in caplog.text


def test_a_log_without_its_beginning_is_not_signed_over(tenant: Any) -> None:
    grow(count=3)
    checkpoint()
    grow()
    tamper("DELETE FROM registry_auditrecord WHERE chain = 'acme' AND seq = 1")
    with pytest.raises(AuditBroken, match="at record 1"):
        checkpoint()


def tamper_with_index(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE registry_auditcheckpoint DISABLE TRIGGER USER")
        cursor.execute(sql)
        cursor.execute("ALTER TABLE registry_auditcheckpoint ENABLE ALWAYS TRIGGER audit_checkpoint_no_change")


def test_nothing_put_beside_a_signed_checkpoint_hides_it(tenant: Any) -> None:
    grow(count=3)
    made = checkpoint()
    checkpoint_store().put(f"{made.object_key[:-21]}{'0' * 16}.json", b"{}")
    tamper_with_index("DELETE FROM registry_auditcheckpoint")
    tamper("TRUNCATE registry_auditrecord")
    grow(count=4)
    with pytest.raises(AuditBroken, match="contradicts"):
        checkpoint()


@pytest.mark.parametrize("seq", ["0000000000000002", "0000000000000009"])
def test_a_copy_in_another_place_stops_no_checkpoint(tenant: Any, caplog: pytest.LogCaptureFixture, seq: str) -> None:
    grow()
    first = checkpoint()
    checkpoint_store().put(f"audit/acme/{seq}-{'0' * 16}.json", read_checkpoint(checkpoint=first).encode())
    grow(count=2)
    assert checkpoint().seq == 3
    assert "counts for nothing" in caplog.text


@pytest.mark.parametrize(
    ("place", "seq"),
    [("object_key", 3), ("'audit/acme/0000000000000004-00000000000000aa.json'", 4)],
)
def test_an_index_written_anew_with_the_log_is_found_by_what_the_store_has(tenant: Any, place: str, seq: int) -> None:
    grow(count=3)
    checkpoint()
    tamper("TRUNCATE registry_auditrecord")
    grow(count=4)
    head = AuditRecord.objects.get(chain="acme", seq=seq).hash
    tamper_with_index(f"UPDATE registry_auditcheckpoint SET object_key = {place}, seq = {seq}, head = '{head}'")
    with pytest.raises(AuditBroken, match="contradicts"):
        checkpoint()


def test_a_store_that_lost_a_checkpoint_gets_the_next_one(tenant: Any, settings: Any, tmp_path: Path) -> None:
    grow()
    checkpoint()
    settings.STORE = {**settings.STORE, "folder": tmp_path / "new"}
    checkpoint_store.cache_clear()
    grow()
    assert checkpoint().seq == 2
    checkpoint_store.cache_clear()


def test_a_log_that_was_emptied_is_due_before_it_grows_again(tenant: Any, settings: Any) -> None:
    settings.AUDIT_CHECKPOINT_S = 0
    grow()
    checkpoint()
    checkpoint("platform")
    tamper("TRUNCATE registry_auditrecord")
    assert chains_due() == ["acme", "platform"]
    with pytest.raises(AuditBroken, match="had 1 records"):
        checkpoint()


def test_after_a_key_is_revoked_the_same_record_is_signed_by_another(
    settings: Any, signer: LocalKeySigner, tenant: Any, tmp_path: Path
) -> None:
    grow()
    checkpoint()
    generate_key_file(tmp_path / "new.pem")
    revoke_signing_key(actor=SYSTEM, key_id=signer.key_id, reason="stolen")
    settings.SIGNING_KEYS = [str(tmp_path / "new.pem")]
    assert "acme" in chains_due()
    again = checkpoint()
    assert (again.seq, AuditCheckpoint.objects.filter(chain="acme", seq=1).count()) == (1, 2)
    assert "acme" not in chains_due()


def test_the_index_of_checkpoints_can_only_grow(tenant: Any) -> None:
    grow()
    checkpoint()
    with pytest.raises(Exception, match="append-only"):
        AuditCheckpoint.objects.update(head="0" * 64)


def test_the_job_goes_on_past_a_broken_chain_and_says_so_loudly(tenant: Any, caplog: pytest.LogCaptureFixture) -> None:
    make_tenant(name="globex")
    grow(count=2)
    grow("globex")
    tamper("UPDATE registry_auditrecord SET payload = 'x' WHERE chain = 'acme' AND seq = 1")
    job.keep_audit()
    assert {found.chain for found in AuditCheckpoint.objects.all()} == {"globex"}
    assert any(record.levelname == "CRITICAL" and "acme" in record.message for record in caplog.records)


@pytest.mark.parametrize("troubled", ["tell_notices", "carry_on", "make_checkpoint", "begin_check"])
def test_what_is_wrong_with_one_chain_keeps_no_other_from_its_checkpoint(
    tenant: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, troubled: str
) -> None:
    make_tenant(name="globex")
    grow()
    grow("globex")
    begin_check(actor=SYSTEM, tenant="globex")
    AuditCheck.objects.update(moved_at=timezone.now() - timedelta(days=1))
    if troubled == "begin_check":
        tamper("UPDATE registry_auditrecord SET payload = 'x' WHERE chain = 'acme' AND seq = 1")
    working = getattr(job, troubled)

    def trip(**facts: Any) -> Any:
        if facts.get("chain") == "globex":
            return working(**facts)
        raise RuntimeError(troubled)

    monkeypatch.setattr(job, troubled, trip)
    job.keep_audit()
    assert "globex" in {found.chain for found in AuditCheckpoint.objects.all()}
    assert any(record.exc_info and troubled in str(record.exc_info[1]) for record in caplog.records)


def test_a_store_that_is_away_is_asked_again_later(
    tenant: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    grow()
    with monkeypatch.context() as patch:
        patch.setattr(type(checkpoint_store()), "put", away)
        job.keep_audit()
    assert "later" in caplog.text
    job.keep_audit()
    assert AuditCheckpoint.objects.filter(chain="acme").count() == 1


def test_checkpoints_go_to_the_bucket_for_audit_and_are_locked_there(
    settings: Any, s3: Any, tenant: Any, signer: LocalKeySigner
) -> None:
    settings.STORE = {
        **settings.STORE,
        "kind": "s3",
        "endpoint": s3.endpoint,
        "access_key": s3.credentials.access_key,
        "secret_key": s3.credentials.secret_key,
    }
    settings.AUDIT_BUCKET = "lorekeeper-audit"
    checkpoint_store.cache_clear()
    client = s3.client()
    client.create_bucket(Bucket="lorekeeper-audit", ObjectLockEnabledForBucket=True)
    grow(count=2)
    job.keep_audit()
    checkpoint_store.cache_clear()
    made = AuditCheckpoint.objects.get(chain="acme")
    assert made.locked_until is not None
    body = client.get_object(Bucket="lorekeeper-audit", Key=made.object_key)["Body"].read().decode()
    assert open_checkpoint(body, keys_of(signer)).seq == 2
