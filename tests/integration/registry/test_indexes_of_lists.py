"""Long lists are read through their indexes: what Postgres would do if looking through whole tables were forbidden."""

from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet

from registry.actors import system_actor
from registry.audit import append_record
from registry.catalogue.search import search_adapters, search_versions
from registry.catalogue.versions import list_records_of
from registry.models import Version
from registry.states import Role
from tests.factories.registry import make_actor, make_person, make_version

pytestmark = pytest.mark.django_db


def plan(found: QuerySet[Any]) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        # A table with nothing in it is sorted in no time.
        cursor.execute("SET LOCAL enable_sort = off")
        # Nor does it matter there with which table a join begins.
        cursor.execute("SET LOCAL join_collapse_limit = 1")
    return found.explain()


def test_versions_are_listed_and_found_through_indexes() -> None:
    admin = make_actor(make_person(is_platform_admin=True))
    every = search_versions(actor=admin).order_by("-created_at", "-pk")[:51]
    assert "version_by_age" in plan(every)
    in_state = search_versions(actor=admin).filter(state="candidate").order_by("-created_at", "-pk")[:51]
    assert "version_in_state_by_age" in plan(in_state)
    assert "version_digest_begins" in plan(Version.objects.filter(root_digest__startswith="0123abcd"))
    assert "version_name_begins" in plan(Version.objects.filter(name__startswith="2026-11"))
    assert "adapter_name_begins" in search_adapters(actor=admin, text="tone").explain()


def test_what_the_audit_log_says_of_a_version_is_found_through_an_index() -> None:
    version = make_version()
    auditor = make_actor(make_person(roles={version.adapter.tenant: [Role.AUDITOR]}))
    chain = version.adapter.tenant.name
    for number in range(400):
        thing = {"kind": "version", "id": str(number)}
        append_record(actor=system_actor("test"), chain=chain, action="tenant:thing:do", object_=thing)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE registry_auditrecord")
    assert "audit_of_object" in plan(list_records_of(actor=auditor, version=version).order_by("-seq")[:51])
