"""The OpenAPI document: complete, without warnings, and true."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import schemathesis
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.utils import timezone
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.validation import validate_schema
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient
from schemathesis import GenerationMode, checks
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks as openapi_checks

from config.wsgi import application
from registry.api.rest.openapi import openapi_document
from registry.models import Version
from releases.judge.facts import Window
from releases.judge.verdict import Interval, Metric, MetricVerdict, Outcome, Verdict
from releases.models import ReleaseStep, Rollback
from releases.steering.records import record_of
from tests.architecture.route_matrix import body_of
from tests.factories.api_world import ApiWorld, build_world, undone

METHODS = {"get", "post", "put", "patch", "delete"}
# So that several processes share them.
PARTS = 4


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi_document()


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in METHODS
    ]


def test_the_document_is_made_without_a_warning() -> None:
    GENERATOR_STATS.reset()
    made = openapi_document()
    assert made["openapi"].startswith("3.1.")
    assert not GENERATOR_STATS, [*GENERATOR_STATS._error_cache, *GENERATOR_STATS._warn_cache]


def test_every_operation_has_a_name_of_its_own_a_tag_and_problems(document: dict[str, Any]) -> None:
    found = operations(document)
    names = [operation["operationId"] for _method, _path, operation in found]
    assert len(names) == len(set(names))
    assert [name for name in names if not re.fullmatch(r"[a-z]+(_[a-z]+)*", name)] == []
    assert [path for _method, path, operation in found if not operation["tags"]] == []
    problem = {"$ref": "#/components/schemas/Problem"}
    for method, path, operation in found:
        answer = operation["responses"]["default"]["content"]["application/problem+json"]
        assert answer["schema"] == problem, f"{method} {path}"


def test_every_post_takes_an_idempotency_key_and_every_list_a_cursor(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        taken = {parameter["name"] for parameter in operation.get("parameters", [])}
        assert ("Idempotency-Key" in taken) == (method == "post"), path
        if re.search(r'schemas/[A-Za-z]+Page"', json.dumps(operation["responses"].get("200", {}))):
            assert {"cursor", "limit"} <= taken, path


def test_the_document_is_served_to_everybody_as_json_and_yaml(client: Any, document: dict[str, Any]) -> None:
    served = client.get("/api/v1/openapi.json")
    assert served["Content-Type"].startswith("application/vnd.oai.openapi+json")
    assert json.loads(served.content) == json.loads(json.dumps(document))
    assert client.get("/api/v1/openapi.yaml").content.startswith(b"openapi: 3.1.")


def test_it_is_a_sound_openapi_document(document: dict[str, Any]) -> None:
    validate_schema(json.loads(json.dumps(document)))  # type: ignore[no-untyped-call]


@pytest.mark.django_db
@pytest.mark.usefixtures("store")
def test_no_list_leaves_an_unknown_parameter_out(document: dict[str, Any]) -> None:
    world, wrong = build_world(), []
    client: Any = APIClient()
    for method, path, operation in operations(document):
        if method == "get" and any(parameter["name"] == "cursor" for parameter in operation.get("parameters", [])):
            url = re.sub(r"{([a-z_]+)}", lambda match: world.path[match[1]], path)
            headers = {"Authorization": f"Bearer {world.tokens['sovereign']}"}
            answer = client.get(f"{url}?nonsense=1", headers=headers)
            if (answer.status_code, answer.json().get("field")) != (400, "nonsense"):
                wrong.append(f"{path} answered {answer.status_code}")
    assert wrong == []


CHECKS = [
    checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
    openapi_checks.negative_data_rejection,
    openapi_checks.missing_required_header,
    openapi_checks.unsupported_method,
]
REFUSALS = [400, 401, 403, 404, 405, 409, 412, 413, 415, 422]
CONFIG = schemathesis.Config.from_dict(
    {
        "checks": {"negative_data_rejection": {"expected-statuses": REFUSALS}},
        # Many of them vanish on the way; the test above sends one to each list.
        "generation": {"allow-extra-parameters": False},
    }
)
MACHINES = {"/api/v1/node/": "node", "/api/v1/demand": "gateway"}


@contextmanager
def one_connection() -> Iterator[None]:
    """The application works in the test's transaction, as it does for Django's own test client."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.mark.django_db
@pytest.mark.usefixtures("sent", "signer", "store")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("examples", [2, pytest.param(30, marks=pytest.mark.e2e)])
def test_every_operation_answers_as_the_document_says(part: int, examples: int, document: dict[str, Any]) -> None:
    schema = schemathesis.openapi.from_dict(nothing_unsaid(document), config=CONFIG)
    schema.app = application
    found: list[Any] = [made.ok() for made in schema.get_all_operations() if isinstance(made, Ok)]
    world, wrong = furnished(build_world()), []
    for operation in found[part::PARTS]:
        with one_connection():
            try:
                explore(operation, world, examples=examples)
            except (FailureGroup, Failure) as failure:
                wrong.append(f"{operation.label}: {failure}")
    assert not wrong, "\n\n".join(wrong)


def furnished(world: ApiWorld) -> ApiWorld:
    """The world with what only the API makes: a set, a policy, a comment, a pipeline's key, and a place on a node."""
    version = f"tenants/acme/adapters/tone/versions/{world.path['version']}"
    place = {name: world.path[name] for name in ("tenant", "adapter", "version")}
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    tell(world, "put", "tenants/acme/evaluation-sets/smoke", {"examples": [{"prompt": "Hello"}]})
    tell(world, "put", "tenants/acme/adapters/tone/retention", {"keep_days": 30})
    tell(world, "post", f"{version}/comments", {"text": "fine"})
    tell(world, "post", "nodes/n1/warm", place)
    tell(world, "post", f"{version}/revalidate", {})
    tell(world, "put", f"tenants/acme/release-templates/{world.path['name']}", {"text": "approvals: 2"})
    judge_and_roll_back()
    world.path["key_id"] = tell(world, "post", "tenants/acme/pipeline-keys", {"name": "ci", "public_key": pem})[
        "key_id"
    ]
    report = {"policy_version": "1", "verdict": "accept", "checks": [], "facts": {}}
    found = Version.objects.get(name=world.path["version"])
    found.reports.create(verdict="accept", policy_version="1", report=report, digest=world.path["digest"])
    return world


def judge_and_roll_back() -> None:
    """Let the release of the world be judged, and a rollback have taken its time."""
    now = timezone.now()
    step = ReleaseStep.objects.select_related("release__candidate").get(state="running")
    metric = MetricVerdict(
        metric=Metric.ERRORS,
        outcome=Outcome.INCONCLUSIVE,
        sentence="Errors: no data.",
        tested="mixture sequential test",
        unit="%",
        holds=True,
        interval=Interval(low=None, high=1.5),
    )
    verdict = record_of(Verdict(Outcome.INCONCLUSIVE, "It can't be told yet.", (metric,)), Window())
    ReleaseStep.objects.filter(pk=step.pk).update(verdict=verdict, judged_at=now)
    release = step.release
    Rollback.objects.create(
        alias_id=release.alias_id,
        release=release,
        revision=1,
        left=release.candidate,
        asked_at=now,
        committed_at=now,
        last_answer_at=now,
        settled_at=now,
    )


def tell(world: ApiWorld, method: str, path: str, body: dict[str, Any]) -> Any:
    headers = {"Authorization": f"Bearer {world.tokens['sovereign']}"}
    client: Any = APIClient()
    answer = getattr(client, method)(f"/api/v1/{path}", body, format="json", headers=headers)
    assert answer.status_code < 400, answer.content
    return answer.json()


def nothing_unsaid(document: dict[str, Any]) -> dict[str, Any]:
    """The document, but what is answered holds no more than it says."""
    strict: dict[str, Any] = json.loads(json.dumps(document))
    shapes = strict["components"]["schemas"]
    found = [operation for _method, _path, operation in operations(strict)]
    sent = reachable([operation.get("requestBody", {}) for operation in found], shapes)
    for name in reachable([operation["responses"] for operation in found], shapes) - sent:
        shapes[name].setdefault("additionalProperties", False)
    return strict


def reachable(parts: Any, shapes: dict[str, Any]) -> set[str]:
    """The names of the shapes that ``parts`` refer to, and those that these refer to."""
    found: set[str] = set()
    todo = [parts]
    while todo:
        names = set(re.findall(r'"#/components/schemas/([A-Za-z]+)"', json.dumps(todo.pop()))) - found
        found |= names
        todo += [shapes[name] for name in names]
    return found


def explore(operation: Any, world: ApiWorld, *, examples: int) -> None:
    machine = next((kind for start, kind in MACHINES.items() if operation.full_path.startswith(start)), "sovereign")
    headers = {"Authorization": f"Bearer {world.tokens[machine]}"}

    @given(case=cases(operation, world))
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def one(case: Any) -> None:
        with undone():
            case.call_and_validate(headers=headers, checks=CHECKS)

    one()


def cases(operation: Any, world: ApiWorld) -> st.SearchStrategy[Any]:
    """Sound and unsound requests, most of them about things that there are."""
    names = {parameter.name for parameter in operation.path_parameters}
    known = {name: value for name, value in world.path.items() if name in names}
    paths = [{**known, "version": version} for version in world.versions] if "version" in names else [known]
    sound = [operation.as_strategy(path_parameters=path).map(lambda case: about(case, world)) for path in paths]
    unsound = operation.as_strategy(GenerationMode.NEGATIVE, path_parameters=known)
    body = body_of(operation.label.replace(" /api/v1/", " ").translate({ord("{"): "<", ord("}"): ">"}), world.path)
    good = [operation.as_strategy(path_parameters=path, body=body) for path in paths] if body else []
    return st.one_of(*good, *sound, unsound, operation.as_strategy())


def about(case: Any, world: ApiWorld) -> Any:
    """Let about half of the names in a body be names of what there is."""
    if isinstance(case.body, dict):
        for name, value in case.body.items():
            if name in world.path and isinstance(value, str) and len(value) % 2:
                case.body[name] = world.path[name]
    return case
