"""Validation as a worker does it: a real model, a real database, and a report that says what was run."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cachecontrol.services.commands import warm_command
from cachecontrol.services.residencies import warm_version
from registry.base_models.description import describe_folder
from registry.models import Adapter, BaseModelRevision, Version
from registry.naming import object_key
from registry.selectors import probe_reference
from registry.services.approvals import approve_version
from registry.services.base_models import register_base_revision
from registry.services.evaluations import keep_evaluation_set, set_evaluation_gates
from registry.services.stores import artifact_store
from registry.services.uploads import finalize_upload, start_upload
from registry.services.validation import request_revalidation
from registry.signing.manifest import SignedFile
from registry.states import Role, VersionState
from tests.factories.adapters import manifest_of
from tests.factories.cachecontrol import make_node
from tests.factories.registry import make_actor, make_adapter, make_member
from workers.jobs import evaluation
from workers.jobs.validation import revalidate_version, validate_version
from workers.node.commands import parse_warm

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("sent", "store", "signer"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]
SET = [{"prompt": "where is it?", "reference": "there", "forbidden": "never"}, {"prompt": "what?", "reference": "it"}]


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.factories.tiny_model import NAME, write_tiny_model

    root = tmp_path_factory.mktemp("bases")
    write_tiny_model(root / NAME / "r1")
    return root


@pytest.fixture
def revision(bases: Path, settings: Any) -> Iterator[BaseModelRevision]:
    from tests.factories.tiny_model import NAME

    settings.BASE_MODEL_FOLDERS = bases
    description = describe_folder(bases / NAME / "r1")
    yield register_base_revision(actor=make_actor(), name=NAME, label="r1", description=description, max_rank=16)
    evaluation._shelf.cache_clear()


@pytest.fixture
def adapter(revision: BaseModelRevision) -> Adapter:
    return make_adapter(base_model=revision.base_model)


def push(adapter: Adapter, bases: Path, *, seed: int = 1, strength: float = 0.5, embeds: bool = False) -> Version:
    """Upload an adapter and validate it, as an uploader and a worker do."""
    from tests.factories.tiny_model import NAME, tiny_adapter

    content = tiny_adapter(bases / NAME / "r1", seed=seed, strength=strength, embeds=embeds)
    uploader = make_member(adapter.tenant, Role.UPLOADER)
    files = [SignedFile(**file) for file in manifest_of(content)]
    version = start_upload(actor=uploader, adapter=adapter, base_revision="r1", files=files).version
    for file in files:
        key = object_key(tenant=adapter.tenant.name, sha256=file.sha256)
        artifact_store().put_stream(key, io.BytesIO(content[file.path]), size=file.size, sha256=file.sha256)
    finalize_upload(actor=uploader, version=version)
    validate_version(version_id=version.pk)
    version.refresh_from_db()
    return version


def checks(version: Version) -> dict[str, dict[str, Any]]:
    report = version.reports.first()
    assert report is not None
    return {check["name"]: check for check in report.report["checks"]}


def test_the_copy_of_the_embedding_that_peft_saves_is_told_from_a_changed_one(adapter: Adapter, bases: Path) -> None:
    version = push(adapter, bases, embeds=True)
    assert version.state == VersionState.CANDIDATE, version.state_message
    assert "copy of the base's own embedding" in version.state_message


def test_a_version_is_run_on_its_base_beside_the_one_that_is_served_now(adapter: Adapter, bases: Path) -> None:
    reviewer = make_member(adapter.tenant, Role.REVIEWER)
    keep_evaluation_set(actor=reviewer, tenant=adapter.tenant, name="smoke", examples=SET)

    served = push(adapter, bases, seed=1)
    assert served.state == VersionState.CANDIDATE, served.state_message
    assert checks(served)["evaluation"]["evidence"]["compared_with"] is None
    served = approve_version(actor=reviewer, version=served, digest=served.root_digest)

    second = push(adapter, bases, seed=2)
    found = checks(second)["evaluation"]["evidence"]
    assert found["compared_with"] == str(served.pk)
    assert set(found["metrics"]) == {"base", "candidate", "current"}

    set_evaluation_gates(actor=reviewer, tenant=adapter.tenant, gates={"max_perplexity": 1.0})
    third = push(adapter, bases, seed=4)
    assert third.state == VersionState.REJECTED
    assert "max perplexity 1" in third.state_message

    nothing = push(adapter, bases, seed=3, strength=0.0)
    assert nothing.state == VersionState.REJECTED
    assert_nodes_get_the_reference(served)
    assert_a_new_report_leaves_an_approved_version_and_voids_a_candidates_approvals(reviewer, served, second)


def assert_nodes_get_the_reference(version: Version) -> None:
    node = make_node(base_revision=version.base_revision)
    residency = warm_version(actor=make_actor(), node=node, version=version)
    command = parse_warm(warm_command(residency))
    assert command.reference == probe_reference(version_id=version.pk)
    assert command.reference is not None
    assert checks(version)["effect"]["evidence"]["reference_digest"] == command.reference.digest


def assert_a_new_report_leaves_an_approved_version_and_voids_a_candidates_approvals(
    reviewer: Any, approved: Version, candidate: Version
) -> None:
    before = {version.pk: version.validation_digest for version in (approved, candidate)}
    set_evaluation_gates(
        actor=reviewer, tenant=approved.adapter.tenant, gates={"max_perplexity": 1.0, "enforcement": "warn"}
    )
    for version in (approved, candidate):
        asked = request_revalidation(actor=reviewer, version=version, reason="new gates")
        revalidate_version(revalidation_id=asked.pk)
        revalidate_version(revalidation_id=asked.pk)
        version.refresh_from_db()
        assert version.reports.count() == 2
    assert approved.validation_digest == before[approved.pk]
    assert (candidate.state, candidate.validation_digest != before[candidate.pk]) == (VersionState.CANDIDATE, True)
