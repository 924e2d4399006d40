import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from registry.signing.grants import EVICT
from registry.signing.keys import render_trusted_key
from registry.signing.local_key import LocalKeySigner
from registry.signing.trust_file import TrustFile, write_trust_file
from registry.signing.verify import TrustedKeys
from tests.unit.workers.node.kit import NODE, Command, Release, Rig
from workers.node.commands import WarmCommand, parse_evict, parse_fetch, parse_warm
from workers.node.errors import CommandError, GrantNotNowError, NotTrustedError
from workers.node.verify import DamagedError, Verifier


@pytest.fixture
def verifier(rig: Rig) -> Verifier:
    return Verifier(TrustedKeys.from_pem(rig.signer.public_pem()), node=NODE)


def command(release: Release, **changes: Any) -> WarmCommand:
    return parse_warm(release.warm(**changes))


def test_a_good_command_is_granted(rig: Rig, verifier: Verifier) -> None:
    assert verifier.grant(command(rig.release())).engine_name == rig.release().name


def test_a_running_node_follows_a_rotation_and_a_revocation(rig: Rig, tmp_path: Path) -> None:
    """The bundles are by the old key and stay good; the grant is by the new one."""
    new = LocalKeySigner(ec.generate_private_key(ec.SECP256R1()))
    granted = command(replace(rig.release(), signer=new))
    path = tmp_path / "trusted.pem"
    write_trust_file(path, rig.signer.public_pem())
    verifier = Verifier(TrustFile(path), node=NODE)
    with pytest.raises(NotTrustedError, match="unknown_key"):
        verifier.grant(granted)
    now = datetime.now(UTC)
    old = render_trusted_key(rig.signer.public_pem(), valid_to=now + timedelta(minutes=10))
    write_trust_file(path, old + render_trusted_key(new.public_pem(), valid_from=now - timedelta(minutes=1)))
    assert verifier.grant(granted).engine_name == rig.release().name
    assert verifier.grant(command(rig.release())).engine_name == rig.release().name
    revoked = render_trusted_key(rig.signer.public_pem(), revoked=now)
    write_trust_file(path, revoked + new.public_pem())
    with pytest.raises(NotTrustedError, match="key_revoked"):
        verifier.grant(granted)


def test_a_grant_for_another_node_is_refused(rig: Rig, verifier: Verifier) -> None:
    release = rig.release()
    with pytest.raises(NotTrustedError, match="grant_for_other_node"):
        verifier.grant(command(release, granted={"node": "edge-2"}))


def test_a_grant_that_is_over_may_be_given_again(rig: Rig, verifier: Verifier) -> None:
    release = rig.release()
    old = {"now": datetime.now(UTC) - timedelta(minutes=6)}
    with pytest.raises(GrantNotNowError) as caught:
        verifier.grant(command(release, granted=old))
    assert caught.value.error_class == "transient"


def test_a_clock_that_is_behind_makes_a_grant_wait_instead_of_refusing_it_for_good(
    rig: Rig, verifier: Verifier
) -> None:
    release = rig.release()
    early = {"now": datetime.now(UTC) + timedelta(minutes=6)}
    with pytest.raises(GrantNotNowError) as caught:
        verifier.grant(command(release, granted=early))
    assert caught.value.error_class == "transient"


def test_a_grant_to_evict_does_not_load(rig: Rig, verifier: Verifier) -> None:
    release = rig.release()
    with pytest.raises(NotTrustedError, match="name_mismatch: action"):
        verifier.grant(command(release, granted={"action": EVICT}))


def test_a_grant_of_an_unknown_key_is_refused(rig: Rig, verifier: Verifier) -> None:
    release = rig.release()
    stranger = replace(release, signer=LocalKeySigner(ec.generate_private_key(ec.SECP256R1())))
    with pytest.raises(NotTrustedError, match="unknown_key"):
        verifier.grant(command(stranger))


@pytest.mark.parametrize("field", ["generation", "engine_name"])
def test_a_grant_for_another_command_is_refused(rig: Rig, verifier: Verifier, field: str) -> None:
    release = rig.release()
    other: Any = {"generation": 2, "engine_name": "lk-other"}[field]
    with pytest.raises(NotTrustedError, match=f"name_mismatch: {field}"):
        verifier.grant(command(release, granted={field: other}))


@pytest.mark.parametrize("field", ["tenant", "adapter", "version", "base_revision", "root_digest"])
def test_a_grant_for_another_version_is_refused(rig: Rig, verifier: Verifier, field: str) -> None:
    release = rig.release()
    with pytest.raises(NotTrustedError, match=f"name_mismatch: {field}"):
        verifier.grant(command(release, granted={field: "other"}))


def test_files_that_were_not_signed_are_refused_before_they_are_fetched(rig: Rig, verifier: Verifier) -> None:
    release = rig.release()
    files = release.warm()["files"]
    files[0]["sha256"] = "0" * 64
    with pytest.raises(NotTrustedError, match="digest_mismatch"):
        verifier.grant(command(release, files=files))


REFERENCE = {"prompt": "a text", "base": [-1.0, -2.0], "adapter": [-1.5, -2.0]}
ALTERED: list[tuple[str, Command]] = [
    ("warm", {"generation": 2}),
    ("warm", {"engine_name": "lk-other"}),
    ("warm", {"bundle": "{}"}),
    ("warm", {"attestation": "{}"}),
    ("warm", {"probe_reference": None}),
    ("warm", {"probe_reference": {**REFERENCE, "adapter": [-1.5, -2.0000000000000004]}}),
    ("warm", {"probe_reference": {**REFERENCE, "prompt": "another"}}),
    ("fetch", {"generation": 2}),
    ("evict", {"generation": 3}),
    ("evict", {"engine_name": "lk-other"}),
    ("evict", {"to": "absent"}),
    ("evict", {"drain_s": 0}),
    ("evict", {"grace_s": 0}),
]
ALTERED_FILES: list[Command] = [{"url": "http://evil.test/x"}, {"size": 1}, {"sha256": "0" * 64}, {"path": "x.txt"}]


def carry(verifier: Verifier, kind: str, came: Command) -> None:
    """As the agent does with what came."""
    if kind == "evict":
        verifier.eviction(parse_evict(came))
    else:
        verifier.grant(parse_fetch(came) if kind == "fetch" else parse_warm(came))


def sent(release: Release, kind: str) -> Command:
    if kind == "evict":
        return release.evict(to="disk", drain_s=0.1 + 0.2, grace_s=60)
    return release.fetch() if kind == "fetch" else release.warm(probe_reference=REFERENCE)


@pytest.mark.parametrize("kind", ["warm", "fetch", "evict"])
def test_a_command_that_came_as_it_was_granted_is_obeyed(rig: Rig, verifier: Verifier, kind: str) -> None:
    carry(verifier, kind, json.loads(json.dumps(sent(rig.release(), kind))))


@pytest.mark.parametrize(("kind", "change"), ALTERED, ids=str)
def test_a_command_that_was_changed_on_its_way_is_refused(
    rig: Rig, verifier: Verifier, kind: str, change: Command
) -> None:
    with pytest.raises(NotTrustedError, match=r"grant_for_other_command: .* changed on its way") as caught:
        carry(verifier, kind, {**sent(rig.release(), kind), **change})
    assert caught.value.error_class == "refused"


@pytest.mark.parametrize("change", ALTERED_FILES, ids=str)
@pytest.mark.parametrize("kind", ["warm", "fetch"])
def test_a_command_whose_files_were_changed_is_refused(
    rig: Rig, verifier: Verifier, kind: str, change: Command
) -> None:
    came = sent(rig.release(), kind)
    came["files"][0].update(change)
    with pytest.raises(NotTrustedError, match="grant_for_other_command"):
        carry(verifier, kind, came)
    with pytest.raises(NotTrustedError, match="grant_for_other_command"):
        carry(verifier, kind, {**came, "files": came["files"][1:]})


@pytest.mark.parametrize("kind", ["warm", "fetch", "evict"])
def test_a_command_that_gained_or_lost_a_field_is_refused(rig: Rig, verifier: Verifier, kind: str) -> None:
    came = sent(rig.release(), kind)
    with pytest.raises(CommandError, match="unknown field"):
        carry(verifier, kind, {**came, "base_model": "other"})
    for field in came:
        with pytest.raises(CommandError, match=f"lacks {field}"):
            carry(verifier, kind, {name: value for name, value in came.items() if name != field})


def test_another_adapter_signed_as_validly_is_refused(rig: Rig, verifier: Verifier) -> None:
    wanted, other = rig.release(), rig.release(version="2026-07-04.2", seed=1)
    signed = {"bundle": other.bundle, "attestation": other.attestation, "files": other.warm()["files"]}
    with pytest.raises(NotTrustedError, match="name_mismatch"):
        verifier.grant(command(wanted, **signed))


def test_a_byte_changed_on_disk_is_damage(rig: Rig, verifier: Verifier, tmp_path: Path) -> None:
    release = rig.release()
    for path, data in release.contents.items():
        (tmp_path / path).write_bytes(data)
    warm = command(release)
    grant = verifier.grant(warm)
    verifier.folder(tmp_path, warm, grant)
    weights = tmp_path / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    with pytest.raises(DamagedError, match=r"adapter_model\.safetensors"):
        verifier.folder(tmp_path, warm, grant)


def test_bytes_that_the_disk_has_lost_are_damage_that_may_pass(
    rig: Rig, verifier: Verifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("workers.node.verify.verify_folder", lost)
    warm = command(rig.release())
    with pytest.raises(DamagedError, match="can't read them") as caught:
        verifier.folder(tmp_path, warm, verifier.grant(warm))
    assert caught.value.error_class == "transient"
