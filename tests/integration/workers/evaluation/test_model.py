"""A real transformers model with real peft adapters, as small as they come."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from registry.base_models.description import BaseDescription, describe_folder
from registry.evaluation import EvaluationBrief, Example
from tests.factories.base_folders import write_adapter
from workers.evaluation.errors import NotPossibleError
from workers.evaluation.evaluate import Budget, Evaluation, evaluate
from workers.evaluation.findings import findings
from workers.evaluation.ports import Voice
from workers.validation import Check, Verdict

pytestmark = [
    # Torch takes seconds to import; test_job.py runs a real model in the fast suite.
    pytest.mark.e2e,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]


@dataclass
class Bench:
    """A tiny base in a folder, some adapters for it, and the shelf that it is taken from."""

    folder: Path
    shelf: Any
    adapters: dict[str, Path] = field(default_factory=dict)

    @property
    def description(self) -> BaseDescription:
        return describe_folder(self.folder)

    def take(self) -> Any:
        return self.shelf.take(self.folder, self.description)

    def run(self, examples: tuple[Example, ...] = (), **names: str | Path) -> tuple[Evaluation, tuple[Check, ...]]:
        """Evaluate ``candidate`` (and ``current``), each the name of an adapter or its folder."""
        voices = {Voice(voice): self.adapters.get(str(name), Path(name)) for voice, name in names.items()}
        with self.shelf.voices_on(self.take(), voices) as model:
            evaluation = evaluate(model, examples, Budget(seconds=60, answer_tokens=6))
        return evaluation, tuple(findings(evaluation, EvaluationBrief(set_name="smoke", examples=examples)))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    from tests.factories.tiny_model import tiny_adapter, write_tiny_model
    from workers.evaluation.model import Shelf

    folder = write_tiny_model(tmp_path_factory.mktemp("tiny") / "base")
    made = Bench(folder, Shelf(memory_bytes=8 << 30))
    for name, (seed, strength) in {"strong": (1, 0.5), "other": (2, 0.5), "none": (3, 0.0)}.items():
        made.adapters[name] = write_adapter(folder.parent / name, tiny_adapter(folder, seed=seed, strength=strength))
    return made


def test_an_adapter_is_compared_with_its_base_and_with_the_version_that_is_served_now(bench: Bench) -> None:
    examples = (Example("where is it?", reference="there", forbidden="(?i)never"), Example("and what?"))
    evaluation, (effect, summary) = bench.run(examples, candidate="strong", current="other")
    assert (effect.verdict, summary.verdict) == (Verdict.PASS, Verdict.PASS)
    evidence: dict[str, Any] = dict(summary.evidence)
    metrics = evidence["metrics"]
    assert set(metrics) == {"base", "candidate", "current"}
    assert metrics["base"]["mean_kl"] == 0
    assert metrics["candidate"]["mean_kl"] > 0
    assert metrics["candidate"]["perplexity"] != metrics["current"]["perplexity"] != metrics["base"]["perplexity"]
    assert [row["number"] for row in evidence["worst"]] == [0, 1]
    assert {"prompt", "reference", "base", "candidate", "current"} <= set(evidence["worst"][0])
    assert evaluation.effect > 0.01


def test_readings_are_the_models_own_log_probabilities(bench: Bench) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    evaluation, _found = bench.run(candidate="strong")
    plain = AutoModelForCausalLM.from_pretrained(bench.folder)
    ids = AutoTokenizer.from_pretrained(bench.folder)(evaluation.reference.prompt, return_tensors="pt")["input_ids"]

    def read(model: torch.nn.Module) -> list[float]:
        with torch.inference_mode():
            logits = model(ids).logits[0, :-1].log_softmax(-1)
        return [float(value) for value in logits.gather(1, ids[0, 1:, None])[:, 0]]

    assert evaluation.reference.base == pytest.approx(read(plain), abs=1e-4)
    adapted = PeftModel.from_pretrained(plain, str(bench.adapters["strong"])).eval()
    assert evaluation.reference.adapter == pytest.approx(read(adapted), abs=1e-4)


def test_an_adapter_without_effect_fails(bench: Bench) -> None:
    evaluation, (effect, _) = bench.run((Example("where is it?", reference="there"),), candidate="none")
    assert evaluation.effect == 0
    assert (effect.verdict, effect.code) == (Verdict.FAIL, "no_effect")


def test_the_base_is_as_it_was_after_an_adapter_was_taken_off(bench: Bench) -> None:
    first, _ = bench.run(candidate="strong")
    second, _ = bench.run(candidate="other")
    again, _ = bench.run(candidate="strong")
    assert first.reference.base == second.reference.base
    assert first.reference == again.reference
    assert first.reference.adapter != second.reference.adapter


def test_answers_made_together_are_those_made_alone(bench: Bench) -> None:
    prompts = ["short", "a much longer question than the other one"]
    with bench.shelf.voices_on(bench.take(), {Voice.CANDIDATE: bench.adapters["strong"]}) as model:
        together = model.answer(prompts, Voice.CANDIDATE, most=[8, 5])
        first, second = (model.answer([each], Voice.CANDIDATE, most=[8])[0] for each in prompts)
    assert together[0] == first
    assert together[1].tokens == second.tokens[:5]


def test_what_is_longer_than_the_base_reads_is_left_out_and_said(bench: Bench) -> None:
    examples = (Example("x" * 300), Example("fits"))
    _evaluation, found = bench.run(examples, candidate="strong")
    incomplete = next(check for check in found if check.code == "incomplete")
    assert incomplete.verdict is Verdict.WARN
    assert "only 1 of 2" in incomplete.message
    assert "1 are too long" in incomplete.message


def test_a_base_stays_loaded_for_the_next_version(bench: Bench) -> None:
    first = bench.take()
    assert bench.take() is first


def test_a_folder_with_another_revision_is_not_used(bench: Bench, tmp_path: Path) -> None:
    from tests.factories.tiny_model import write_tiny_model

    other = write_tiny_model(tmp_path / "other", seed=9)
    bench.shelf.clear()
    with pytest.raises(NotPossibleError, match="another revision"):
        bench.shelf.take(other, bench.description)


def test_a_base_that_does_not_fit_into_memory_is_not_loaded(bench: Bench) -> None:
    from workers.evaluation.model import Shelf

    with pytest.raises(NotPossibleError, match="the base needs 2,048 MiB of memory, this worker has 0 MiB for it"):
        Shelf(memory_bytes=1000).take(bench.folder, bench.description)


def test_a_base_that_lacks_weights_is_not_filled_up_with_random_ones(bench: Bench, tmp_path: Path) -> None:
    import shutil

    from safetensors.numpy import load_file, save_file

    folder = shutil.copytree(bench.folder, tmp_path / "base")
    tensors = load_file(folder / "model.safetensors")
    del tensors["lm_head.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(NotPossibleError, match=r"lacks weights: lm_head\.weight"):
        type(bench.shelf)(memory_bytes=8 << 30).take(folder, describe_folder(folder))


def test_adapters_that_do_not_fit_beside_their_base_are_not_loaded(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = bench.take()
    monkeypatch.setattr("workers.evaluation.bases._available", lambda: 1 << 10)
    with (
        pytest.raises(NotPossibleError, match="the adapters need"),
        bench.shelf.voices_on(base, {Voice.CANDIDATE: bench.adapters["strong"]}),
    ):
        pass


def test_weights_that_are_no_numbers_fail(bench: Bench, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    path = bench.adapters["strong"] / "adapter_model.safetensors"
    tensors = {name: tensor * (float("nan") if "lora_B" in name else 1) for name, tensor in load_file(path).items()}
    broken = write_adapter(
        tmp_path / "nan", {"adapter_config.json": (path.parent / "adapter_config.json").read_bytes()}
    )
    save_file(tensors, broken / path.name, metadata={"format": "pt"})
    evaluation, (effect, _) = bench.run(candidate=broken)
    assert not evaluation.is_finite
    assert (effect.verdict, effect.code) == (Verdict.FAIL, "not_finite")


def test_a_description_without_what_transformers_needs_is_said_to_be_unusable(tmp_path: Path) -> None:
    from tests.factories.base_folders import write_base_folder
    from workers.evaluation.model import Shelf

    folder = write_base_folder(tmp_path / "base")
    description = describe_folder(folder)
    with pytest.raises(NotPossibleError, match="transformers can't load the base"):
        Shelf(memory_bytes=8 << 30).take(folder, description)


def test_a_config_makes_peft_import_nothing(bench: Bench, tmp_path: Path) -> None:
    content = json.loads((bench.adapters["strong"] / "adapter_config.json").read_text())
    hostile = {**content, "megatron_config": {"x": 1}, "megatron_core": "antigravity", "auto_mapping": {"base": "os"}}
    weights = (bench.adapters["strong"] / "adapter_model.safetensors").read_bytes()
    files = {"adapter_config.json": json.dumps(hostile).encode(), "adapter_model.safetensors": weights}
    evaluation, _ = bench.run(candidate=write_adapter(tmp_path / "hostile", files))
    assert evaluation.reference == bench.run(candidate="strong")[0].reference
    assert "antigravity" not in sys.modules


def test_weights_that_do_not_fit_their_config_are_not_evaluated(bench: Bench, tmp_path: Path) -> None:
    content = json.loads((bench.adapters["strong"] / "adapter_config.json").read_text())
    weights = (bench.adapters["strong"] / "adapter_model.safetensors").read_bytes()
    for number, targets in enumerate((["q_proj"], ["q_proj", "v_proj", "k_proj"])):
        config = json.dumps({**content, "target_modules": targets}).encode()
        files = {"adapter_config.json": config, "adapter_model.safetensors": weights}
        with pytest.raises(NotPossibleError, match="don't fit the config"):
            bench.run(candidate=write_adapter(tmp_path / str(number), files))
        bench.shelf.clear()


def test_what_the_revision_does_not_cover_changes_no_answer(bench: Bench, tmp_path: Path) -> None:
    import shutil

    folder = shutil.copytree(bench.folder, tmp_path / "base")
    examples = (Example("where is it?", reference="there"), Example("and what?"))
    expected, _ = bench.run(examples, candidate="strong")
    settings = {"do_sample": True, "repetition_penalty": 5.0, "num_beams": 3, "suppress_tokens": list(range(1, 200))}
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": 0, **settings}))
    elsewhere = {"peft_type": "LORA", "base_model_name_or_path": "/nowhere"}
    (folder / "adapter_config.json").write_text(json.dumps(elsewhere))
    (folder / "additional_chat_templates").mkdir()
    other = Bench(folder, type(bench.shelf)(memory_bytes=8 << 30), bench.adapters)
    found, _ = other.run(examples, candidate="strong")
    assert (found.results, found.reference) == (expected.results, expected.reference)


@pytest.mark.parametrize("key", ["target_modules", "exclude_modules"])
def test_a_pattern_that_never_ends_takes_no_worker_with_it(bench: Bench, tmp_path: Path, key: str) -> None:
    content = json.loads((bench.adapters["strong"] / "adapter_config.json").read_text())
    # Quick on the modules that have weights, which is all that the other checks match.
    slow = {
        "target_modules": r".*\.[qv]_proj|(([a-z._0-9]*)*)*X",
        "exclude_modules": r"(?!.*[qv]_proj)(([a-z._0-9]*)*)*X",
    }
    weights = (bench.adapters["strong"] / "adapter_model.safetensors").read_bytes()
    files = {
        "adapter_config.json": json.dumps({**content, key: slow[key]}).encode(),
        "adapter_model.safetensors": weights,
    }
    with pytest.raises(NotPossibleError, match="too much time"):
        bench.run(candidate=write_adapter(tmp_path / "slow", files))
    bench.shelf.clear()


def test_peft_is_given_no_pattern_that_decides_nothing(bench: Bench, tmp_path: Path) -> None:
    from workers.evaluation.model import _lora_config

    # Peft compiles each of them anew for each module.
    content = json.loads((bench.adapters["strong"] / "adapter_config.json").read_text())
    ranks = {**{f"nowhere{number}": 8 for number in range(4000)}, "q_proj": 4, "self_attn.q_proj": 8}
    folder = write_adapter(tmp_path, {"adapter_config.json": json.dumps({**content, "rank_pattern": ranks}).encode()})
    assert _lora_config(folder, ["model.layers.0.self_attn.q_proj"]).rank_pattern == {"q_proj": 4}


def test_a_pattern_targets_what_peft_targets_with_it(bench: Bench, tmp_path: Path) -> None:
    content = json.loads((bench.adapters["strong"] / "adapter_config.json").read_text())
    weights = (bench.adapters["strong"] / "adapter_model.safetensors").read_bytes()
    patterns = {"target_modules": r".*\.[a-z]_proj", "exclude_modules": r".*\.[ko]_proj"}
    files = {"adapter_config.json": json.dumps({**content, **patterns}).encode(), "adapter_model.safetensors": weights}
    evaluation, _ = bench.run(candidate=write_adapter(tmp_path / "pattern", files))
    assert evaluation.reference == bench.run(candidate="strong")[0].reference
