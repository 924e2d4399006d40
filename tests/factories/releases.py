"""Plain functions that make aliases and releases through the services, so that their history is a real one."""

import json
from typing import Any

from django.db import connection, transaction

from registry.actors import Actor
from registry.models import Tenant, Version
from registry.naming import default_alias_name
from registry.states import Role
from releases.models import Alias, Release
from releases.selectors import lock_release
from releases.services.aliases import set_alias
from releases.services.defaults import begin_default_alias
from releases.services.releases.approve import approve_release
from releases.services.releases.make import make_release
from releases.services.releases.steps import begin_step, pass_step, present_step, promote
from releases.services.releases.verbs import start_release
from releases.states import RUNNING_STATES, StepKind, StepState
from tests.factories.registry import make_actor, make_member, make_version, next_name

# One canary step, no shadow; as short as a plan can be.
SHORT_PLAN: dict[str, Any] = {
    "shadow": None,
    "canary": [{"percent": 10.0, "min_minutes": 0.0, "min_samples": 0}],
    "approvals": 0,
}


def make_alias(*, version: Version | None = None, name: str | None = None) -> Alias:
    """An alias at revision 1."""
    return point_alias(name=name or next_name("alias"), version=version or make_version())


def point_alias(*, name: str, version: Version, actor: Actor | None = None) -> Alias:
    """Point the alias ``name`` of the version's tenant at ``version``."""
    tenant: Tenant = version.adapter.tenant
    return set_alias(actor=actor or make_actor(), tenant=tenant, name=name, adapter=version.adapter, version=version)


def make_default(version: Version) -> Alias:
    """The default alias of the version's adapter, pointing at it, as its first approval makes it."""
    begin_default_alias(actor=make_actor(), version_id=version.pk)
    return Alias.objects.get(tenant=version.adapter.tenant, name=default_alias_name(version.adapter.name))


def commit() -> None:
    """Have the database do what it does when a transaction commits, in a test whose never does."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def begin_release(
    *,
    alias: Alias | None = None,
    candidate: Version | None = None,
    plan: dict[str, Any] | None = None,
    actor: Actor | None = None,
) -> Release:
    """A pending release, made by a release manager; without a plan, by ``SHORT_PLAN``, which needs no approval."""
    alias = alias or make_alias()
    return make_release(
        actor=actor or make_member(alias.tenant, Role.RELEASE_MANAGER),
        alias=alias,
        candidate=candidate or make_version(adapter=alias.adapter),
        plan_text=json.dumps(SHORT_PLAN if plan is None else plan),
    )


def consent(release: Release, *, actor: Actor | None = None) -> Release:
    """The release with one more approval."""
    actor = actor or make_member(release.alias.tenant, Role.REVIEWER)
    return approve_release(actor=actor, release=release, digest=release.digest)


def run_release(release: Release | None = None, *, until: int = 0) -> Release:
    """The release started and, as the controller does it, taken to the step with that index."""
    release = start_release(actor=make_actor(), release=release or begin_release())
    while release.step < until:
        release = take_on(release)
    return release


@transaction.atomic
def take_on(release: Release) -> Release:
    """The release as a controller takes it on whose verdict is always fine.

    The running step has passed and, unless a gate waits, the next one has begun or the alias is moved.
    """
    release = lock_release(release.pk)
    if release.state in RUNNING_STATES and present_step(release).state == StepState.RUNNING:
        pass_step(release, actor=make_actor(), sentence="Fine.")
    if release.state not in RUNNING_STATES:
        return release
    if present_step(release).kind == StepKind.PROMOTE:
        return promote(release, actor=make_actor())
    begin_step(release, actor=make_actor())
    return release
