from typing import Any

import pytest

from registry.reports import ProbeReference
from tests.unit.workers.node.kit import Rig
from workers.node.commands import address_of, parse_evict, parse_fetch, parse_warm
from workers.node.errors import CommandError
from workers.node.jobs.warm import warm

REFERENCE = {"prompt": "a text", "base": [-1.0, -2.0], "adapter": [-1.5, -2.0]}


def test_a_warm_command_is_read(rig: Rig) -> None:
    release = rig.release()
    command = parse_warm(release.warm(generation=7))
    assert (command.engine_name, command.generation) == (release.name, 7)
    assert [file.path for file in command.files] == ["adapter_config.json", "adapter_model.safetensors"]
    assert command.reference is None


def test_a_warm_command_can_bring_a_reference(rig: Rig) -> None:
    command = parse_warm(rig.release().warm(probe_reference=REFERENCE))
    assert command.reference == ProbeReference("a text", base=(-1.0, -2.0), adapter=(-1.5, -2.0))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"generation": 0}, "generation must be an integer"),
        ({"generation": True}, "generation must be an integer"),
        ({"generation": "1"}, "generation must be an integer"),
        ({"engine_name": "../../etc"}, "engine_name is not a name"),
        ({"engine_name": "lk-A"}, "engine_name is not a name"),
        ({"engine_name": "lk-a\n"}, "engine_name is not a name"),
        ({"grant": ""}, "grant must be a text"),
        ({"bundle": None}, "bundle must be a text"),
        ({"files": []}, "1 to 256 files"),
        ({"files": {}}, "files must be a list"),
        ({"leaving": {}}, "leaving must be a list of at most 64"),
        ({"leaving": [{"engine_name": "../x", "generation": 1}]}, "engine_name is not a name"),
        ({"leaving": [{"engine_name": "lk-a", "generation": 0}]}, "generation must be an integer"),
        ({"probe_reference": [1.0]}, "probe_reference: a reference has prompt"),
        ({"probe_reference": {**REFERENCE, "base": [0.5, -1.0]}}, "probe_reference: base holds what is no"),
        ({"probe_reference": {**REFERENCE, "adapter": [-1.0]}}, "probe_reference: base and adapter"),
        ({"probe_reference": {**REFERENCE, "adapter": [float("nan"), -1.0]}}, "no grant can be for .*: nan"),
        ({"generation": 2**53}, "no grant can be for .*: 9007199254740992"),
        ({"probe_reference": {**REFERENCE, "prompt": ""}}, "probe_reference: prompt"),
        ({"engine_url": "http://evil"}, "unknown field 'engine_url'"),
    ],
)
def test_a_wrong_field_is_refused_by_name(rig: Rig, change: dict[str, Any], reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        parse_warm({**rig.release().warm(), **change})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"path": "../adapter_config.json"}, "'..' segment"),
        ({"path": "/etc/passwd.json"}, "is absolute"),
        ({"path": "model.sig"}, "place of a signature"),
        ({"sha256": "A" * 64}, "not a SHA-256"),
        ({"size": -1}, "size must be an integer"),
        ({"url": "file:///etc/passwd"}, "must be http or https"),
        ({"url": "http://user:pw@store/x"}, "without a user"),
        ({"url": "http://[bad"}, "url is not a URL"),
    ],
)
def test_a_wrong_file_is_refused_with_its_reason(rig: Rig, change: dict[str, Any], reason: str) -> None:
    command = rig.release().warm()
    command["files"][0].update(change)
    with pytest.raises(CommandError, match=reason):
        parse_warm(command)


@pytest.mark.parametrize("field", ["generation", "engine_name", "grant", "files", "probe_reference"])
def test_a_missing_field_is_refused_by_name(rig: Rig, field: str) -> None:
    command = rig.release().warm()
    del command[field]
    with pytest.raises(CommandError, match=f"lacks {field}"):
        parse_warm(command)


EVICT: dict[str, Any] = {
    "generation": 1,
    "engine_name": "lk-a",
    "grant": "g",
    "grace_s": 5,
    "to": "absent",
    "drain_s": 0,
}


@pytest.mark.parametrize("grace", [-1, True, "5", 10**9])
def test_a_wrong_grace_is_refused(grace: object) -> None:
    with pytest.raises(CommandError, match="grace_s"):
        parse_evict({**EVICT, "grace_s": grace})


def test_something_that_is_no_object_is_refused() -> None:
    with pytest.raises(CommandError, match="must be an object"):
        parse_evict([1])


def test_a_malformed_command_still_tells_whose_it_is() -> None:
    assert address_of({"engine_name": "lk-a", "generation": 3, "grant": 5}) == ("lk-a", 3)
    assert address_of({"engine_name": "lk-a"}) is None
    assert address_of({"engine_name": "../x", "generation": 3}) is None
    assert address_of("lk-a") is None


def test_an_evict_command_says_where_to_and_how_long_to_wait() -> None:
    command = parse_evict({**EVICT, "to": "disk", "drain_s": 30})
    assert (command.to, command.drain_s, command.grace_s) == ("disk", 30.0, 5.0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"to": "cpu"}, "to must be"), ({"to": None}, "to must be"), ({"drain_s": -1}, "drain_s"), ({"up": 1}, "'up'")],
)
def test_a_wrong_evict_command_is_refused_by_its_field(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        parse_evict({**EVICT, **change})


def test_a_pin_may_be_left_out_of_a_warm_command(rig: Rig) -> None:
    release = rig.release()
    assert not parse_warm(release.warm()).pinned
    assert parse_warm(release.warm(pinned=True)).pinned
    with pytest.raises(CommandError, match="pinned must be true or false"):
        parse_warm(release.warm(pinned=1))


def test_a_fetch_command_is_a_warm_command_without_a_reference(rig: Rig) -> None:
    release = rig.release()
    command = parse_fetch(release.fetch(generation=7))
    assert (command.engine_name, command.generation, len(command.files)) == (release.name, 7, 2)
    with pytest.raises(CommandError, match="probe_reference"):
        parse_fetch(release.warm())


def test_a_malformed_command_does_not_make_a_version_that_is_loaded_look_failed(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    warm(agent, parse_warm(release.warm()))
    for generation in (1, 2):
        command = {"engine_name": release.name, "generation": generation}
        with pytest.raises(CommandError) as caught:
            parse_warm(command)
        agent.refuse(command, caught.value)
    rig.told(agent)
    told = [(body["generation"], body["outcome"]) for body in rig.web.outcomes]
    assert told[-2:] == [(1, "loaded"), (2, "failed")]
