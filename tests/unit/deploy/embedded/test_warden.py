import json

from deploy.embedded.system.sessions import Session
from deploy.embedded.warden import follow


def said(**what: object) -> str:
    return json.dumps(what) + "\n"


def test_what_was_started_and_not_ended_is_left_when_the_owner_is_gone() -> None:
    valkey = Session(name="valkey", leader=11, created=1.5)
    postgres = Session(name="postgres", leader=12, created=2.5, stop_signal=2, postgres_folder="/data")
    lines = [said(watch=valkey.to_json()), said(watch=postgres.to_json()), said(forget=11)]
    assert follow(lines) == [postgres]


def test_an_owner_that_ended_all_leaves_nothing() -> None:
    valkey = Session(name="valkey", leader=11, created=1.5)
    assert follow([said(watch=valkey.to_json()), said(forget=11)]) == []


def test_forgetting_what_was_never_watched_is_harmless() -> None:
    assert follow([said(forget=99)]) == []
