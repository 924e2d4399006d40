"""The command line's words for cache policies, against the real API without a socket."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from client.cli.main import cli
from client.cli.session import Session
from registry.actors import system_actor
from registry.models import BaseModel, Person, Tenant
from registry.services.tokens import create_platform_token
from registry.states import Role, Scope, TokenKind
from tests.factories.api_transport import ApiTransport
from tests.factories.cachecontrol import make_node
from tests.factories.registry import make_adapter, make_base_revision, make_person, make_tenant

Run = Callable[..., Result]
pytestmark = pytest.mark.django_db
ISSUE = """\
base_model: llama-3.1-8b-instruct
adapter_cache:
  gpu_hot:  {max_adapters: 16, max_memory_gb: 4, eviction_policy: weighted_lru}
  disk_cache: {max_size_gb: 500, verify_checksum: true}
"""


@pytest.fixture
def base(db: None) -> BaseModel:
    return make_base_revision(base_model=BaseModel.objects.create(name="llama-3.1-8b-instruct")).base_model


@pytest.fixture
def tenant(base: BaseModel) -> Tenant:
    owner = make_tenant(name="acme")
    make_adapter(tenant=owner, base_model=base)
    make_node(base_revision=base.revisions.get(), engine_kind="sglang")
    return owner


def running(person: Person) -> Run:
    """``running(person)("inbox")``: the command as that person."""
    scopes = [Scope.READ, Scope.ADMIN]
    token = create_platform_token(
        actor=system_actor("test"), name="cli", kind=TokenKind.PERSON, scopes=scopes, person=person
    )
    environ = {"LOREKEEPER_URL": "http://testserver", "LOREKEEPER_TOKEN": token.text}

    def invoke(*words: str, code: int = 0) -> Result:
        session = Session(environ=environ, transport=ApiTransport())
        result = CliRunner().invoke(cli, ["cache-policy", *words], obj=session)
        assert result.exit_code == code, result.output
        return result

    return invoke


@pytest.fixture
def ada(db: None) -> Run:
    return running(make_person(is_platform_admin=True, email="ada@example.com"))


@pytest.fixture
def ben(db: None) -> Run:
    return running(make_person(is_platform_admin=True, email="ben@example.com"))


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / "policy.yaml"
        path.write_text(text)
        return str(path)

    return write


def shown(result: Result) -> Any:
    return json.loads(result.stdout)


def test_a_policy_goes_from_file_to_force_and_back(
    base: BaseModel, ada: Run, ben: Run, file: Callable[[str], str]
) -> None:
    name = base.name
    assert "The built-in default" in ada("show", name).stdout
    proposed = ada("propose", file(ISSUE), "--comment", "for the new nodes")
    assert "adapter_cache.gpu_hot.eviction_policy" in proposed.stdout
    assert "Policy 1 of llama-3.1-8b-instruct is proposed" in proposed.stderr
    assert "another platform admin" in ada("approve", name, "1", code=1).stderr
    assert "Look at it again" in ben("approve", name, "1", "--digest", "0" * 64, code=1).stderr
    approved = ben("approve", name, "1").stdout
    assert "density" in approved
    assert "active" in approved
    assert ISSUE.strip() in ada("show", name, "1").stdout
    ada("propose", file(ISSUE.replace("16", "8")))
    assert shown(ben("diff", name, "2", "--json"))["changes"] == [
        {"path": "adapter_cache.gpu_hot.max_adapters", "before": 16, "after": 8}
    ]
    assert len(shown(ben("diff", name, "2", "--against", "0", "--json"))["changes"]) == 4
    ben("approve", name, "2")
    assert shown(ada("roll-back", name, "--json"))["number"] == 1
    assert "The built-in default is in force" in ada("roll-back", name, "--reason", "all of it").stdout
    assert "nothing before them" in ada("roll-back", name, code=1).stderr
    assert (
        shown(ada("roll-back", name, "--to", "2", "--json"))["document"]["adapter_cache"]["gpu_hot"]["max_adapters"]
        == 8
    )
    rows = shown(ada("list", name, "--json"))["results"]
    assert [(row["number"], row["state"]) for row in rows] == [(2, "active"), (1, "superseded")]
    assert [row["decided_by"] for row in rows] == ["ben@example.com"] * 2


def test_a_proposal_is_declined_with_a_reason(base: BaseModel, ada: Run, ben: Run, file: Callable[[str], str]) -> None:
    ada("propose", file(ISSUE))
    assert "too small" in ben("decline", base.name, "1", "--reason", "too small").stdout
    assert shown(ada("list", base.name, "--state", "declined", "--json"))["results"][0]["reason"] == "too small"


def test_a_wrong_file_is_refused_before_it_is_sent(file: Callable[[str], str]) -> None:
    nobody = CliRunner()
    wrong = file(ISSUE.replace("true", "false"))
    refused = nobody.invoke(cli, ["cache-policy", "check", wrong], obj=Session(environ={}))
    assert refused.exit_code == 1
    assert "adapter_cache.disk_cache.verify_checksum: has to be true" in refused.stderr
    refused = nobody.invoke(cli, ["cache-policy", "check", file(r'base_model: "\UFFFFFFFF"')], obj=Session(environ={}))
    assert refused.exit_code == 1
    assert "out of range (line 1" in refused.stderr
    fine = nobody.invoke(cli, ["cache-policy", "check", file(ISSUE)], obj=Session(environ={}))
    assert "A sound policy for llama-3.1-8b-instruct" in fine.stdout


def test_a_tenant_sees_its_own_quota_and_no_policy(
    base: BaseModel, tenant: Tenant, ada: Run, ben: Run, file: Callable[[str], str]
) -> None:
    quotas = "quotas: {tenants: {acme: {gpu_slots: {floor: 1, ceiling: 2}, disk_mb: {ceiling: 5}}, other: {}}}"
    ada("propose", file(f"base_model: {base.name}\ntenants: {{acme: {{sla: premium}}}}\n{quotas}"))
    ben("approve", base.name, "1")
    mia = running(make_person(roles={tenant: [Role.VIEWER]}))
    (mine,) = shown(mia("quotas", "--tenant", "acme", "--json"))["results"]
    assert (mine["sla"], mine["priority_weight"]) == ("premium", 2)
    assert mine["gpu_slots"] == {"floor": 1, "ceiling": 2, "used": 0}
    assert mine["disk_bytes"] == {"floor": 0, "ceiling": 5_000_000, "used": 0}
    assert mine["loads_per_minute"] == {"limit": None, "used": 0}
    assert mine["queue_places"] == {"limit": 128, "used": 0}
    assert "0/2 (1+)" in ada("quotas", base.name).stdout
    for words in (("quotas", base.name), ("show", base.name), ("show", base.name, "1"), ("list", base.name)):
        assert "Only a platform admin" in mia(*words, code=1).stderr
    stranger = running(make_person(roles={make_tenant(): [Role.VIEWER]}))
    assert "no such tenant" in stranger("quotas", "--tenant", "acme", code=1).stderr
    assert "Name a base model" in ada("quotas", code=1).stderr
