"""Evaluation sets, gates, and validating again: who may do what, and what comes of it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from registry.models import Adapter, AuditRecord, Revalidation, ValidationReport, Version
from registry.reports import StoredReport
from registry.services.validation import record_revalidation, request_revalidation
from registry.states import Role, VersionState
from tests.api.registry.conftest import Caller
from tests.factories.registry import make_actor
from workers.jobs.validation import revalidate_version

pytestmark = pytest.mark.django_db(transaction=True)
Push = Callable[..., Version]
SETS, GATES = "/api/v1/tenants/acme/evaluation-sets", "/api/v1/tenants/acme/evaluation-gates"
ROWS = [{"prompt": "Where is it?", "reference": "There.", "forbidden": "(?i)never"}]


def actions() -> list[str]:
    return [record.action for record in AuditRecord.objects.filter(chain="acme").order_by("seq")]


def test_a_reviewer_keeps_a_set_and_everybody_in_the_tenant_sees_it(as_role: Caller, adapter: Adapter) -> None:
    reviewer, viewer = as_role(Role.REVIEWER), as_role(Role.VIEWER)
    made = reviewer.put(f"{SETS}/smoke", {"examples": ROWS}, format="json")
    assert made.status_code == 200, made.json()
    assert (made.json()["count"], made.json()["adapter"]) == (1, None)
    assert viewer.get(f"{SETS}/smoke").json()["examples"] == ROWS
    assert [row["name"] for row in viewer.get(SETS).json()["results"]] == ["smoke"]
    again = reviewer.put(f"{SETS}/smoke", {"examples": ROWS}, format="json")
    assert again.headers["ETag"] == made.headers["ETag"]
    assert reviewer.delete(f"{SETS}/smoke").status_code == 204
    assert viewer.get(f"{SETS}/smoke").status_code == 404
    assert [action for action in actions() if "evaluation" in action] == [
        "tenant:evaluation_set:keep",
        "tenant:evaluation_set:remove",
    ]


def test_lists_read_no_contents_and_ask_the_same_however_long_they_are(as_role: Caller, push: Push) -> None:
    version = push()
    reviewer = as_role(Role.REVIEWER)
    reviewer.put(f"{SETS}/all", {"examples": ROWS * 2}, format="json")
    reviewer.put(f"{SETS}/own", {"examples": ROWS, "adapter": "support-tone"}, format="json")
    revalidate_version(revalidation_id=request_revalidation(actor=make_actor(), version=version).pk)
    path = f"/api/v1/tenants/acme/adapters/support-tone/versions/{version.name}"
    contents = ('"registry_evaluationset"."examples",', '."report",', '."reference",')
    for url in (SETS, f"{path}/reports", f"{path}/revalidations"):
        with CaptureQueriesContext(connection) as asked:
            rows = reviewer.get(url).json()["results"]
        assert rows, url
        own = [query["sql"] for query in asked if "validationreport" in query["sql"] or "evaluationset" in query["sql"]]
        assert len(own) == 1, own
        assert not any(column in own[0] for column in contents), own
    assert [row["count"] for row in reviewer.get(SETS).json()["results"]] == [1, 2]


def test_a_set_is_for_one_adapter_or_for_all_without_their_own_and_there_is_one_of_each(
    as_role: Caller, adapter: Adapter
) -> None:
    reviewer = as_role(Role.REVIEWER)
    assert reviewer.put(f"{SETS}/all", {"examples": ROWS}, format="json").status_code == 200
    own = reviewer.put(f"{SETS}/own", {"examples": ROWS, "adapter": "support-tone"}, format="json")
    assert own.json()["adapter"] == "support-tone"
    second = reviewer.put(f"{SETS}/second", {"examples": ROWS}, format="json")
    assert (second.status_code, second.json()["field"]) == (400, "adapter")
    assert "all" in second.json()["detail"]
    nobodys = reviewer.put(f"{SETS}/third", {"examples": ROWS, "adapter": "nobody"}, format="json")
    assert (nobodys.status_code, nobodys.json()["field"]) == (400, "adapter")


def test_a_wrong_example_is_named(as_role: Caller, adapter: Adapter) -> None:
    rows = [*ROWS, {"prompt": "x", "forbidden": "(a+)+$"}]
    refused = as_role(Role.REVIEWER).put(f"{SETS}/smoke", {"examples": rows}, format="json")
    assert (refused.status_code, refused.json()["field"]) == (400, "examples[1].forbidden")


def test_a_set_that_somebody_else_changed_meanwhile_is_not_overwritten(as_role: Caller, adapter: Adapter) -> None:
    reviewer = as_role(Role.REVIEWER)
    first = reviewer.put(f"{SETS}/smoke", {"examples": ROWS}, format="json").headers["ETag"]
    other = [{"prompt": "What?"}]
    assert reviewer.put(f"{SETS}/smoke", {"examples": other}, format="json").status_code == 200
    late = reviewer.put(f"{SETS}/smoke", {"examples": ROWS}, format="json", HTTP_IF_MATCH=first)
    assert late.status_code == 412
    assert reviewer.delete(f"{SETS}/smoke", HTTP_IF_MATCH=first).status_code == 412


def test_gates_are_open_until_a_reviewer_sets_them(as_role: Caller, adapter: Adapter) -> None:
    reviewer = as_role(Role.REVIEWER)
    assert reviewer.get(GATES).json()["max_perplexity"] is None
    kept = reviewer.put(GATES, {"max_perplexity": 8, "enforcement": "warn"}, format="json")
    assert kept.json() == reviewer.get(GATES).json()
    assert kept.json()["max_perplexity"] == 8.0
    assert reviewer.put(GATES, {"min_exact_agreement": 2}, format="json").status_code == 400
    assert reviewer.put(GATES, {}, format="json", HTTP_IF_MATCH='"other"').status_code == 412
    assert actions().count("tenant:evaluation_gates:set") == 1


@pytest.mark.parametrize("role", [Role.UPLOADER, Role.RELEASE_MANAGER, Role.VIEWER])
def test_whoever_does_not_review_changes_neither_set_nor_gates(as_role: Caller, adapter: Adapter, role: Role) -> None:
    client = as_role(role)
    assert client.put(f"{SETS}/smoke", {"examples": ROWS}, format="json").status_code == 403
    assert client.put(GATES, {}, format="json").status_code == 403
    assert client.delete(f"{SETS}/smoke").status_code == 403


def url_of(version: Version, tail: str) -> str:
    return f"/api/v1/tenants/acme/adapters/support-tone/versions/{version.name}/{tail}"


def test_a_worker_without_the_base_says_that_nothing_was_run(push: Push) -> None:
    version = push()
    report = version.reports.get()
    checks = {check["name"]: check for check in report.report["checks"]}
    assert (checks["effect"]["verdict"], checks["evaluation"]["verdict"]) == ("warn", "warn")
    assert "LOREKEEPER_BASE_MODEL_FOLDERS" in checks["evaluation"]["message"]
    assert (version.state, version.state_message, report.reference) == (VersionState.CANDIDATE, "", None)


def test_a_reviewer_has_a_candidate_validated_again_and_it_stands_on_the_new_report(
    push: Push, as_role: Caller, sent: list[Any]
) -> None:
    version, reviewer = push(), as_role(Role.REVIEWER)
    asked = reviewer.post(url_of(version, "revalidate"), {"reason": "new rules"}, format="json")
    assert asked.status_code == 202, asked.json()
    assert reviewer.post(url_of(version, "revalidate")).json() == asked.json()
    wish = Revalidation.objects.get()
    assert sent[-1] == ("workers.tasks.revalidate_version", {"revalidation_id": wish.pk})
    revalidate_version(revalidation_id=wish.pk)
    version.refresh_from_db()
    assert version.state == VersionState.CANDIDATE
    listed = reviewer.get(url_of(version, "reports")).json()["results"]
    assert len(listed) == 2
    assert listed[0]["is_decisive"]
    whole = reviewer.get(url_of(version, f"reports/{listed[0]['digest']}")).json()
    assert whole["report"]["verdict"] == listed[0]["verdict"]
    done = reviewer.get(url_of(version, "revalidations")).json()["results"]
    assert (len(done), done[0]["report"]) == (1, listed[0]["digest"])
    assert actions()[-2:] == ["adapter:version:request_revalidation", "adapter:version:revalidate"]


def test_an_uploader_does_not_have_versions_validated_again(push: Push, as_role: Caller) -> None:
    assert as_role(Role.UPLOADER).post(url_of(push(), "revalidate")).status_code == 403


def report(verdict: Any, digest: str) -> StoredReport:
    return StoredReport(verdict, "3", "It is rude.", {"verdict": verdict}, digest * 64, 4, ("q_proj",))


def ask_again(version: Version, answer: StoredReport) -> Version:
    wish = request_revalidation(actor=make_actor(), version=version)
    record_revalidation(actor=make_actor(), revalidation_id=wish.pk, report=answer)
    version.refresh_from_db()
    return version


def test_a_candidate_that_fails_the_rules_of_today_is_rejected(push: Push, sent: list[Any]) -> None:
    version = ask_again(push(), report("reject", "a"))
    assert (version.state, version.state_message) == (VersionState.REJECTED, "It is rude.")
    assert sent[-1] == ("workers.tasks.purge_version", {"version_id": str(version.pk)})


def test_an_approved_version_keeps_the_report_it_was_approved_on(push: Push, as_role: Caller, signer: Any) -> None:
    version = push()
    approved = as_role(Role.REVIEWER).post(url_of(version, "approve"), {"digest": version.root_digest}, format="json")
    assert approved.status_code == 200, approved.json()
    version.refresh_from_db()
    before = version.validation_digest
    version = ask_again(version, report("reject", "b"))
    assert (version.state, version.validation_digest) == (VersionState.APPROVED, before)
    assert version.reports.count() == 2
    with pytest.raises(IntegrityError, match="decided on"), transaction.atomic():
        Version.objects.filter(pk=version.pk).update(validation_digest="c" * 64)


def test_a_rejected_version_is_not_validated_again(push: Push, as_role: Caller) -> None:
    version = push({"adapter_config.json": b"[]", "adapter_model.safetensors": b"x"})
    refused = as_role(Role.REVIEWER).post(url_of(version, "revalidate"))
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong_state")


def test_a_report_never_changes(push: Push) -> None:
    push()
    with pytest.raises(IntegrityError, match="never changes"), transaction.atomic():
        ValidationReport.objects.update(verdict="accept")
