import io
import threading
from pathlib import Path

from deploy.embedded.output import Console, LogFile, prefix, pump


class GoneReader(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_each_line_carries_the_name_of_its_process() -> None:
    stream = io.StringIO()
    console = Console(stream)
    console.line("web", "listening")
    console.line("postgres", "ready")
    console.close()
    assert stream.getvalue() == "web       | listening\npostgres  | ready\n"


def test_names_have_different_colours_on_a_terminal() -> None:
    stream = io.StringIO()
    console = Console(stream, colours=True)
    console.line("web", "listening")
    console.line("gateway", "listening")
    console.close()
    web, gateway = stream.getvalue().splitlines()
    assert web == f"{prefix('web', colour=36)}listening"
    assert gateway == f"{prefix('gateway', colour=32)}listening"


class StuckReader(io.StringIO):
    def __init__(self) -> None:
        super().__init__()
        self.reads = threading.Event()

    def write(self, text: str) -> int:
        self.reads.wait()
        return super().write(text)


def test_a_terminal_that_is_held_up_holds_up_nobody_else(tmp_path: Path) -> None:
    stream = StuckReader()
    console = Console(stream, colours=False, queued=3)
    log = LogFile(tmp_path / "web.log", name="web", console=console)
    for number in range(100):
        log.write(f"line {number}")
    log.close()
    assert len((tmp_path / "web.log").read_text().splitlines()) == 100
    stream.reads.set()
    console.close()
    assert 3 <= len(stream.getvalue().splitlines()) <= 4


def test_a_reader_that_went_away_does_not_stop_the_log_file(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "web.log", name="web", console=Console(GoneReader(), colours=False))
    log.write("one")
    log.write("two")
    log.close()
    assert (tmp_path / "web.log").read_text() == "one\ntwo\n"


def test_a_long_log_starts_again_and_keeps_one_older_file(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "web.log", name="web", rotate_bytes=10)
    for number in range(5):
        log.write(f"line number {number}")
    log.close()
    assert (tmp_path / "web.log").read_text() == "line number 4\n"
    assert (tmp_path / "web.log.1").read_text() == "line number 3\n"


def test_a_log_continues_where_an_earlier_start_ended(tmp_path: Path) -> None:
    for text in ("first start", "second start"):
        log = LogFile(tmp_path / "web.log", name="web")
        log.write(text)
        log.close()
    assert (tmp_path / "web.log").read_text() == "first start\nsecond start\n"


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "web.log", name="web")
    pump(io.BytesIO(b"caf\xe9\r\nlast line without end"), log).join()
    log.close()
    assert (tmp_path / "web.log").read_text() == "caf\ufffd\nlast line without end\n"


def test_a_full_disk_does_not_stop_the_process_that_writes(tmp_path: Path) -> None:
    stream = io.StringIO()
    console = Console(stream, colours=False)
    (tmp_path / "web.log").symlink_to("/dev/full")
    log = LogFile(tmp_path / "web.log", name="web", console=console)
    pump(io.BytesIO(b"one\ntwo\n"), log).join()
    log.close()
    console.close()
    assert stream.getvalue() == "web       | one\nweb       | two\n"


def test_a_terminal_without_unicode_still_shows_every_line() -> None:
    raw = io.BytesIO()
    console = Console(io.TextIOWrapper(raw, encoding="ascii", write_through=True), colours=False)
    console.line("web", "caf\u00e9")
    console.line("web", "next")
    console.close()
    assert raw.getvalue() == b"web       | caf\\xe9\nweb       | next\n"
