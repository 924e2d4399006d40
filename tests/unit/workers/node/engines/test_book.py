from pathlib import Path

import pytest

from workers.node.engines.book import Book
from workers.node.engines.ports import LoadedAdapter


def book_at(folder: Path, *, starts_with_wanted: bool = False) -> Book:
    return Book(folder / "notes" / "book.json", kind="lorax", starts_with_wanted=starts_with_wanted)


def names(book: Book) -> list[str]:
    return [adapter.name for adapter in book.listed()]


def test_one_life_keeps_its_id_while_its_count_grows(tmp_path: Path) -> None:
    book = book_at(tmp_path)
    first = book.observe(count=3)
    assert first.startswith("lorax-")
    assert book.observe(count=3, since=3) == book.observe(count=9, since=3) == first


def test_a_count_that_fell_is_another_life_that_holds_nothing(tmp_path: Path) -> None:
    book = book_at(tmp_path)
    first = book.observe(count=3)
    book.add("lk-a", "/a")
    assert book.observe(count=2, since=book.count) != first
    assert book.listed() == ()


def test_what_the_driver_itself_asked_for_counts_too(tmp_path: Path) -> None:
    book = book_at(tmp_path)
    first = book.observe(count=3)
    book.saw(book.count + 1)
    assert book.observe(count=3, since=book.count) != first


def test_an_answer_that_was_overtaken_is_no_other_life(tmp_path: Path) -> None:
    book = book_at(tmp_path)
    asked_first = book.count
    life = book.observe(count=5, since=book.count)
    assert book.observe(count=3, since=asked_first) == life
    assert book.count == 5


@pytest.mark.parametrize("mark", ["1", "2"])
def test_another_mark_is_another_life(tmp_path: Path, mark: str) -> None:
    book = book_at(tmp_path)
    first = book.observe(mark="1")
    assert (book.observe(mark=mark) == first) is (mark == "1")


def test_who_answers_after_the_process_was_gone_is_another_life(tmp_path: Path) -> None:
    book = book_at(tmp_path)
    first = book.observe()
    book.end_life()
    second = book.observe()
    assert second != first
    assert book.observe() == second


def test_a_restarted_agent_knows_the_life_and_what_it_holds(tmp_path: Path) -> None:
    before = book_at(tmp_path)
    life = before.observe(mark="7", count=3)
    before.add("lk-a", "/a")
    after = book_at(tmp_path)
    assert after.observe(mark="7", count=5, since=after.count) == life
    assert after.listed() == (LoadedAdapter("lk-a", "/a"),)
    assert after.root_of("lk-a") == "/a"


def test_what_is_forgotten_is_not_listed(tmp_path: Path) -> None:
    book = book_at(tmp_path)
    book.observe()
    book.add("lk-a", "/a")
    book.forget("lk-a")
    book.forget("lk-never")
    assert (book.listed(), book.wanted, book.root_of("lk-a")) == ((), {}, None)


def test_what_is_wanted_is_held_only_once_the_engine_was_started_with_it(tmp_path: Path) -> None:
    book = book_at(tmp_path, starts_with_wanted=True)
    book.observe()
    book.want({"lk-a": "/a"})
    assert names(book) == []
    book.end_life()
    book.observe()
    assert names(book) == ["lk-a"]


def test_a_start_that_the_driver_asked_for_goes_on_with_the_same_life(tmp_path: Path) -> None:
    book = book_at(tmp_path, starts_with_wanted=True)
    life = book.observe(count=8)
    book.want({"lk-a": "/a"})
    book.end_life()
    book.start_over()
    assert names(book) == ["lk-a"]
    assert book.observe(count=0, since=book.count) == life


@pytest.mark.parametrize("text", ["", "[]", '{"life": "x"}', '{"life":"x","mark":"","count":0,"held":[],"wanted":{}}'])
def test_damaged_notes_begin_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "book.json").write_text(text)
    book = book_at(tmp_path)
    assert book.listed() == ()
    assert book.observe()
