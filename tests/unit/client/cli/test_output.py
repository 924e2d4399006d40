import json

import pytest

from client.cli.output import Output, plain, printable, who
from client.errors import NotFound
from client.models import Upload, VersionFile


def test_control_characters_of_others_do_not_reach_the_terminal() -> None:
    assert printable("a\x1b]0;title\x07b\rc\n\td\u202e") == "a]0;titlebc\n\td"


def test_dataclasses_become_json_values() -> None:
    assert plain({"files": (VersionFile("a", 1, "0f"),)}) == {"files": [{"path": "a", "size": 1, "sha256": "0f"}]}
    assert plain(Upload("a", "u", headers={"h": "v"})) == {
        "path": "a",
        "url": "u",
        "method": "PUT",
        "headers": {"h": "v"},
        "stored": False,
        "part_bytes": None,
    }


def test_rich_markup_in_data_is_only_text(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json_mode=False).table(("name",), [("[red]x[/red] :smile:",)])
    assert "[red]x[/red] :smile:" in capsys.readouterr().out


def test_json_mode_prints_documents_only(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(json_mode=True)
    out.line("text")
    out.note("note")
    out.table(("a",), [("b",)])
    out.fields([("a", "b")])
    out.document({"a": 1})
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"a": 1}
    assert shown.err == ""


def test_an_error_is_one_line_with_advice(capsys: pytest.CaptureFixture[str]) -> None:
    error = NotFound(status=404, code="not_found", detail="No such version.", field="version")
    Output(json_mode=False).error(error)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("Error: version: No such version.") or shown.err.startswith("Error: No such version.")
    assert shown.err.count("\n") == 1


def test_people_are_shown_by_name() -> None:
    assert [who(v) for v in ("ada", {"name": "", "email": "a@b"}, {"id": 3}, None)] == ["ada", "a@b", "3", ""]
