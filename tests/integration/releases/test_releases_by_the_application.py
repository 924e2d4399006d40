"""Web and workers own nothing: everything that is done to releases works with the grants of their role alone."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import ProgrammingError, connection
from django.utils import timezone

from deploy.embedded.postgres import APP
from registry.models import Version
from registry.services.withdrawals import revoke_version
from registry.states import Role
from releases.models import Alias, Release, Rollback
from releases.services.aliases import roll_back_alias
from releases.services.releases.rollback import roll_back_release
from releases.services.releases.steps import hold_release, present_step
from releases.services.releases.verbs import (
    abort_release,
    pause_release,
    promote_release,
    resume_release,
    retry_release,
)
from releases.services.templates import write_template
from releases.states import PauseKind
from releases.transitions import note_look
from tests.factories.registry import make_actor, make_member, make_version
from tests.factories.releases import SHORT_PLAN, begin_release, consent, point_alias, run_release, take_on

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent")]

CANARY = 2
FORBIDDEN = (
    "DELETE FROM releases_release",
    "UPDATE releases_release SET plan = '{}'",
    "UPDATE releases_release SET digest = ''",
    "DELETE FROM releases_releasestep",
    "UPDATE releases_releasestep SET spec = '{}'",
    "UPDATE releases_releaseapproval SET digest = ''",
    "DELETE FROM releases_releaseapproval",
    "UPDATE releases_rollback SET asked_at = now()",
    "DELETE FROM releases_rollback",
    "UPDATE releases_releasetemplate SET text = ''",
)


@pytest.fixture
def versions() -> list[Version]:
    first = make_version()
    return [first, *(make_version(adapter=first.adapter) for _number in range(3))]


@pytest.fixture
def as_application(postgres: Any, versions: list[Version]) -> Iterator[None]:
    """Django's connection belongs to the application's role while the test runs."""
    owner = {name: connection.settings_dict[name] for name in ("USER", "PASSWORD")}
    connection.close()
    connection.settings_dict.update(USER=APP, PASSWORD=postgres.passwords.of(APP))
    yield
    connection.close()
    connection.settings_dict.update(owner)


@pytest.mark.usefixtures("as_application")
def test_a_release_goes_all_ways_by_the_applications_role(versions: list[Version]) -> None:
    actor = make_actor()
    tenant = versions[0].adapter.tenant
    manager = make_member(tenant, Role.RELEASE_MANAGER)
    write_template(actor=manager, tenant=tenant, name="quick", text="approvals: 0")
    alias = point_alias(name="support", version=versions[0])
    release = consent(begin_release(alias=alias, candidate=versions[1], actor=manager, plan=SHORT_PLAN))
    running = run_release(release, until=CANARY)
    note_look(running, present_step(running), sentence="Fine.", verdict={"outcome": "pass"}, looked_at=timezone.now())
    pause_release(actor=manager, release=release)
    resume_release(actor=manager, release=release)
    hold_release(Release.objects.get(pk=release.pk), actor=actor, pause=PauseKind.TROUBLE, sentence="Stuck.")
    retry_release(actor=manager, release=release)
    assert take_on(release).state == "promoted"
    roll_back_release(actor=manager, release=release)
    alias = Alias.objects.get(pk=alias.pk)
    promote_release(actor=manager, release=begin_release(alias=alias, candidate=versions[1]))
    roll_back_alias(actor=manager, alias=alias)
    alias = Alias.objects.get(pk=alias.pk)
    abort_release(actor=manager, release=begin_release(alias=alias, candidate=versions[2]))
    doomed = run_release(begin_release(alias=alias, candidate=versions[3]), until=CANARY)
    revoke_version(actor=actor, version=versions[3], reason="poisoned")
    doomed.refresh_from_db()
    assert doomed.state == "rolled_back"
    assert Rollback.objects.update(settled_at=timezone.now()) == 3


@pytest.mark.usefixtures("as_application")
@pytest.mark.parametrize("sql", FORBIDDEN)
def test_the_applications_role_can_not_rewrite_what_was_said(sql: str) -> None:
    with pytest.raises(ProgrammingError, match="permission denied"), connection.cursor() as cursor:
        cursor.execute(sql)
