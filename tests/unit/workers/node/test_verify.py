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
from tests.unit.workers.node.kit import NODE, Release, Rig, make_release
from workers.node.commands import WarmCommand, parse_warm
from workers.node.errors import GrantNotNowError, NotTrustedError
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
    granted = command(rig.release(), grant=make_release(new).grant())
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
        verifier.grant(command(release, grant=release.grant(node="edge-2")))


def test_a_grant_that_is_over_may_be_given_again(rig: Rig, verifier: Verifier) -> None:
    release = rig.release()
    old = release.grant(now=datetime.now(UTC) - timedelta(minutes=6))
    with pytest.raises(GrantNotNowError) as caught:
        verifier.grant(command(release, grant=old))
    assert caught.value.error_class == "transient"


def test_a_clock_that_is_behind_makes_a_grant_wait_instead_of_refusing_it_for_good(
    rig: Rig, verifier: Verifier
) -> None:
    release = rig.release()
    early = release.grant(now=datetime.now(UTC) + timedelta(minutes=6))
    with pytest.raises(GrantNotNowError) as caught:
        verifier.grant(command(release, grant=early))
    assert caught.value.error_class == "transient"


def test_a_grant_to_evict_does_not_load(rig: Rig, verifier: Verifier) -> None:
    release = rig.release()
    with pytest.raises(NotTrustedError, match="name_mismatch: action"):
        verifier.grant(command(release, grant=release.grant(action=EVICT)))


def test_a_grant_of_an_unknown_key_is_refused(rig: Rig, verifier: Verifier) -> None:
    release = rig.release()
    stranger = replace(release, signer=LocalKeySigner(ec.generate_private_key(ec.SECP256R1())))
    with pytest.raises(NotTrustedError, match="unknown_key"):
        verifier.grant(command(release, grant=stranger.grant()))


@pytest.mark.parametrize("field", ["generation", "engine_name"])
def test_a_grant_for_another_command_is_refused(rig: Rig, verifier: Verifier, field: str) -> None:
    release = rig.release()
    other: Any = {"generation": 2, "engine_name": "lk-other"}[field]
    with pytest.raises(NotTrustedError, match=f"name_mismatch: {field}"):
        verifier.grant(command(release, grant=release.grant(**{field: other})))


@pytest.mark.parametrize("field", ["tenant", "adapter", "version", "base_revision", "root_digest"])
def test_a_grant_for_another_version_is_refused(rig: Rig, verifier: Verifier, field: str) -> None:
    release = rig.release()
    change: dict[str, Any] = {field: "other"}
    with pytest.raises(NotTrustedError, match=f"name_mismatch: {field}"):
        verifier.grant(command(release, grant=release.grant(**change)))


def test_files_that_were_not_signed_are_refused_before_they_are_fetched(rig: Rig, verifier: Verifier) -> None:
    warm = rig.release().warm()
    warm["files"][0]["sha256"] = "0" * 64
    with pytest.raises(NotTrustedError, match="digest_mismatch"):
        verifier.grant(parse_warm(warm))


def test_another_adapter_signed_as_validly_is_refused(rig: Rig, verifier: Verifier) -> None:
    wanted, other = rig.release(), rig.release(version="2026-07-04.2", seed=1)
    swapped = other.warm(engine_name=wanted.name, grant=wanted.grant())
    with pytest.raises(NotTrustedError, match="name_mismatch"):
        verifier.grant(parse_warm(swapped))


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
