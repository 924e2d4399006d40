import hashlib
import json

import rfc8785

from tests.unit.workers.validation.adapters import Upload
from workers.validation import Check, Facts, Report, Verdict
from workers.validation.report import finding, several, shown


def test_the_digest_covers_the_whole_report(good: Upload) -> None:
    report = good.check()
    content = json.loads(json.dumps(report.to_json()))
    digest = content.pop("digest")
    measured = [check.pop("measured") for check in content["checks"] if "measured" in check]
    assert "disk_ms" in measured[0]["load"]
    assert hashlib.sha256(rfc8785.dumps(content)).hexdigest() == digest == report.digest
    assert content["verdict"] == "accept"
    assert content["facts"]["rank"] == 8


def test_the_same_upload_gives_the_same_report(good: Upload) -> None:
    assert good.check().digest == good.check().digest


def test_failed_checks_come_before_warnings_in_the_reasons() -> None:
    checks = (
        Check("a", Verdict.WARN, "w", "warned"),
        Check("b", Verdict.FAIL, "f", "failed"),
        Check("c", Verdict.PASS, "ok", "passed"),
    )
    report = Report(checks=checks, facts=Facts())
    assert report.reasons == ("failed", "warned")
    assert report.verdict == "reject"


def test_evidence_from_outside_is_made_harmless() -> None:
    check = finding("a", Verdict.FAIL, "c", "m", big=1 << 60, text="\u202e\x00", many=["x"] * 99, nan=float("nan"))
    assert rfc8785.dumps(check.evidence)
    assert check.evidence["big"] == str(1 << 60)
    assert len(check.evidence["many"]) == 5  # type: ignore[arg-type]  # a list, as given
    assert shown("\u202e").isascii()


def test_many_names_are_cut_short_in_a_sentence() -> None:
    assert several(["a", "b"]) == "a, b"
    assert several(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
