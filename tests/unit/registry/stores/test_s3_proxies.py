import pytest

from registry.stores.s3 import _proxies


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_a_store_on_this_machine_is_never_asked_through_a_proxy(host: str) -> None:
    assert _proxies(f"http://{host}:9000") == {}


def test_a_store_elsewhere_is_asked_as_the_environment_says() -> None:
    assert _proxies("https://s3.example.test") is None
