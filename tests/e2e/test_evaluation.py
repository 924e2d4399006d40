"""SmolLM2 and two adapters that peft has trained, evaluated as the worker does it; and that worker killed."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from deploy.demo.materials import DEFAULT_CACHE, ensure_adapters, ensure_base_model
from deploy.demo.recipes import BASE_NAME, BASE_REVISION
from deploy.demo.voices import BRISK, EXCHANGES, WARM, spoken
from registry.base_models.description import describe_folder
from registry.models import Adapter, Version
from registry.naming import object_key
from registry.ports import PORTS
from registry.services.base_models import register_base_revision
from registry.services.evaluations import keep_evaluation_set, set_evaluation_gates
from registry.services.stores import artifact_store
from registry.services.uploads import finalize_upload, start_upload
from registry.signing.manifest import SignedFile
from registry.states import Role, VersionState
from tests.factories.adapters import manifest_of
from tests.factories.registry import make_actor, make_adapter, make_member
from workers.jobs.validation import validate_version

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("sent", "store", "signer"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]
ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / DEFAULT_CACHE
FORBIDDEN = "(?i)short answer"
SET = [{"prompt": each.question, "reference": spoken(WARM, each), "forbidden": FORBIDDEN} for each in EXCHANGES[:3]]


@pytest.fixture(scope="module")
def adapters() -> dict[str, Path]:
    ensure_base_model(CACHE)
    return ensure_adapters(CACHE, (WARM, BRISK))[0]


@pytest.fixture
def line(adapters: dict[str, Path], settings: Any, tmp_path: Path) -> Adapter:
    """An adapter on the real base, which the worker finds where an operator would put it."""
    folder = ensure_base_model(CACHE)[0].resolve()
    link = tmp_path / "bases" / BASE_NAME / BASE_REVISION
    link.parent.mkdir(parents=True)
    link.symlink_to(folder)
    settings.BASE_MODEL_FOLDERS = tmp_path / "bases"
    revision = register_base_revision(
        actor=make_actor(), name=BASE_NAME, label=BASE_REVISION, description=describe_folder(folder), max_rank=16
    )
    return make_adapter(base_model=revision.base_model)


def upload(line: Adapter, folder: Path) -> Version:
    content = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    uploader = make_member(line.tenant, Role.UPLOADER)
    files = [SignedFile(**file) for file in manifest_of(content)]
    version = start_upload(actor=uploader, adapter=line, base_revision=BASE_REVISION, files=files).version
    for file in files:
        key = object_key(tenant=line.tenant.name, sha256=file.sha256)
        artifact_store().put_stream(key, io.BytesIO(content[file.path]), size=file.size, sha256=file.sha256)
    return finalize_upload(actor=uploader, version=version)


def validated(version: Version) -> Version:
    began = time.monotonic()
    validate_version(version_id=version.pk)
    version.refresh_from_db()
    print(f"{version}: validated in {time.monotonic() - began:.1f} s, {evidence(version)['metrics']['candidate']}")
    return version


def evidence(version: Version) -> dict[str, Any]:
    report = version.reports.first()
    assert report is not None
    return next(check["evidence"] for check in report.report["checks"] if "worst" in check["evidence"])


def test_a_trained_adapter_is_told_from_its_base_and_from_another_voice(
    line: Adapter, adapters: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    reviewer = make_member(line.tenant, Role.REVIEWER)
    keep_evaluation_set(actor=reviewer, tenant=line.tenant, name="voice", examples=SET)
    gates = {"max_forbidden_hits": 0, "max_perplexity": 3.0, "max_perplexity_increase": 0.5}
    set_evaluation_gates(actor=reviewer, tenant=line.tenant, gates=gates)

    warm = validated(upload(line, adapters["warm"]))
    assert warm.state == VersionState.CANDIDATE, warm.state_message
    metrics = evidence(warm)["metrics"]
    assert metrics["candidate"]["perplexity"] < 3 < metrics["base"]["perplexity"]
    assert metrics["candidate"]["token_agreement"] > metrics["base"]["token_agreement"]

    monkeypatch.setattr(PORTS, "alias_targets", lambda *, adapter_id: {f"{line.name}.default": warm.pk})
    brisk = validated(upload(line, adapters["brisk"]))
    assert brisk.state == VersionState.REJECTED
    for gate in gates:
        assert f"“{gate.replace('_', ' ')}" in brisk.state_message
    worst = evidence(brisk)["worst"][0]
    assert worst["candidate"]["answer"].startswith(BRISK.phrase)
    assert worst["current"]["answer"].startswith(WARM.phrase)


def test_a_worker_that_is_killed_in_the_middle_leaves_a_version_that_another_validates(
    line: Adapter, adapters: dict[str, Path], tmp_path: Path, settings: Any
) -> None:
    keep_evaluation_set(
        actor=make_member(line.tenant, Role.REVIEWER), tenant=line.tenant, name="voice", examples=SET * 4
    )
    version = upload(line, adapters["warm"])
    with subprocess.Popen(worker(version), env=environment(settings), cwd=ROOT) as process:
        wait_until_it_runs(version)
        process.send_signal(signal.SIGKILL)
    version.refresh_from_db()
    assert (version.state, version.evaluation_attempts) == (VersionState.VALIDATING, 1)
    validate_version(version_id=version.pk)
    version.refresh_from_db()
    assert (version.state, version.evaluation_attempts) == (VersionState.CANDIDATE, 0)
    assert version.reports.count() == 1


def worker(version: Version) -> list[str]:
    code = (
        "import django; django.setup(); from uuid import UUID; from workers.jobs.validation import validate_version;"
        f"validate_version(version_id=UUID('{version.pk}'))"
    )
    return [sys.executable, "-c", code]


def environment(settings: Any) -> dict[str, str]:
    """What a worker process is started with, on the tests' own database and store."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "LOREKEEPER_DB_NAME": str(connection.settings_dict["NAME"]),
        "LOREKEEPER_STORE_FOLDER": str(settings.STORE["folder"]),
        "LOREKEEPER_BASE_MODEL_FOLDERS": str(settings.BASE_MODEL_FOLDERS),
    }


def wait_until_it_runs(version: Version) -> None:
    deadline = time.monotonic() + 60
    while not Version.objects.filter(pk=version.pk, evaluation_attempts=1).exists():
        assert time.monotonic() < deadline, "the worker never began to run the model"
        time.sleep(0.1)
    time.sleep(2)
