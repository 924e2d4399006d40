"""Long lists are read through their indexes: what Postgres does where there is much to look through, and it knows."""

from typing import Any

import pytest
from django.db import connection
from django.db.models import Model, QuerySet
from django.utils import timezone

from registry.actors import system_actor
from registry.audit import append_record
from registry.catalogue.search import search_adapters, search_versions
from registry.catalogue.versions import list_records_of
from registry.models import Adapter, AuditRecord, BaseModel, BaseModelRevision, Person, Tenant, Version
from registry.states import Role, VersionState
from tests.factories.registry import digest_for, make_actor, make_member, make_person, make_version

pytestmark = pytest.mark.django_db
MANY = 5000
# One of so many is in the state that is looked for: more than a page of them, and few of all.
SELDOM = 20
PAGE = 51
ANALYZED: list[type[Model]] = [Adapter, AuditRecord, BaseModel, BaseModelRevision, Person, Tenant, Version]


def plan(found: QuerySet[Any]) -> str:
    """What Postgres would do by what its tables hold now, whatever statistics an earlier test has left."""
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {', '.join(model._meta.db_table for model in ANALYZED)}")
    return found.explain()


def make_many() -> None:
    one = make_version()
    Adapter.objects.bulk_create(
        Adapter(tenant=one.adapter.tenant, name=f"other-{number}", base_model=one.adapter.base_model)
        for number in range(MANY // 5)
    )
    Version.objects.bulk_create(
        Version(
            adapter=one.adapter,
            name=f"other-{number}",
            base_revision=one.base_revision,
            uploader=one.uploader,
            root_digest=digest_for(f"{one} {number}"),
            engine_name=f"{one.engine_name}-{number}",
            state=(VersionState.APPROVED if number % SELDOM else VersionState.CANDIDATE).value,
            state_changed_at=timezone.now(),
            rank=one.rank,
            target_modules=one.target_modules,
            validation_digest=one.validation_digest,
        )
        for number in range(MANY)
    )


def test_versions_are_listed_and_found_through_indexes() -> None:
    make_many()
    admin = make_actor(make_person(is_platform_admin=True))
    every = search_versions(actor=admin).order_by("-created_at", "-pk")[:PAGE]
    assert "version_by_age" in plan(every)
    in_state = search_versions(actor=admin).filter(state="candidate").order_by("-created_at", "-pk")[:PAGE]
    assert "version_in_state_by_age" in plan(in_state)
    assert "version_digest_begins" in plan(Version.objects.filter(root_digest__startswith="0123abcd"))
    assert "version_name_begins" in plan(Version.objects.filter(name__startswith="2026-11"))
    assert "adapter_name_begins" in plan(search_adapters(actor=admin, text="tone"))


def test_what_the_audit_log_says_of_a_version_is_found_through_an_index() -> None:
    version = make_version()
    tenant = version.adapter.tenant
    for number in range(400):
        thing = {"kind": "version", "id": str(number)}
        append_record(actor=system_actor("test"), chain=tenant.name, action="tenant:thing:do", object_=thing)
    auditor = make_member(tenant, Role.AUDITOR)
    assert "audit_of_object" in plan(list_records_of(actor=auditor, version=version).order_by("-seq")[:PAGE])
