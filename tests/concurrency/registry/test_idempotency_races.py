import threading
from contextlib import suppress
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections
from rest_framework.test import APIClient

from registry.models import Adapter, IdempotentAnswer
from registry.services.idempotency import only_request_with
from registry.services.tokens import create_tenant_token
from registry.states import Role, Scope, TokenKind
from tests.concurrency.racing import race
from tests.factories.registry import make_actor, make_base_revision, make_person, make_tenant

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def post() -> Any:
    tenant, base = make_tenant(), make_base_revision()
    token = create_tenant_token(
        actor=make_actor(),
        tenant=tenant,
        name="t",
        kind=TokenKind.PERSON,
        scopes=[Scope.UPLOAD, Scope.READ],
        person_email=make_person(roles={tenant: [Role.UPLOADER]}).email,
    )
    body = {"name": "line", "base_model": base.base_model.name}

    def send() -> Any:
        headers = {"Authorization": f"Bearer {token.text}", "Idempotency-Key": "k"}
        client: Any = APIClient(raise_request_exception=False)
        return client.post(f"/api/v1/tenants/{tenant.name}/adapters", body, format="json", headers=headers)

    send.prefix = token.token.prefix  # type: ignore[attr-defined]
    return send


def test_the_same_post_at_once_is_done_once(post: Any) -> None:
    answers: list[Any] = race(*[post] * 6)
    done = [answer for answer in answers if answer.status_code == 201]
    rest = [answer for answer in answers if answer.status_code != 201]
    assert len({answer.content for answer in done}) == 1
    assert {(answer.status_code, answer.json()["code"], answer["Retry-After"]) for answer in rest} <= {
        (409, "request_running", "1")
    }
    assert Adapter.objects.filter(name="line").count() == IdempotentAnswer.objects.count() == 1
    assert post()["Idempotent-Replayed"] == "true"


def test_a_request_that_still_runs_holds_its_key_and_one_that_was_killed_does_not(post: Any) -> None:
    running, done, pids = threading.Event(), threading.Event(), []

    def first() -> None:
        try:
            with suppress(DatabaseError), only_request_with(owner=post.prefix, key="k"), connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                pids.append(cursor.fetchone()[0])
                running.set()
                done.wait(10)
        finally:
            connections.close_all()

    thread = threading.Thread(target=first)
    thread.start()
    try:
        assert running.wait(10)
        waiting = post()
        assert (waiting.status_code, waiting["Retry-After"]) == (409, "1")
        with connection.cursor() as cursor:
            # As when its process is killed: the connection is gone, and nothing of its own cleans up.
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", pids)
        assert post().status_code == 201
    finally:
        done.set()
        thread.join(10)
