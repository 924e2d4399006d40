"""The first steps: what has to be made, started and registered before a version can be pushed."""

from functools import partial

from deploy.demo.command_line import Lorekeeper
from deploy.demo.conversation import Application
from deploy.demo.materials import ensure_adapters, ensure_base_model
from deploy.demo.measure import Measurement
from deploy.demo.people import ANA, APPLICATION, DORA, PEOPLE, TENANT, TENANT_TITLE, Person, TokenFile
from deploy.demo.platform import Platform
from deploy.demo.recipes import BASE_NAME, BASE_REVISION
from deploy.demo.run import ADAPTER, Run
from deploy.demo.voices import BRISK, WARM
from deploy.engine.environment import ensure_vllm


def make_base_model(run: Run) -> None:
    """Make the engine's environment and the base model's folder, unless they are there."""
    run.engine_python = ensure_vllm(run.engine_venv, say=run.screen.did)
    folder, seconds = ensure_base_model(run.cache)
    run.screen.did(f"{BASE_NAME} in {folder}" if seconds else f"{BASE_NAME}: made earlier")
    if seconds:
        run.measured(Measurement("base model made in", seconds, "s"))


def train_adapters(run: Run) -> None:
    """Train both versions with peft, unless they are there."""
    run.adapters, seconds = ensure_adapters(run.cache, (WARM, BRISK))
    run.screen.did(f"v1 speaks {WARM.name}: “{WARM.phrase} …”, v2 speaks {BRISK.name}: “{BRISK.phrase} …”")
    if seconds:
        run.measured(Measurement("two LoRA versions of rank 8 trained in", seconds, "s"))
    else:
        run.screen.did("both were trained earlier")


def start_platform(run: Run) -> None:
    """Start Postgres, Valkey, S3, web, gateway, workers, the node's agent and a real vLLM."""
    python = run.engine_python or ensure_vllm(run.engine_venv, say=run.screen.did)
    model, _seconds = ensure_base_model(run.cache)
    platform = Platform(run.folder, engine_python=python, model=model)
    run.closing.callback(platform.stop)
    run.has_platform(platform)
    run.measured(Measurement("Postgres, Valkey, S3, web, gateway and workers up in", platform.start(), "s"))
    run.measured(Measurement("vLLM and its node agent ready after another", platform.wait_for_node(), "s"))
    run.screen.did(f"web {platform.web_url}, gateway {platform.gateway_url}, engine {platform.engine_url}")
    base = run.admin().run("base", "show", BASE_NAME, BASE_REVISION)
    run.screen.did(f"base model {base['name']} {base['revision']} is pinned by digest {str(base['digest'])[:12]}")


def introduce_people(run: Run) -> None:
    """Make the tenant, its people and their tokens, and the application's key. What is there already stays."""
    admin = run.admin()
    if TENANT not in _names(admin, "tenant", "list"):
        admin.run("tenant", "create", TENANT, "--title", TENANT_TITLE)
    known = {str(row["prefix"]) for row in admin.run("token", "list", TENANT)["results"]}
    tokens = TokenFile(run.folder / "tokens.json")
    for person in PEOPLE:
        run.tokens[person.name] = tokens.get_or_make(person.name, known=known, make=partial(_admit, admin, person))
        run.screen.did(f"{person.name} is {' and '.join(role.replace('_', ' ') for role in person.roles)}")
    run.tokens[APPLICATION] = tokens.get_or_make(APPLICATION, known=known, make=partial(_issue_key, admin))
    run.has_application(Application(run.platform.gateway_url, run.tokens[APPLICATION]))
    run.audit_before = max(
        (int(row["seq"]) for row in run.as_(DORA).run("audit", "show", TENANT)["results"]), default=0
    )
    if ADAPTER not in {f"{TENANT}/{name}" for name in _names(run.as_(ANA), "adapter", "list", TENANT)}:
        run.does(ANA, "adapter", "create", ADAPTER, "--base-model", BASE_NAME)


def _names(person: Lorekeeper, *words: str) -> set[str]:
    return {str(row["name"]) for row in person.run(*words)["results"]}


def _admit(admin: Lorekeeper, person: Person) -> str:
    """Give a person the roles and return a new token for them."""
    for role in person.roles:
        admin.run("member", "add", TENANT, person.email, role, "--name", person.name.capitalize())
    scopes = [word for scope in person.scopes for word in ("--scope", scope)]
    created = admin.run("token", "create", TENANT, f"demo {person.name}", "--person", person.email, *scopes)
    return str(created["token"])


def _issue_key(admin: Lorekeeper) -> str:
    """Return a new API key of the application, good for inference and nothing else."""
    created = admin.run("token", "create", TENANT, APPLICATION, "--kind", "application", "--scope", "infer")
    return str(created["token"])
