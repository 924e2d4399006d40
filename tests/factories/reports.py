"""Validation reports as workers write them, with an evaluation where it is wanted."""

from typing import Any

from registry.models import ValidationReport, Version
from tests.factories.registry import digest_for

JSON = dict[str, Any]


def make_report(
    version: Version, *, verdict: str = "accept", checks: list[JSON] | None = None, **facts: Any
) -> ValidationReport:
    """A report that the version stands on, if it has come that far."""
    found = checks if checks is not None else [check("files"), engines_check(), cost_check()]
    document = {
        "policy_version": "3",
        "verdict": verdict,
        "checks": found,
        "facts": {
            "rank": version.rank,
            "declared_rank": version.rank,
            "alpha": 16.0,
            "target_modules": list(version.target_modules),
            "dtype": "F32",
            "parameters": 12_288,
            "engines": ["vllm", "sglang"],
            "slot_bytes": {"vllm": 51_800_000, "sglang": 0, "tgi": 3_700_000, "lorax": 3_700_000},
            **facts,
        },
    }
    return ValidationReport.objects.create(
        version=version,
        verdict=verdict,
        policy_version="3",
        report=document,
        digest=version.validation_digest or digest_for(str(version.pk)),
    )


def check(name: str, verdict: str = "pass", code: str = "ok", message: str = "", **evidence: Any) -> JSON:
    return {
        "name": name,
        "verdict": verdict,
        "code": code,
        "message": message or f"the check {name} is content",
        "evidence": evidence,
    }


def engines_check() -> JSON:
    serving: JSON = {"version": "0.32.0", "basis": "measured", "serves": True, "findings": []}
    finding = {
        "trait": "dora",
        "effect": "drops a part in silence",
        "sentence": "drops DoRA's magnitudes in silence",
        "basis": "read in its source",
        "sign": "use_dora",
    }
    dropping: JSON = {"version": "3.3", "basis": "read in its source", "serves": False, "findings": [finding]}
    evidence: JSON = {"vllm": serving, "sglang": serving, "tgi": dropping, "lorax": dropping}
    return {**check("engines", message="vLLM and SGLang can serve it"), "evidence": evidence}


def cost_check() -> JSON:
    evidence: JSON = {
        "bytes": 3_700_000,
        "weights_bytes": 3_690_000,
        "max_rank": 64,
        "slot_bytes": {"vllm": 51_800_000},
    }
    return {**check("cost", code="cost"), "evidence": evidence, "measured": {"load": {"read_ms": 3.5}}}


def evaluation_check(
    *, answers: dict[str, str], perplexity: dict[str, float], set_digest: str = "e" * 64, compared_with: str = ""
) -> JSON:
    """``answers`` to one example, and ``perplexity``, by voice: base, current, candidate."""
    metrics = {
        voice: {
            "examples": 12,
            "references": 12,
            "perplexity": value,
            "exact_agreement": 0.5,
            "token_agreement": 0.75,
            "forbidden_hits": 0,
            "mean_kl": 0.1,
        }
        for voice, value in perplexity.items()
    }
    sides = {
        voice: {"answer": answer, "is_forbidden": False, "loss": 1.5, "token_agreement": 0.75, "kl": 0.1}
        for voice, answer in answers.items()
    }
    return check(
        "evaluation",
        message="on 12 examples of smoke: perplexity 3.2",
        set="smoke",
        set_digest=set_digest,
        metrics=metrics,
        gates=[{"gate": "max_perplexity", "bound": 5.0, "value": perplexity["candidate"], "is_kept": True}],
        compared_with=compared_with,
        worst=[{"number": 7, "prompt": "Where is my order?", "reference": "On its way.", **sides}],
    )
