"""The first account: audited, its tokens for nobody else's eyes, and to be taken back."""

import json
import stat
from pathlib import Path

import pytest
from django.core.management import call_command

from registry.errors import NotAuthenticated, NotFound
from registry.models import AuditRecord
from registry.services.bootstrap import bootstrap_platform, write_secret_file
from registry.services.tokens import authenticate_token
from registry.states import Scope

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


def test_who_becomes_platform_admin_stands_in_the_audit_log_once(tmp_path: Path) -> None:
    for _again in range(2):
        bootstrap_platform(admin_email="root@example.com", data_file=tmp_path / "tokens.json")
    record = AuditRecord.objects.get(action="platform:admin:make")
    assert record.object["name"] == "root@example.com"


def test_a_stolen_platform_token_can_be_revoked_and_bootstrap_makes_another(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    bootstrap_platform(admin_email="root@example.com", data_file=file)
    stolen = json.loads(file.read_text())["gateway_token"]
    call_command("revoke_platform_token", stolen.split("_")[1])
    with pytest.raises(NotAuthenticated):
        authenticate_token(text=stolen)
    bootstrap_platform(admin_email="root@example.com", data_file=file)
    assert json.loads(file.read_text())["gateway_token"] != stolen
    assert AuditRecord.objects.filter(action="tenant:token:revoke").count() == 1


def test_a_monitor_gets_a_token_for_metrics_alone(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    bootstrap_platform(admin_email="root@example.com", data_file=file)
    actor = authenticate_token(text=json.loads(file.read_text())["metrics_token"])
    assert (actor.kind, actor.scopes, actor.is_platform_admin) == ("monitor", frozenset({Scope.METRICS}), False)


def test_revoking_a_token_that_does_not_exist_is_told() -> None:
    with pytest.raises(NotFound):
        call_command("revoke_platform_token", "000000000000")


def test_a_secret_is_not_written_into_a_file_that_others_may_read(tmp_path: Path) -> None:
    target = tmp_path / "tokens.json"
    left_behind = tmp_path / ".tokens.json.new"
    left_behind.write_text("")
    left_behind.chmod(0o666)
    write_secret_file(target, "secret")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
