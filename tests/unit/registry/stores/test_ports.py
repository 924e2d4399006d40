import pytest

from registry.naming import object_key
from registry.stores.errors import BadKey
from registry.stores.ports import check_key, digest_in

SHA = "ab" * 32
BAD_KEYS = [
    "",
    "x",
    f"artifacts/acme/{SHA}",
    f"artifacts/acme/aa/{SHA}",
    f"artifacts/../ab/{SHA}",
    f"/artifacts/acme/ab/{SHA}",
]


def test_the_registrys_keys_are_keys() -> None:
    key = object_key(tenant="acme", sha256=SHA)
    assert digest_in(key) == SHA
    check_key(key, sha256=SHA)


@pytest.mark.parametrize("key", [*BAD_KEYS, f"artifacts/acme/ab/{SHA}\n", f"artifacts/acme/AB/{SHA.upper()}"])
def test_another_path_is_no_key(key: str) -> None:
    with pytest.raises(BadKey):
        digest_in(key)


def test_a_key_of_another_digest_is_refused() -> None:
    with pytest.raises(BadKey):
        check_key(object_key(tenant="acme", sha256=SHA), sha256="cd" * 32)
