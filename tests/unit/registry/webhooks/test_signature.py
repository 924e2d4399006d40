import base64
import hashlib
import hmac
from uuid import uuid4

import pytest

from registry.webhooks.sealing import SecretUnreadable, open_sealed, seal
from registry.webhooks.signature import SECRET_BYTES, new_secret, secret_text, signed_headers

# The example that the libraries for Standard Webhooks share.
KEY = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
EXAMPLE = {"event_id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "timestamp": 1614265330, "body": b'{"test": 2432232314}'}


def test_a_delivery_is_signed_as_standard_webhooks_say() -> None:
    headers = signed_headers([KEY], **EXAMPLE)  # type: ignore[arg-type]
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def expected(key: bytes) -> str:
    signed = b'msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}'
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def test_while_a_secret_is_changed_both_sign_and_the_newest_comes_first() -> None:
    headers = signed_headers([b"new", b"old"], **EXAMPLE)  # type: ignore[arg-type]
    assert headers["webhook-signature"] == f"v1,{expected(b'new')} v1,{expected(b'old')}"


def test_a_secret_is_random_and_is_written_as_libraries_read_it() -> None:
    one, other = new_secret(), new_secret()
    assert one != other
    assert len(one) == SECRET_BYTES
    text = secret_text(one)
    assert text.startswith("whsec_")
    assert base64.b64decode(text.removeprefix("whsec_")) == one


def test_a_sealed_secret_is_opened_with_the_key_or_one_before_it_and_for_its_endpoint_alone() -> None:
    endpoint = uuid4()
    sealed = seal(b"secret", key="now", endpoint=endpoint)
    assert b"secret" not in sealed
    assert open_sealed(sealed, keys=["now"], endpoint=endpoint) == b"secret"
    assert open_sealed(sealed, keys=["later", "now"], endpoint=endpoint) == b"secret"
    for keys, of in ((["later"], endpoint), ([], endpoint), (["now"], uuid4())):
        with pytest.raises(SecretUnreadable):
            open_sealed(sealed, keys=keys, endpoint=of)
    with pytest.raises(SecretUnreadable):
        open_sealed(sealed[:-1] + bytes([sealed[-1] ^ 1]), keys=["now"], endpoint=endpoint)
