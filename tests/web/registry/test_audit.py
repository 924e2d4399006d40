"""The audit log as people read it: what is found, one record, how the chain stands, and taking it out."""

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from client.audit import verify_export
from registry.actors import Actor
from registry.audit import PLATFORM_CHAIN, append_record
from registry.models import AuditCheck, AuditRecord, Person, Tenant
from registry.services.audit import checks, search
from registry.services.audit.checkpoints import make_checkpoint
from registry.states import Role
from tests.factories.registry import make_actor, make_person, make_tenant
from tests.web.conftest import SignIn
from workers.jobs.audit import check_audit, keep_audit

pytestmark = pytest.mark.django_db
RUI = Actor(
    kind="person", id="Rui@Example.com", name="Rui", token_prefix="abc123", request_id="req-1", source="10.0.0.9"
)
BEN = Actor(kind="person", id="ben@example.com", name="Ben", request_id="req-2", source="10.0.0.8")

LATE = "should have been signed a while ago"


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant(name="acme")


@pytest.fixture
def auditor(tenant: Tenant) -> Person:
    return make_person(roles={tenant: [Role.AUDITOR]})


@pytest.fixture
def browser(auditor: Person, sign_in: SignIn) -> Client:
    return sign_in(auditor)


def tell(
    action: str = "tenant:thing:do", *, actor: Actor = BEN, chain: str = "acme", name: str = "thing", **facts: Any
) -> int:
    object_ = {"kind": "thing", "id": f"id-{name}", "name": name}
    return append_record(actor=actor, chain=chain, action=action, object_=object_, **facts)


def many(count: int, **facts: Any) -> list[int]:
    return [tell(**facts) for _number in range(count)]


def shown(answer: Any) -> list[int]:
    """The numbers of the records in the list, as they stand there."""
    return [int(each) for each in re.findall(r'<a href="/ui/[a-z/-]*audit[a-z/]*/(\d+)">', answer.content.decode())]


def find(browser: Client, **wanted: str) -> list[int]:
    return shown(browser.get("/ui/tenants/acme/audit", wanted))


def tamper(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE registry_auditrecord DISABLE TRIGGER USER")
        cursor.execute(sql)
        cursor.execute("ALTER TABLE registry_auditrecord ENABLE ALWAYS TRIGGER audit_no_update_or_delete")
        cursor.execute("ALTER TABLE registry_auditrecord ENABLE ALWAYS TRIGGER audit_no_truncate")


def body(answer: Any) -> str:
    return b"".join(answer.streaming_content).decode()


# What is found.


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, [5, 4, 3, 2, 1]),
        ({"who": "rui@example.com"}, [1]),
        ({"token": "abc123"}, [1]),
        ({"token": "lk_abc123_secret"}, [1]),
        ({"object": "acme/tone@v1"}, [2]),
        ({"object": "acme/tone"}, [3, 2]),
        ({"object": "ID-acme/tone@v2"}, [3]),
        ({"action": "adapter:version"}, [3, 2]),
        ({"action": "adapter:version:approve"}, [2]),
        ({"action": "adapter:ver"}, []),
        ({"outcome": "denied"}, [4]),
        ({"outcome": "allowed"}, [5, 3, 2, 1]),
        ({"request_id": "req-1"}, [1]),
        ({"text": "Grund"}, [5]),
        ({"text": "ein GUTER"}, [5]),
        ({"text": "gute"}, []),
        ({"text": "8f0c"}, [3]),
        ({"text": "回滚"}, [5]),
        ({"who": "ben@example.com", "action": "adapter", "object": "acme/tone@v2"}, [3]),
        ({"who": "rui@example.com", "outcome": "denied"}, []),
    ],
)
def test_the_log_is_narrowed_by_what_records_say(browser: Client, wanted: dict[str, str], expected: list[int]) -> None:
    tell(actor=RUI)
    tell("adapter:version:approve", name="acme/tone@v1")
    tell("adapter:version:yank", name="acme/tone@v2", after={"digest": "8f0c"})
    tell("tenant:access:deny", name="other")
    tell(name="last", reason="ein guter Grund, 立即回滚")
    assert find(browser, **wanted) == expected


def test_times_are_read_in_the_readers_zone(browser: Client) -> None:
    tell()
    told = AuditRecord.objects.get()
    browser.cookies["lorekeeper_zone"] = "Asia/Tokyo"
    local = (told.at + timedelta(hours=9)).replace(tzinfo=None)
    hour = timedelta(hours=1)
    assert find(browser, since=f"{local - hour:%Y-%m-%dT%H:%M}", until=f"{local + hour:%Y-%m-%dT%H:%M}") == [1]
    assert find(browser, since=f"{local + hour:%Y-%m-%dT%H:%M}") == []
    assert find(browser, until=f"{local - hour:%Y-%m-%dT%H:%M}", text="thing") == []


def test_a_record_is_found_by_its_time_though_the_clock_was_set_back(browser: Client) -> None:
    many(3)
    # By the clock, 2 and 3 were written before 1.
    tamper("UPDATE registry_auditrecord SET at = at - interval '3 minutes' WHERE seq > 1")
    second = AuditRecord.objects.get(seq=2).at
    assert find(browser, since=f"{second - timedelta(minutes=1):%Y-%m-%dT%H:%M}") == [3, 2, 1]
    assert find(browser, until=f"{second + timedelta(minutes=1):%Y-%m-%dT%H:%M}") == [3, 2]


@pytest.mark.parametrize(
    "wanted", [{"since": "soon"}, {"since": "2026-02-01T10:00", "until": "2026-01-01T10:00"}, {"text": "?!"}]
)
def test_what_no_filter_can_mean_is_said_next_to_it(browser: Client, wanted: dict[str, str]) -> None:
    answer = browser.get("/ui/tenants/acme/audit", wanted)
    assert answer.status_code == 422
    assert 'class="fault"' in answer.content.decode()


@pytest.mark.parametrize("wanted", [{}, {"text": "thing"}, {"who": "ben@example.com"}])
def test_pages_go_both_ways_and_miss_nothing(browser: Client, wanted: dict[str, str]) -> None:
    many(120)
    answer = browser.get("/ui/tenants/acme/audit", wanted)
    seen = shown(answer)
    while (next_page := following(answer, "next")) is not None:
        answer = browser.get(next_page)
        seen += shown(answer)
    assert seen == list(range(120, 0, -1))
    back = shown(answer)
    while (previous := following(answer, "prev")) is not None:
        answer = browser.get(previous)
        back = shown(answer) + back
    assert back == list(range(120, 0, -1))


def following(answer: Any, rel: str) -> str | None:
    found = re.search(rf'<a href="([^"]+)" rel="{rel}">', answer.content.decode())
    return None if found is None else found[1].replace("&amp;", "&")


def test_a_search_that_was_cut_short_says_how_far_it_looked_and_goes_on(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SPAN", 10)
    tell(name="needle")
    many(40)
    answer = browser.get("/ui/tenants/acme/audit", {"object": "needle"})
    looks = 1
    while not shown(answer):
        text = answer.content.decode()
        assert "not looked at yet" in text
        step = re.search(r'<a class="button primary" href="(/ui/tenants/acme/audit\?[^"]+)"', text)
        assert step is not None
        answer = browser.get(step[1].replace("&amp;", "&"))
        looks += 1
    assert (shown(answer), looks) == ([1], 4)


def test_a_long_list_asks_the_database_as_often_as_a_short_one(browser: Client, signer: Any, store: Any) -> None:
    many(60)
    make_checkpoint(actor=make_actor(), chain="acme")
    wanted = {"text": "thing", "since": "2020-01-01T00:00", "until": "2100-01-01T00:00"}
    browser.get("/ui/tenants/acme/audit")
    with CaptureQueriesContext(connection) as queries:
        assert len(shown(browser.get("/ui/tenants/acme/audit", wanted))) == 50
    assert len(queries) <= 11


def test_nothing_found_says_what_to_do(browser: Client) -> None:
    assert "Every change" in browser.get("/ui/tenants/acme/audit").content.decode()
    tell()
    assert "Take a filter away" in browser.get("/ui/tenants/acme/audit", {"text": "nothing"}).content.decode()


@pytest.mark.parametrize(
    "name",
    [
        "x" * 9000,
        "<script>alert(1)</script>",
        "a'b\"c\\d{e}",
        "\u202egnirts",
        "\x07\x1b[31m",
        "\U0001f600",
        "字" * 5000,
        "",
    ],
)
def test_whatever_a_record_says_it_is_written_and_shown(browser: Client, name: str) -> None:
    tell(name=name, reason=name, before={name: name}, after={"list": [name, 1, None, {"deep": name}]})
    for address in ("/ui/tenants/acme/audit", "/ui/tenants/acme/audit/1"):
        text = browser.get(address).content.decode()
        assert "<script>alert" not in text
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x07\x1b]", text.partition("<details>")[0])


# Who may.


def test_a_tenants_log_is_its_auditors_and_nobody_elses(tenant: Tenant, sign_in: SignIn) -> None:
    tell()
    viewer = sign_in(roles={tenant: [Role.VIEWER]})
    outsider = sign_in(roles={make_tenant(): list(Role)})
    for rest in ("", "/1", "/chain"):
        assert viewer.get(f"/ui/tenants/acme/audit{rest}").status_code == 403
        assert outsider.get(f"/ui/tenants/acme/audit{rest}").status_code == 404
    for rest in ("/export", "/chain/check"):
        assert viewer.post(f"/ui/tenants/acme/audit{rest}").status_code == 403
        assert outsider.post(f"/ui/tenants/acme/audit{rest}").status_code == 404
    assert not AuditCheck.objects.exists()


def test_the_platforms_log_is_the_platform_admins(browser: Client, sign_in: SignIn) -> None:
    tell("platform:thing:do", chain=PLATFORM_CHAIN)
    assert browser.get("/ui/audit/platform").status_code == 403
    admin = sign_in(is_platform_admin=True)
    assert 1 in shown(admin.get("/ui/audit/platform"))
    assert admin.get("/ui/audit/platform/1").status_code == 200
    assert "platform" in admin.get("/ui/tenants/acme/audit").content.decode()


def test_choosing_another_log_keeps_the_filters(tenant: Tenant, sign_in: SignIn) -> None:
    admin = sign_in(is_platform_admin=True)
    answer = admin.get("/ui/audit", {"log": "platform", "text": "word", "who": ""})
    assert answer["Location"] == "/ui/audit/platform?text=word"
    assert admin.get("/ui/audit", {"log": "acme"})["Location"] == "/ui/tenants/acme/audit"
    for nowhere in ("a/b", "..", "a\x00"):
        assert admin.get("/ui/audit", {"log": nowhere}).status_code == 400
    assert admin.get("/ui/audit", {"log": ""})["Location"] == "/ui/"


def test_one_tenants_words_find_nothing_of_anothers(browser: Client) -> None:
    tell(chain=make_tenant(name="acme-2").name, name="secret")
    assert find(browser, text="secret") == []


# One record.


def test_a_record_shows_what_changed_and_where_it_stands(browser: Client) -> None:
    tell()
    tell(actor=RUI, before={"state": "candidate"}, after={"state": "approved"}, reason="fine")
    tell()
    text = browser.get("/ui/tenants/acme/audit/2").content.decode()
    record = AuditRecord.objects.get(seq=2)
    assert "<del>" in text
    assert "<ins>" in text
    for said in ("Rui", "10.0.0.9", "req-1", "lk_abc123_…", record.hash, record.prev_hash, "covers the record"):
        assert said in text
    assert 'href="/ui/tenants/acme/audit/1" rel="prev"' in text
    assert 'href="/ui/tenants/acme/audit/3" rel="next"' in text
    for way in re.findall(r'href="(/ui/tenants/acme/audit\?[^"]+)"', text):
        assert 2 in shown(browser.get(way.replace("&amp;", "&")))


def test_a_record_that_was_changed_says_so(browser: Client) -> None:
    many(2)
    tamper("UPDATE registry_auditrecord SET payload = replace(payload, 'Ben', 'Eve') WHERE seq = 1")
    assert "does not cover the record" in browser.get("/ui/tenants/acme/audit/1").content.decode()
    tamper("DELETE FROM registry_auditrecord WHERE seq = 1")
    assert "the record before is missing" in browser.get("/ui/tenants/acme/audit/2").content.decode()


@pytest.mark.parametrize("seq", ["7", "0", "9" * 30])
def test_a_record_that_is_not_there_is_not_found(browser: Client, seq: str) -> None:
    tell()
    assert browser.get(f"/ui/tenants/acme/audit/{seq}").status_code == 404


# The chain.


def test_verifying_is_done_by_a_worker_in_slices_and_its_result_is_kept(
    browser: Client, sent: list[Any], signer: Any, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "SLICE", 4)
    many(10)
    make_checkpoint(actor=make_actor(), chain="acme")
    browser.post("/ui/tenants/acme/audit/chain/check")
    browser.post("/ui/tenants/acme/audit/chain/check")
    check = AuditCheck.objects.get()
    page = browser.get("/ui/tenants/acme/audit/chain").content.decode()
    assert 'hx-trigger="every 2s"' in page
    assert "Verify now" not in page
    check_audit(check.pk)
    check.refresh_from_db()
    assert (check.reached, check.signed_to, check.finding) == (10, 10, "")
    page = browser.get("/ui/tenants/acme/audit/chain").content.decode()
    assert "hx-trigger" not in page
    assert "to record 10" in page


def test_a_check_goes_on_where_it_was_left(browser: Client, sent: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "SLICE", 4)
    monkeypatch.setattr(checks, "_TURN_S", 0.0)
    many(10)
    browser.post("/ui/tenants/acme/audit/chain/check")
    check = AuditCheck.objects.get()
    checks._check_slice(check)
    check.refresh_from_db()
    assert (check.reached, check.ended_at) == (4, None)
    assert "4 of 10 records" in browser.get("/ui/tenants/acme/audit/chain").content.decode()
    AuditCheck.objects.update(moved_at=datetime.now(UTC) - timedelta(hours=1))
    monkeypatch.setattr(checks, "_TURN_S", 20.0)
    keep_audit()
    check.refresh_from_db()
    assert (check.reached, check.ended_at is None) == (10, False)


@pytest.mark.parametrize(
    ("sql", "finding", "broken_at"),
    [
        ("UPDATE registry_auditrecord SET payload = payload || ' ' WHERE seq = 3", checks.UNLINKED, 3),
        ("DELETE FROM registry_auditrecord WHERE seq = 5", checks.UNLINKED, 5),
        ("DELETE FROM registry_auditrecord WHERE seq > 6", checks.CUT_OFF, 7),
        ("DELETE FROM registry_auditrecord", checks.CUT_OFF, 1),
    ],
)
def test_a_chain_that_was_changed_is_an_alarm_on_every_page_of_the_log(
    browser: Client, sent: list[Any], signer: Any, store: Any, sql: str, finding: str, broken_at: int
) -> None:
    many(8)
    make_checkpoint(actor=make_actor(), chain="acme")
    tamper(sql)
    browser.post("/ui/tenants/acme/audit/chain/check")
    check_audit(AuditCheck.objects.get().pk)
    check = AuditCheck.objects.get()
    assert (check.finding, check.broken_at) == (finding, broken_at)
    for address in ("/ui/tenants/acme/audit", "/ui/tenants/acme/audit/chain"):
        assert "The audit log was changed." in browser.get(address).content.decode()


def test_a_chain_made_anew_does_not_pass_for_the_signed_one(
    browser: Client, sent: list[Any], signer: Any, store: Any
) -> None:
    many(3)
    make_checkpoint(actor=make_actor(), chain="acme")
    tamper("DELETE FROM registry_auditrecord")
    many(3, name="forged")
    browser.post("/ui/tenants/acme/audit/chain/check")
    check_audit(AuditCheck.objects.get().pk)
    assert (AuditCheck.objects.get().finding, AuditCheck.objects.get().broken_at) == (checks.REPLACED, 3)


def test_a_chain_written_to_all_the_time_is_late_where_nothing_was_ever_signed(browser: Client) -> None:
    many(3)
    assert LATE not in browser.get("/ui/tenants/acme/audit/chain").content.decode()
    tamper("UPDATE registry_auditrecord SET at = at - interval '4 hours' WHERE seq = 1")
    assert LATE in browser.get("/ui/tenants/acme/audit/chain").content.decode()


def test_a_quiet_chain_is_late_by_its_first_unsigned_record_and_not_by_its_last_checkpoint(
    browser: Client, signer: Any, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(3)
    make_checkpoint(actor=make_actor(), chain="acme")
    in_four_hours = timezone.now() + timedelta(hours=4)
    monkeypatch.setattr(checks, "timezone", SimpleNamespace(now=lambda: in_four_hours))
    assert LATE not in browser.get("/ui/tenants/acme/audit/chain").content.decode()
    tell()
    tamper("UPDATE registry_auditrecord SET at = at + interval '4 hours' WHERE seq = 4")
    assert LATE not in browser.get("/ui/tenants/acme/audit/chain").content.decode()
    tamper("UPDATE registry_auditrecord SET at = at - interval '4 hours' WHERE seq = 4")
    tell()
    tamper("UPDATE registry_auditrecord SET at = at + interval '4 hours' WHERE seq = 5")
    assert LATE in browser.get("/ui/tenants/acme/audit/chain").content.decode()


def test_a_checkpoint_that_the_store_has_lost_is_an_alarm(
    browser: Client, sent: list[Any], signer: Any, store: Any, settings: Any
) -> None:
    many(3)
    made = make_checkpoint(actor=make_actor(), chain="acme")
    assert made is not None
    for path in Path(settings.STORE["folder"]).rglob("*.json"):
        path.unlink()
    browser.post("/ui/tenants/acme/audit/chain/check")
    check_audit(AuditCheck.objects.get().pk)
    assert AuditCheck.objects.get().finding == checks.NOT_SIGNED


def test_the_worker_that_finds_a_chain_changed_has_it_shown(
    browser: Client, sent: list[Any], signer: Any, store: Any
) -> None:
    many(3)
    tamper("UPDATE registry_auditrecord SET payload = payload || ' ' WHERE seq = 2")
    keep_audit()
    check_audit(AuditCheck.objects.get().pk)
    assert "Record 2 does not fit" in browser.get("/ui/tenants/acme/audit").content.decode()
    keep_audit()
    assert AuditCheck.objects.count() == 1


# Taking it out.


def test_an_export_has_what_the_filters_leave_and_is_told_in_the_log(browser: Client, auditor: Person) -> None:
    tell(actor=RUI)
    many(3)
    answer = browser.post("/ui/tenants/acme/audit/export", {"form": "jsonl", "who": "rui@example.com"})
    records = [json.loads(line) for line in body(answer).splitlines()]
    assert [each["seq"] for each in records] == [1]
    told = AuditRecord.objects.get(action="tenant:audit:export")
    assert (told.actor["id"], told.after) == (auditor.email, {"form": "jsonl", "asked": {"who": "rui@example.com"}})


def test_the_export_of_the_whole_chain_can_be_verified_without_us(browser: Client) -> None:
    many(4)
    lines = body(browser.post("/ui/tenants/acme/audit/export", {"form": "jsonl"})).splitlines()
    verdict = verify_export(lines, chain="acme")
    assert (verdict.intact, verdict.records) == (True, 5)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1"])
def test_a_spreadsheet_takes_nothing_of_the_csv_for_a_formula(browser: Client, text: str) -> None:
    tell(name=text, reason=text)
    answer = body(browser.post("/ui/tenants/acme/audit/export", {"form": "csv"}))
    assert answer.startswith("\ufeffchain,seq,at,")
    rows = list(csv.DictReader(io.StringIO(answer.removeprefix("\ufeff"), newline="")))
    assert (rows[0]["object_name"], rows[0]["reason"]) == (f"'{text}", f"'{text}")
    assert len(rows) == 2


def test_an_export_of_more_than_one_look_has_everything(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SPAN", 7)
    monkeypatch.setattr(search, "_CHUNK", 3)
    many(30)
    answer = browser.post("/ui/tenants/acme/audit/export", {"form": "jsonl", "text": "thing"})
    assert [json.loads(line)["seq"] for line in body(answer).splitlines()] == list(range(1, 31))


def test_an_export_of_what_no_filter_can_mean_is_refused(browser: Client) -> None:
    assert browser.post("/ui/tenants/acme/audit/export", {"form": "csv", "since": "soon"}).status_code == 400
    assert not AuditRecord.objects.exists()
