"""One attempt against a real receiver, and against receivers that do what they should not."""

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from registry.webhooks.sending import EXCERPT_CHARACTERS, Message, Outcome, Sender
from tests.fakes.receiver import Receiver, Reply, receiving

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")]
SECRET, OLD = b"s" * 32, b"o" * 32
BODY = '{"type":"version.approved","name":"\N{SNOWMAN}"}'.encode()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def send(url: str, *, time_limit_s: float = 5.0, tls: ssl.SSLContext | None = None, **facts: Any) -> Outcome:
    resolve = facts.pop("resolve", socket.getaddrinfo)
    sender = Sender(allowed=facts.pop("allowed", LOOPBACK), time_limit_s=time_limit_s, tls=tls, resolve=resolve)
    message = {"url": url, "event_id": "acme_1", "body": BODY, "keys": [SECRET], **facts}
    return sender.send(Message(**message))


def test_a_receiver_gets_the_body_signed_and_named(receiver: Receiver) -> None:
    outcome = send(f"{receiver.url}?to=me", keys=[SECRET, OLD])
    assert (outcome.status, outcome.error, outcome.is_delivered) == (204, "", True)
    (came,) = receiver.came
    assert (came.method, came.path, came.body) == ("POST", "/events?to=me", BODY)
    assert came.headers["content-type"] == "application/json"
    assert came.headers["webhook-id"] == "acme_1"
    assert abs(int(came.headers["webhook-timestamp"]) - time.time()) < 60
    assert came.is_signed_with(SECRET)
    assert came.is_signed_with(OLD)
    assert not came.is_signed_with(b"another")
    assert came.headers["host"] == receiver.url.split("/")[2]


@pytest.mark.parametrize("status", [200, 201, 202, 299])
def test_whatever_says_yes_is_delivered(receiver: Receiver, status: int) -> None:
    receiver.otherwise = Reply(status=status)
    assert send(receiver.url).is_delivered


@pytest.mark.parametrize("status", [400, 404, 410, 429, 500, 503])
def test_whatever_says_no_is_not_delivered_and_the_beginning_of_its_words_is_kept(
    receiver: Receiver, status: int
) -> None:
    receiver.otherwise = Reply(status=status, body=b"no \x00 way \x1b[31m\xff" + b"x" * 100_000)
    outcome = send(receiver.url)
    assert (outcome.status, outcome.is_delivered, outcome.error) == (status, False, "")
    assert outcome.excerpt.startswith("no \ufffd way \ufffd[31m\ufffdxxx")
    assert len(outcome.excerpt) == EXCERPT_CHARACTERS


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    with receiving() as other:
        for status in (301, 302, 303, 307, 308):
            receiver.otherwise = Reply(status=status, headers={"Location": other.url})
            outcome = send(receiver.url)
            assert (outcome.status, outcome.is_delivered) == (status, False)
            assert "redirects are not followed" in outcome.error
        assert other.came == []


@pytest.mark.parametrize(
    ("value", "asked"),
    [("120", timedelta(seconds=120)), ("0", timedelta(0)), ("soon", None), ("-5", None), ("9" * 40, None)],
)
def test_a_receiver_may_say_when_to_come_again(receiver: Receiver, value: str, asked: timedelta | None) -> None:
    receiver.otherwise = Reply(status=503, headers={"Retry-After": value})
    assert send(receiver.url).asked == asked


@pytest.mark.parametrize("reply", [Reply(delay_s=30), Reply(drip_s=0.2)])
def test_a_receiver_that_takes_its_time_has_no_more_than_the_limit(receiver: Receiver, reply: Reply) -> None:
    receiver.otherwise = reply
    began = time.monotonic()
    outcome = send(receiver.url, time_limit_s=0.6)
    assert (outcome.status, outcome.error) == (None, "no answer within 0.6 s")
    assert time.monotonic() - began < 3


def test_a_receiver_that_says_yes_and_talks_on_has_said_yes(receiver: Receiver) -> None:
    receiver.otherwise = Reply(status=200, body=b"x" * 3000, drip_s=0.001)
    began = time.monotonic()
    outcome = send(receiver.url, time_limit_s=0.6)
    assert (outcome.status, outcome.error) == (200, "")
    assert set(outcome.excerpt) == {"x"}
    assert time.monotonic() - began < 3


def test_a_receiver_that_hangs_up_is_a_failure(receiver: Receiver) -> None:
    receiver.otherwise = Reply(hangs_up=True)
    outcome = send(receiver.url)
    assert outcome.status is None
    assert outcome.error


def test_a_port_where_nobody_listens_is_a_failure() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    outcome = send(f"http://127.0.0.1:{port}/")
    assert outcome.status is None
    assert "refused" in outcome.error


def test_an_answer_that_is_none_is_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def babble() -> None:
            connection, _peer = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")

        thread = threading.Thread(target=babble)
        thread.start()
        outcome = send(f"http://127.0.0.1:{server.getsockname()[1]}/")
        thread.join(5)
    assert (outcome.status, bool(outcome.error)) == (None, True)


def test_without_leave_nothing_is_sent_to_this_machine(receiver: Receiver) -> None:
    port = receiver.url.rpartition(":")[2]
    for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"):
        outcome = send(f"https://{host}:{port}", allowed=[])
        assert outcome.status is None
        assert "no public address" in outcome.error or "does not resolve" in outcome.error
    assert receiver.came == []


def port_of(receiver: Receiver) -> int:
    return int(receiver.url.split(":")[2].split("/")[0])


def found_at(port: int, *addresses: str) -> Any:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]


def test_a_name_that_resolves_otherwise_a_moment_later_gains_nothing(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name leads to the one that is allowed at the first look, and elsewhere at each further one."""
    port, looks, real = port_of(receiver), [], socket.getaddrinfo

    def rebinding(host: str, *rest: Any, **facts: Any) -> Any:
        if host != "rebound.example":
            return real(host, *rest, **facts)
        looks.append(host)
        return found_at(port, "127.0.0.1" if len(looks) == 1 else "127.0.0.2")

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    here = [ipaddress.ip_network("127.0.0.1/32")]
    outcome = send(f"http://rebound.example:{port}/events", allowed=here, resolve=rebinding)
    assert outcome.status == 204
    assert len(looks) == 1
    assert receiver.came[0].headers["host"] == f"rebound.example:{port}"


def test_of_several_addresses_the_next_is_tried_when_one_does_not_answer(receiver: Receiver) -> None:
    both = found_at(port_of(receiver), "::1", "127.0.0.1")
    outcome = send(f"http://two.example:{port_of(receiver)}/events", resolve=lambda *_names, **_facts: both)
    assert outcome.status == 204


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    names: list[x509.GeneralName] = (
        [x509.IPAddress(ipaddress.ip_address(name))] if name[0].isdigit() else [x509.DNSName(name)]
    )
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert, private = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert, private


@pytest.mark.parametrize(("name", "is_right"), [("receiver.example", True), ("other.example", False)])
def test_a_certificate_has_to_be_of_the_name_and_not_of_the_address(tmp_path: Path, name: str, is_right: bool) -> None:
    cert, private = certificate(tmp_path, name)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(cert, private)
    trusting = ssl.create_default_context(cafile=str(cert))
    with receiving(tls=serving) as receiver:
        here = found_at(port_of(receiver), "127.0.0.1")
        url = f"https://receiver.example:{port_of(receiver)}/events"
        outcome = send(url, tls=trusting, resolve=lambda *_names, **_facts: here)
        assert (outcome.status == 204) == is_right
        assert is_right or "certificate" in outcome.error.lower()
        assert len(receiver.came) == is_right


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(*certificate(tmp_path, "127.0.0.1"))
    with receiving(tls=serving) as receiver:
        outcome = send(receiver.url)
    assert outcome.status is None
    assert "certificate" in outcome.error.lower()
    assert receiver.came == []
