import sys
from subprocess import PIPE, Popen

import pytest

from deploy.demo.command_line import CommandFailedError, Lorekeeper, finish, parse, reason_of


def test_the_document_is_what_was_printed() -> None:
    assert parse('{"name": "v1"}\n', "warning") == {"name": "v1"}


@pytest.mark.parametrize("out", ["", "Traceback", "[1, 2]", "null"])
def test_output_that_is_no_document_becomes_an_error_with_what_was_said(out: str) -> None:
    answer = parse(out, "no such option")
    assert reason_of(answer) == "no such option"


def test_without_stderr_the_error_tells_what_stdout_said() -> None:
    assert reason_of(parse("Traceback", "")) == "Traceback"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"error": {"code": "x", "detail": "The token is unknown."}}, "The token is unknown."),
        ({"error": {"message": "m"}}, "m"),
        ({"state": "rejected"}, '{"state": "rejected"}'),
    ],
)
def test_the_reason_is_the_sentence_of_the_error(answer: dict[str, object], reason: str) -> None:
    assert reason_of(answer) == reason


def test_exit_code_and_document_are_read_from_a_process() -> None:
    process = Popen([sys.executable, "-c", "print('{}'); raise SystemExit(3)"], stdout=PIPE, stderr=PIPE, text=True)
    assert finish(process) == (3, {})


def test_a_command_without_a_server_is_no_refusal() -> None:
    nobody = Lorekeeper("not an address", "lk_0_x")
    with pytest.raises(CommandFailedError, match="versions"):
        nobody.refused("versions", "acme/support-tone")
    with pytest.raises(CommandFailedError, match="versions"):
        nobody.run("versions", "acme/support-tone")


def test_the_token_stays_out_of_what_is_printed_of_a_command_line() -> None:
    assert "secret" not in repr(Lorekeeper("http://127.0.0.1:1", "lk_0_secret"))
