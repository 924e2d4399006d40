import json
from typing import Any
from uuid import UUID

import pytest
import rfc8785

from registry.evaluation import EvaluationBrief, Example, Gates
from tests.unit.workers.evaluation.voices import FLAT, ScriptedModel
from workers.evaluation.evaluate import Budget, Evaluation, evaluate
from workers.evaluation.findings import findings, not_run
from workers.evaluation.ports import Score, Voice
from workers.validation import Check, Verdict

ASKED = (Example("Where?", reference="There.", forbidden="nowhere"), Example("What?"))


def run(model: ScriptedModel, *, gates: Gates | None = None, examples: tuple[Example, ...] = ASKED) -> list[Check]:
    brief = EvaluationBrief(set_name="smoke", examples=examples, gates=gates or Gates())
    return findings(evaluate(model, examples, Budget(60)), brief)


def candidate(text: str = "There.", score: Score = FLAT, **more: object) -> ScriptedModel:
    return ScriptedModel({Voice.CANDIDATE: text}, scores={Voice.CANDIDATE: score}, **more)  # type: ignore[arg-type]


def by_code(found: list[Check]) -> dict[str, Check]:
    return {check.code: check for check in found}


def test_a_sound_version_passes_both_checks_with_its_numbers_in_the_sentence() -> None:
    effect, summary = run(candidate())
    assert (effect.verdict, summary.verdict) == (Verdict.PASS, Verdict.PASS)
    assert summary.message.startswith("on 2 examples of smoke: perplexity 2.718, exact agreement 1")


def test_evidence_can_be_digested_and_names_set_and_reference() -> None:
    effect, summary = run(candidate())
    assert len(rfc8785.dumps([dict(effect.evidence), dict(summary.evidence)])) > 100
    assert len(str(effect.evidence["reference_digest"])) == 64
    assert summary.evidence["set"] == "smoke"


@pytest.mark.parametrize(("enforcement", "verdict"), [("reject", Verdict.FAIL), ("warn", Verdict.WARN)])
def test_a_gate_that_is_not_kept_does_what_the_tenant_says(enforcement: str, verdict: Verdict) -> None:
    found = by_code(run(candidate(), gates=Gates(enforcement=enforcement, max_perplexity=2.0)))  # type: ignore[arg-type]
    assert found["max_perplexity"].verdict is verdict
    assert found["max_perplexity"].message == "the gate “max perplexity 2” is not kept: 2.718, on 2 examples"
    assert found["ok"].verdict is Verdict.PASS


def test_a_gate_that_nothing_was_measured_for_warns() -> None:
    found = by_code(run(candidate(), gates=Gates(max_perplexity=2.0), examples=(Example("What?"),)))
    assert found["max_perplexity"].verdict is Verdict.WARN
    assert "no example has a reference" in found["max_perplexity"].message


def test_a_gate_on_forbidden_answers_is_not_kept_by_a_set_that_forbids_nothing() -> None:
    found = run(candidate(), gates=Gates(max_forbidden_hits=0), examples=(Example("Where?"),))
    check = by_code(found)["max_forbidden_hits"]
    assert check.verdict is Verdict.WARN
    assert "no example forbids anything" in check.message
    assert "forbidden answers" not in found[-1].message


SERVED = UUID(int=1)


def test_a_gate_against_a_served_version_that_could_not_be_run_is_not_kept_silently() -> None:
    brief = EvaluationBrief("smoke", ASKED, Gates(max_mean_kl_increase=0.1), SERVED)
    found = findings(evaluate(candidate(), ASKED, Budget(60)), brief)
    check = by_code(found)["max_mean_kl_increase"]
    assert check.verdict is Verdict.WARN
    assert "served now could not be run" in check.message


def test_a_served_version_that_gives_no_numbers_is_left_out_and_the_report_still_has_a_digest() -> None:
    nan = float("nan")
    model = ScriptedModel(
        {Voice.CANDIDATE: "There.", Voice.CURRENT: "?"}, scores={Voice.CURRENT: Score((nan,), (False,), (nan,))}
    )
    brief = EvaluationBrief("smoke", ASKED, Gates(max_perplexity_increase=0.1), SERVED)
    found = findings(evaluate(model, ASKED, Budget(60)), brief)
    assert by_code(found)["max_perplexity_increase"].verdict is Verdict.WARN
    assert set(found[-1].evidence["metrics"]) == {"base", "candidate"}  # type: ignore[arg-type]
    assert all(rfc8785.dumps(check.to_json()) for check in found)


def test_forbidden_answers_warn_unless_a_gate_judges_them() -> None:
    assert by_code(run(candidate("nowhere")))["forbidden_answers"].verdict is Verdict.WARN
    judged = by_code(run(candidate("nowhere"), gates=Gates(max_forbidden_hits=0)))
    assert judged["max_forbidden_hits"].verdict is Verdict.FAIL
    assert "forbidden_answers" not in judged


def test_an_adapter_that_changes_nothing_anywhere_fails() -> None:
    reads = dict.fromkeys(Voice, (-1.0, -2.0))
    assert by_code(run(candidate(reads=reads)))["no_effect"].verdict is Verdict.FAIL


def test_an_adapter_that_changes_only_answers_is_said_to_be_refused_by_nodes() -> None:
    reads = dict.fromkeys(Voice, (-1.0, -2.0))
    far = Score((-1.0, -4.0), (True, True), (0.0, 1.0))
    assert by_code(run(candidate(score=far, reads=reads)))["no_effect_at_probe"].verdict is Verdict.WARN


def test_without_a_set_the_effect_is_checked_and_the_rest_said_to_be_unknown() -> None:
    effect, missing = run(candidate(), examples=())
    assert effect.verdict is Verdict.PASS
    assert (missing.verdict, missing.code) == (Verdict.WARN, "not_checked")


def test_where_the_base_is_not_nothing_is_claimed() -> None:
    assert [(check.verdict, check.code) for check in not_run("no base")] == [(Verdict.WARN, "not_checked")] * 2


def test_the_worst_examples_stand_side_by_side() -> None:
    model = ScriptedModel({Voice.CANDIDATE: "new\x1b[31m", Voice.CURRENT: "old"})
    evidence: dict[str, Any] = dict(run(model)[-1].evidence)
    row = evidence["worst"][0]
    assert row["candidate"]["answer"] == "new�[31m"
    assert (row["current"]["answer"], row["base"]["answer"]) == ("old", "base")
    json.dumps(row)


def test_nothing_is_claimed_of_an_answer_that_no_pattern_was_searched_for_in() -> None:
    evidence: dict[str, Any] = dict(run(candidate("nowhere"))[-1].evidence)
    row = evidence["worst"][0]
    assert (row["candidate"]["is_forbidden"], row["base"]["is_forbidden"]) == (True, None)


def test_nothing_is_measured_when_there_was_no_time_at_all() -> None:
    never = Evaluation({Voice.BASE: (-1.0,), Voice.CANDIDATE: (-2.0,)}, 1.0, (), {}, 2, 0, 9.0, {})
    brief = EvaluationBrief(set_name="smoke", examples=ASKED)
    assert findings(never, brief)[1].code == "not_checked"
