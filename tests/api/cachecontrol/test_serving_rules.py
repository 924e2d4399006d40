"""What a tenant may ask of the gateway, over the real API and by the command line, without a socket."""

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from cachecontrol.models import TenantRules
from client.cli.main import cli
from client.cli.session import Session
from registry.actors import system_actor
from registry.models import AuditRecord, BaseModel, Person, Tenant
from registry.services.tokens import create_platform_token
from registry.states import Role, Scope, TokenKind
from tests.factories.api_transport import ApiTransport
from tests.factories.registry import make_person, make_tenant

Run = Callable[..., Result]
pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant(db: None) -> Tenant:
    BaseModel.objects.create(name="smollm2")
    return make_tenant(name="acme")


def running(person: Person) -> Run:
    """``running(person)("show", "acme")``: the command as that person."""
    scopes = [Scope.READ, Scope.ADMIN]
    token = create_platform_token(
        actor=system_actor("test"), name="cli", kind=TokenKind.PERSON, scopes=scopes, person=person
    )
    environ = {"LOREKEEPER_URL": "http://testserver", "LOREKEEPER_TOKEN": token.text}

    def invoke(*words: str, code: int = 0) -> Result:
        session = Session(environ=environ, transport=ApiTransport())
        result = CliRunner().invoke(cli, ["tenant-rules", *words], obj=session)
        assert result.exit_code == code, result.output
        return result

    return invoke


@pytest.fixture
def admin(tenant: Tenant) -> Run:
    return running(make_person(is_platform_admin=True))


def member_of(tenant: Tenant, *roles: Role) -> Run:
    return running(make_person(roles={tenant: roles}))


def rules(run: Run) -> dict[str, object]:
    found: dict[str, object] = json.loads(run("show", "acme", "--json").output)
    return found


def test_a_tenant_without_rules_has_no_limits(admin: Run) -> None:
    assert rules(admin) == {
        "requests_per_minute": None,
        "tokens_per_minute": None,
        "concurrent_requests": None,
        "gpu_ms_per_minute": None,
        "base_models": [],
        "allows_shadow": True,
    }
    assert not TenantRules.objects.exists()


def test_what_is_not_named_stays_as_it_is_and_zero_takes_a_limit_away(admin: Run) -> None:
    admin("set", "acme", "--requests-per-minute", "60", "--base-model", "smollm2", "--no-shadow")
    shown = admin("set", "acme", "--tokens-per-minute", "100000").output
    assert "100,000" in shown
    assert rules(admin) == {
        "requests_per_minute": 60,
        "tokens_per_minute": 100_000,
        "concurrent_requests": None,
        "gpu_ms_per_minute": None,
        "base_models": ["smollm2"],
        "allows_shadow": False,
    }
    admin("set", "acme", "--requests-per-minute", "0", "--no-base-model", "--shadow")
    found = rules(admin)
    assert (found["requests_per_minute"], found["base_models"], found["allows_shadow"]) == (None, [], True)


def test_each_change_is_one_record_and_what_changes_nothing_is_none(admin: Run) -> None:
    for _ in range(2):
        admin("set", "acme", "--concurrent-requests", "8")
    (record,) = AuditRecord.objects.filter(chain="acme", action="tenant:serving_rules:set")
    assert record.before is not None
    assert record.after is not None
    assert (record.before["concurrent_requests"], record.after["concurrent_requests"]) == (None, 8)


def test_a_base_model_that_is_not_there_is_refused_by_name(admin: Run) -> None:
    refused = admin("set", "acme", "--base-model", "gpt-9", code=1)
    assert "gpt-9" in refused.output
    assert not AuditRecord.objects.filter(action="tenant:serving_rules:set").exists()


def test_the_tenants_own_people_read_their_rules_and_change_nothing(tenant: Tenant, admin: Run) -> None:
    admin("set", "acme", "--requests-per-minute", "60")
    member = member_of(tenant, *Role)
    assert rules(member)["requests_per_minute"] == 60
    member("set", "acme", "--requests-per-minute", "0", code=1)
    assert rules(admin)["requests_per_minute"] == 60


def test_outsiders_do_not_learn_that_there_is_such_a_tenant(tenant: Tenant) -> None:
    outsider = member_of(make_tenant(name="other"), Role.OPERATOR)
    refused, absent = (outsider("show", name, code=1).output for name in ("acme", "nowhere"))
    assert "There is no such tenant" in refused
    assert refused == absent


def test_a_limit_beyond_reason_is_refused(admin: Run) -> None:
    refused = admin("set", "acme", "--tokens-per-minute", str(2**31), code=1)
    assert "tokens_per_minute" in refused.output
