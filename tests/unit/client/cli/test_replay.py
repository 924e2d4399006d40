import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from client.cli.main import cli

POLICY = "base_model: llama\nadapter_cache:\n  cpu_warm: {max_adapters: 1}\n  gpu_hot: {eviction_policy: lru}\n"
TRACE = "t_s,tenant,version,size_mib,reload_ms\n" + "".join(f"{at},acme,tone@{at % 2},10,500\n" for at in range(6))


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "one-place.yaml"
    path.write_text(POLICY)
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "requests.csv"
    path.write_text(TRACE)
    return path


def run(*args: object) -> Result:
    return CliRunner().invoke(cli, ["replay", *map(str, args)])


def test_documents_are_replayed_side_by_side(policy: Path, trace: Path, tmp_path: Path) -> None:
    wider = tmp_path / "two-places.yaml"
    wider.write_text(POLICY.replace("max_adapters: 1", "max_adapters: 2"))
    result = run("--policy", policy, "--policy", wider, "--trace", trace, "--json")
    assert result.exit_code == 0, result.output
    figures = {
        line["document"]: (line["policy"], line["requests"], line["misses"]) for line in json.loads(result.output)
    }
    assert figures == {"one-place.yaml": ("lru", 6, 6), "two-places.yaml": ("lru", 6, 2)}


def test_a_document_is_replayed_with_every_eviction_policy_when_asked(policy: Path, trace: Path) -> None:
    result = run("--policy", policy, "--trace", trace, "--all-eviction-policies")
    assert result.exit_code == 0, result.output
    assert [line.split()[1] for line in result.output.splitlines()[1:]] == [
        "density",
        "weighted_lru",
        "gdsf",
        "lfu",
        "lru",
    ]


def test_a_document_that_is_no_policy_is_refused_with_the_reason(policy: Path, trace: Path) -> None:
    policy.write_text("base_model: llama\nadapter_cache: {gpu_hot: {eviction_policy: random}}\n")
    result = run("--policy", policy, "--trace", trace)
    assert result.exit_code == 1
    assert "eviction_policy" in result.output


def test_a_file_that_is_no_trace_is_refused_with_the_forms_there_are(policy: Path, trace: Path) -> None:
    trace.write_text("when,who\n")
    result = run("--policy", policy, "--trace", trace)
    assert result.exit_code == 1
    assert "t_s,tenant,version" in result.output
