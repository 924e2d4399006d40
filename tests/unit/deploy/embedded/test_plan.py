import json
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.embedded.facts import METRICS_PORTS, EngineOptions, Secrets, StackFacts
from deploy.embedded.plan import SERVICES, build_plan
from deploy.embedded.postgres import PostgresPasswords
from deploy.embedded.seaweed import PORT_NAMES, S3Credentials
from deploy.embedded.specs import AliveHealth, CeleryHealth, FromFile, HttpHealth, ProcessSpec, Spec, levels

DATA = Path("/data")
SECRETS = Secrets(
    postgres=PostgresPasswords("pw-superuser", "pw-owner", "pw-app", "pw-gateway"),
    s3=S3Credentials("s3-access", "s3-secret", "s3-internal"),
    valkey="pw-valkey",
    django="django-secret",
    signing_key=DATA / "secrets" / "signing.pem",
    bootstrap=DATA / "secrets" / "bootstrap.json",
    node=DATA / "secrets" / "node.json",
)
TEXTS = ("pw-", "s3-access", "s3-secret", "s3-internal", "django-secret")
ENGINE = EngineOptions(
    python=Path("/vllm/bin/python"), model=Path("/models/smol"), base_model="smollm2", base_revision="r1"
)


@pytest.fixture
def facts() -> StackFacts:
    names = ("postgres", "valkey", *PORT_NAMES, "web", "gateway", "engine", *METRICS_PORTS)
    return StackFacts(
        data=DATA, ports={name: 20000 + number for number, name in enumerate(names)}, secrets=SECRETS, engine=ENGINE
    )


def named(plan: tuple[Spec, ...], name: str) -> Spec:
    return next(spec for spec in plan if spec.name == name)


def test_every_process_of_a_deployment_is_in_the_plan(facts: StackFacts) -> None:
    processes = {spec.name for spec in build_plan(facts) if isinstance(spec, ProcessSpec)}
    assert processes == {"web", "gateway", "validate", "control", "beat", "engine", "agent"}


def test_every_queue_of_the_workers_is_served(facts: StackFacts) -> None:
    plan = build_plan(facts)
    commands = [named(plan, name).argv for name in ("validate", "control")]
    queues = {queue for argv in commands for queue in argv[argv.index("-Q") + 1].split(",")}
    assert queues == {"validate", "control", "webhooks"}


def test_without_an_engine_there_is_no_agent_and_no_node(facts: StackFacts) -> None:
    names = {spec.name for spec in build_plan(replace(facts, engine=None))}
    assert names == {"migrate", "signing", "bootstrap", "web", "gateway", "validate", "control", "beat"}


def test_all_that_is_needed_is_there_and_migrations_come_before_every_process(facts: StackFacts) -> None:
    needs = dict.fromkeys(SERVICES, ()) | {spec.name: spec.needs for spec in build_plan(facts)}
    groups = levels(needs)
    place = {name: number for number, group in enumerate(groups) for name in group}
    assert all(place["migrate"] < place[name] for name in ("web", "gateway", "validate", "control", "beat", "agent"))


def test_the_schema_belongs_to_the_owner_and_everybody_else_is_the_app(facts: StackFacts) -> None:
    roles = {
        spec.name: spec.environment["LOREKEEPER_DB_USER"]
        for spec in build_plan(facts)
        if "LOREKEEPER_DB_USER" in spec.environment
    }
    assert roles.pop("migrate") == "lorekeeper_owner"
    assert set(roles.values()) == {"lorekeeper_app"}


@pytest.mark.parametrize("name", ["gateway", "agent", "engine"])
def test_what_faces_applications_and_nodes_has_no_secret_of_the_control_plane(facts: StackFacts, name: str) -> None:
    environment = named(build_plan(facts), name).environment
    assert not {"LOREKEEPER_SECRET_KEY", "LOREKEEPER_SIGNING_KEY", "LOREKEEPER_DB_PASSWORD"} & set(environment)
    values = [value for value in environment.values() if isinstance(value, str)]
    assert not any(secret in value for value in values for secret in ("pw-owner", "pw-app", "s3-secret"))


def test_the_validating_worker_alone_finds_the_engines_base_model(facts: StackFacts) -> None:
    told = {
        spec.name: spec.environment["LOREKEEPER_BASE_MODEL_FOLDERS"]
        for spec in build_plan(facts)
        if "LOREKEEPER_BASE_MODEL_FOLDERS" in spec.environment
    }
    assert told == {"validate": str(DATA / "base-models")}


@pytest.mark.parametrize("engine", [None, replace(ENGINE, evaluates=False)])
def test_without_a_model_to_run_the_validating_worker_has_none(facts: StackFacts, engine: EngineOptions | None) -> None:
    plan = build_plan(replace(facts, engine=engine))
    assert "LOREKEEPER_BASE_MODEL_FOLDERS" not in named(plan, "validate").environment


def test_no_secret_stands_on_a_command_line(facts: StackFacts) -> None:
    words = [word for spec in build_plan(facts) for word in spec.argv]
    assert not [word for word in words for text in TEXTS if text in word]


def test_tokens_come_from_the_files_that_the_steps_write(facts: StackFacts) -> None:
    plan = build_plan(facts)
    gateway, agent = named(plan, "gateway").environment, named(plan, "agent").environment
    assert gateway["LOREKEEPER_GATEWAY_TOKEN"] == FromFile(SECRETS.bootstrap, "gateway_token")
    assert agent["LOREKEEPER_NODE_TOKEN"] == FromFile(SECRETS.node, "node_token")


def test_the_agent_trusts_the_public_half_of_the_signing_key(facts: StackFacts) -> None:
    environment = named(build_plan(facts), "agent").environment
    assert environment["LOREKEEPER_TRUSTED_KEYS"] == "/data/secrets/signing.pem.pub"


def test_the_agent_may_have_the_engine_restarted(facts: StackFacts) -> None:
    agent = named(build_plan(facts), "agent")
    command = json.loads(str(agent.environment["LOREKEEPER_NODE_ENGINE_RESTART"]))
    assert command == [facts.python, "-m", "deploy.embedded", "restart", "engine", "--data", str(facts.data)]


def test_everything_listens_on_the_loopback_interface(facts: StackFacts) -> None:
    plan = build_plan(facts)
    assert f"127.0.0.1:{facts.ports['web']}" in named(plan, "web").argv
    for name in ("gateway", "engine"):
        argv = named(plan, name).argv
        assert argv[argv.index("--host") + 1] == "127.0.0.1"


def test_metrics_are_answered_to_this_machine_alone_and_each_service_counts_in_a_folder_of_its_own(
    facts: StackFacts,
) -> None:
    plan = build_plan(facts)
    addresses = {
        str(spec.environment[name])
        for spec in plan
        for name in ("LOREKEEPER_METRICS", "LOREKEEPER_NODE_METRICS")
        if name in spec.environment
    }
    assert addresses == {f"127.0.0.1:{facts.ports[name]}" for name in METRICS_PORTS}
    folders = [named(plan, name).environment["LOREKEEPER_METRICS_FOLDER"] for name in ("web", "validate", "control")]
    assert len(set(folders)) == 3
    assert "LOREKEEPER_METRICS_FOLDER" not in named(plan, "beat").environment


def test_the_engine_takes_adapters_at_run_time_and_asks_no_hub(facts: StackFacts) -> None:
    engine = named(build_plan(facts), "engine")
    assert {"--enable-lora", "--enforce-eager"} <= set(engine.argv)
    assert engine.argv[engine.argv.index("--served-model-name") + 1] == "smollm2"
    assert engine.environment["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] == "True"
    assert engine.environment["HF_HUB_OFFLINE"] == "1"


def test_the_engine_does_not_start_among_the_packages_of_the_repository(facts: StackFacts) -> None:
    assert named(build_plan(facts), "engine").folder == DATA


def test_the_environment_of_the_caller_leads_nobody_astray(facts: StackFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOREKEEPER_DB_HOST", "production.example.org")
    monkeypatch.setenv("LOREKEEPER_S3_SECRET_KEY", "of production")
    monkeypatch.setenv("PGPASSWORD", "of production")
    for spec in build_plan(facts):
        assert spec.environment.get("LOREKEEPER_DB_HOST", "127.0.0.1") == "127.0.0.1"
        assert "of production" not in spec.environment.values()


def test_timings_of_the_caller_and_settings_of_a_test_reach_every_python_process(
    facts: StackFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOREKEEPER_NODE_TIMEOUT", "7")
    plan = build_plan(replace(facts, settings={"LOREKEEPER_SWEEP_SECONDS": "0.5"}))
    for name in ("web", "gateway", "control", "agent"):
        environment = named(plan, name).environment
        assert environment["LOREKEEPER_NODE_TIMEOUT"] == "7"
        assert environment["LOREKEEPER_SWEEP_SECONDS"] == "0.5"


def test_every_process_says_how_it_is_found_healthy(facts: StackFacts) -> None:
    health = {spec.name: type(spec.health) for spec in build_plan(facts) if isinstance(spec, ProcessSpec)}
    assert health == {
        "web": HttpHealth,
        "gateway": HttpHealth,
        "engine": HttpHealth,
        "validate": CeleryHealth,
        "control": CeleryHealth,
        "beat": AliveHealth,
        "agent": AliveHealth,
    }
