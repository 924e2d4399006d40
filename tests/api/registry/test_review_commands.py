"""The command line's words for reviews, policies, retention and lineage, against the real API without a socket."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from click.testing import CliRunner, Result
from django.utils import timezone

from client.cli.main import cli
from client.cli.session import Session
from registry import ports
from registry.actors import system_actor
from registry.models import Adapter, Person, Version
from registry.services.tokens import create_platform_token
from registry.states import Role, Scope, TokenKind, VersionState
from tests.factories.api_transport import ApiTransport
from tests.factories.registry import make_person, make_version

Run = Callable[..., Result]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent", "signer", "store")]


@pytest.fixture
def run() -> Callable[[Person], Run]:
    """``run(person)("inbox")``: the command as that person."""

    def as_person(person: Person) -> Run:
        scopes = [Scope.READ, Scope.APPROVE, Scope.RELEASE, Scope.ADMIN]
        token = create_platform_token(
            actor=system_actor("test"), name="cli", kind=TokenKind.PERSON, scopes=scopes, person=person
        )
        environ = {"LOREKEEPER_URL": "http://testserver", "LOREKEEPER_TOKEN": token.text}

        def invoke(*words: str) -> Result:
            session = Session(environ=environ, transport=ApiTransport())
            result = CliRunner().invoke(cli, list(words), obj=session)
            assert result.exit_code == 0, result.output
            return result

        return invoke

    return as_person


@pytest.fixture
def ben(adapter: Adapter, run: Callable[[Person], Run]) -> Run:
    return run(make_person(roles={adapter.tenant: [Role.REVIEWER, Role.RELEASE_MANAGER]}))


@pytest.fixture
def root(run: Callable[[Person], Run]) -> Run:
    return run(make_person(is_platform_admin=True))


def ref(version: Version) -> str:
    return str(version)


def test_a_candidate_is_found_discussed_and_approved_by_two(
    adapter: Adapter, ben: Run, root: Run, run: Callable[[Person], Run]
) -> None:
    version = make_version(adapter=adapter, state=VersionState.CANDIDATE)
    cora = run(make_person(roles={adapter.tenant: [Role.REVIEWER]}))
    assert "30 days" in root("policy", "set", "acme", "--required", "2", "--valid-days", "30").stdout
    assert json.loads(root("policy", "set", "acme", "--valid-days", "0", "--json").stdout) == {
        "required": 2,
        "roles": ["reviewer"],
        "only_people": [],
        "required_people": [],
        "validity_days": None,
    }
    assert "for ever" in ben("policy", "show", "acme").stdout
    assert "0/2" in ben("inbox").stdout
    assert "so loud" in ben("comment", ref(version), "so loud").stdout
    assert "1 of 2 approvals" in ben("approve", ref(version)).stderr
    assert "so loud" in cora("review", ref(version)).stdout
    assert "approved" in cora("approve", ref(version), "--comment", "fine").stdout
    assert json.loads(ben("inbox", "--json").stdout) == {"results": []}


def test_an_admin_breaks_the_glass_with_a_reason(adapter: Adapter, root: Run) -> None:
    version = make_version(adapter=adapter, state=VersionState.CANDIDATE)
    done = root("break-glass", ref(version), "--reason", "site down")
    assert "approved" in done.stdout
    assert "audit logs" in done.stderr


def test_a_revocation_says_who_still_holds_it(adapter: Adapter, ben: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    version = make_version(adapter=adapter)
    held = (ports.Holder("n1", "loaded", "absent"),)
    monkeypatch.setattr(ports.PORTS, "holders_of", lambda *, version_id: held)
    assert "still on n1: loaded" in ben("revoke", ref(version), "--reason", "leak").stdout
    assert "n1" in ben("holders", ref(version)).stdout


def test_retention_is_planned_before_it_is_applied(adapter: Adapter, root: Run) -> None:
    old = make_version(adapter=adapter)
    Version.objects.filter(pk=old.pk).update(state_changed_at=timezone.now() - timedelta(days=40))
    name = f"acme/{adapter.name}"
    assert "30 days" in root("retention", "set", name, "--days", "30").stdout
    assert "no" in root("retention", "show", name).stdout
    shown: dict[str, Any] = json.loads(root("retention", "plan", name, "--json").stdout)
    assert shown["versions"] == [{"version": old.name, "state": "approved", "keep": None}]
    assert "removed" in root("retention", "apply", name, "--plan", shown["digest"]).stdout
    old.refresh_from_db()
    assert old.purged_at is not None


def test_versions_are_searched_by_where_they_come_from(adapter: Adapter, ben: Run) -> None:
    found = make_version(adapter=adapter, lineage={"git_commit": "c0" * 20, "metrics": {"loss": 1}})
    make_version(adapter=adapter)
    for words in (("search", "acme"), ("versions", f"acme/{adapter.name}")):
        shown = json.loads(ben(*words, "--commit", "c0" * 20, "--metric", "loss<2", "--json").stdout)
        assert [version["name"] for version in shown["results"]] == [found.name]
