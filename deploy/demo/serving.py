"""The steps on the request path: an alias is pointed, answers, is moved, and is rolled back."""

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from subprocess import Popen

from deploy.demo.command_line import Answer, CommandFailedError, finish, reason_of
from deploy.demo.measure import Measurement, time_rollback
from deploy.demo.people import DORA, OLGA, RUI, TENANT
from deploy.demo.platform import NODE_NAME
from deploy.demo.run import ALIAS, ALIAS_NAME, DemoFailedError, Run, reference
from deploy.demo.voices import BRISK, QUESTIONS, WARM

# Enough tokens for either voice's phrase.
_PHRASE_TOKENS = 8


def make_room(run: Run) -> None:
    """Evict what an earlier run left on the node, so that its slots are free for the versions of this one."""
    node = run.as_(OLGA).run("nodes", NODE_NAME)
    for residency in node["residencies"]:
        if residency["desired"] == "gpu":
            old = f"{residency['tenant']}/{residency['adapter']}@{residency['version']}"
            run.does(OLGA, "evict", NODE_NAME, old, "--wait")


def serve_first_version(run: Run) -> None:
    """Point the alias at v1, which is on no node yet: the first question loads it, the second finds it there."""
    make_room(run)
    alias = run.does(RUI, "alias", "set", ALIAS, reference(run.versions["v1"]), "--reason", "first release")
    run.screen.did(f"{ALIAS} points at {alias['version']} (revision {alias['revision']})")
    cold = run.asks(QUESTIONS[0], expect_voice=WARM.name)
    warm = run.asks(QUESTIONS[1], expect_voice=WARM.name)
    run.measured(
        Measurement("first token, cold", cold.ttft_ms),
        Measurement("first token, warm", warm.ttft_ms),
        Measurement("load of v1, within the cold one", _load_ms(run, run.versions["v1"])),
    )


def move_to_second_version(run: Run) -> None:
    """Warm v2 ahead of the move, move the alias, and hear the voice change without a cold start."""
    v2 = reference(run.versions["v2"])
    residency = run.does(OLGA, "warm", NODE_NAME, v2, "--wait")
    if residency["observed"] != "loaded":
        raise DemoFailedError(f"{v2} is {residency['observed']} on {NODE_NAME}: {residency['message']}")
    run.does(RUI, "alias", "set", ALIAS, v2, "--reason", "shorter answers")
    moved = run.asks(QUESTIONS[1], expect_voice=BRISK.name)
    run.measured(
        Measurement("load of v2, ahead of the move", _load_ms(run, run.versions["v2"])),
        Measurement("first token after the move", moved.ttft_ms),
    )


def roll_back(run: Run) -> None:
    """Roll the alias back while the application goes on asking; measure until v1 is heard again."""
    words = ("rollback", ALIAS, "--reason", "customers miss the greeting")
    run.screen.command(RUI.name, words)
    timing = time_rollback(
        begin=partial(_begin_rollback, run, words),
        ask=lambda: run.application.ask(ALIAS_NAME, QUESTIONS[2], max_tokens=_PHRASE_TOKENS),
        is_old=lambda reply: reply.voice == WARM.name,
    )
    run.screen.said(QUESTIONS[2], timing.reply.voice, timing.reply.text)
    run.asks(QUESTIONS[1], expect_voice=WARM.name)
    run.measured(
        Measurement("rollback typed to the first old token", timing.from_command_ms),
        Measurement("rollback committed to the first old token", timing.from_commit_ms),
    )


def verify_audit(run: Run) -> None:
    """Print what this run has added to the tenant's audit log, and verify all of it, from the first record on."""
    records = run.does(DORA, "audit", "show", TENANT, "--after", str(run.audit_before))["results"]
    run.screen.rows(("seq", "who", "did", "to", "because"), audit_rows(records))
    verdict = run.does(DORA, "audit", "verify", TENANT)
    if not verdict["intact"] or verdict["records"] < run.audit_before + len(records):
        raise DemoFailedError(f"the audit log of {TENANT} does not verify: {reason_of(verdict)}")
    run.screen.did(f"the chain of {TENANT} is intact from its first record on, head {str(verdict['head'])[:12]}")
    run.measured(Measurement("audit records verified", float(verdict["records"]), "records"))


def _begin_rollback(run: Run, words: tuple[str, ...]) -> partial[Answer]:
    return partial(_rolled_back, run.as_(RUI).begin(*words))


def _rolled_back(process: Popen[str]) -> Answer:
    code, answer = finish(process)
    if code != 0:
        raise CommandFailedError(f"lorekeeper rollback: {reason_of(answer)}")
    return answer


def _load_ms(run: Run, version: Answer) -> float:
    """Return how long the engine took to load a version, as its node reported it."""
    node = run.as_(OLGA).run("nodes", NODE_NAME)
    for residency in node["residencies"]:
        if residency["version_id"] == version["id"] and residency["load_ms"] is not None:
            return float(residency["load_ms"])
    raise DemoFailedError(f"{NODE_NAME} has not reported a load time of {reference(version)}")


def audit_rows(records: Sequence[Answer]) -> list[tuple[str, ...]]:
    """Return records as rows for people: (numbers, who, action, object, reason); a run of like ones is one row."""
    rows: list[tuple[str, ...]] = []
    for what, alike in groupby(records, key=_audit_facts):
        numbers = [str(record["seq"]) for record in alike]
        rows.append((numbers[0] if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}", *what))
    return rows


def _audit_facts(record: Answer) -> tuple[str, ...]:
    actor, thing = record["actor"], record["object"]
    who = str(actor.get("name") or actor.get("id"))
    return (who, str(record["action"]), str(thing.get("name") or thing.get("id")), str(record["reason"] or ""))
