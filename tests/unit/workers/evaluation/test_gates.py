from dataclasses import fields, replace

import pytest

from registry.evaluation import Gates
from workers.evaluation.gates import judge
from workers.evaluation.metrics import Metrics

GOOD = Metrics(10, 10, perplexity=4.0, exact_agreement=0.5, token_agreement=0.8, forbidden_hits=1, mean_kl=0.5)
# For each gate a bound that GOOD just keeps to, against a current version that is a little better.
NOW = replace(GOOD, perplexity=3.2, exact_agreement=0.6, token_agreement=0.9, forbidden_hits=0, mean_kl=0.25)
KEPT = {
    "max_perplexity": 4.0,
    "min_exact_agreement": 0.5,
    "min_token_agreement": 0.8,
    "max_forbidden_hits": 1,
    "max_mean_kl": 0.5,
    "max_perplexity_increase": 0.25,
    "max_exact_agreement_drop": 0.1,
    "max_token_agreement_drop": 0.1,
    "max_forbidden_hits_increase": 1,
    "max_mean_kl_increase": 0.25,
}


def test_every_gate_is_tried_here() -> None:
    assert set(KEPT) == {each.name for each in fields(Gates)} - {"enforcement"}


@pytest.mark.parametrize("gate", KEPT)
def test_a_gate_is_kept_up_to_its_bound_and_not_beyond(gate: str) -> None:
    bound = KEPT[gate]
    stricter = bound + 0.01 if gate.startswith("min_") else bound - 0.01
    (at,) = judge(Gates.from_json({gate: bound}), GOOD, NOW)
    (beyond,) = judge(Gates.from_json({gate: stricter}), GOOD, NOW)
    assert (at.is_kept, beyond.is_kept) == (True, False)
    assert at.value == pytest.approx(bound)


def test_without_a_version_served_now_only_absolute_gates_are_judged() -> None:
    judged = judge(Gates(max_perplexity=1.0, max_perplexity_increase=0.0), GOOD, None)
    assert [(each.gate, each.is_kept) for each in judged] == [("max_perplexity", False)]


def test_no_data_is_never_a_pass() -> None:
    silent = replace(GOOD, perplexity=None, exact_agreement=None)
    judged = judge(Gates(max_perplexity=100.0, max_exact_agreement_drop=1.0), silent, NOW)
    assert [(each.value, each.is_kept) for each in judged] == [(None, False), (None, False)]


def test_an_improvement_keeps_every_relative_gate() -> None:
    strict = Gates.from_json({gate: 0.0 for gate in KEPT if gate.endswith(("_increase", "_drop"))})
    assert all(each.is_kept for each in judge(strict, NOW, GOOD))
