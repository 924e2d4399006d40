import io

from rich import progress as bars
from rich.console import Console

from client.cli.progress import BarProgress, transfer_progress
from client.progress import SilentProgress


def display() -> bars.Progress:
    return bars.Progress(console=Console(file=io.StringIO()), auto_refresh=False)


def test_a_bar_counts_the_bytes_of_its_file_and_begins_anew_on_a_second_try() -> None:
    shown = display()
    progress = BarProgress(shown)
    progress.started("upload", "weights", 100)
    progress.moved("upload", "weights", 60)
    assert shown.tasks[0].completed == 60
    progress.started("upload", "weights", 100)
    assert shown.tasks[0].completed == 0
    progress.finished("upload", "weights")
    assert (len(shown.tasks), shown.tasks[0].completed) == (1, 100)


def test_a_bar_of_reading_makes_room_when_it_is_done() -> None:
    shown = display()
    progress = BarProgress(shown)
    progress.started("hash", "weights", 100)
    progress.moved("hash", "weights", 100)
    progress.finished("hash", "weights")
    assert shown.tasks == []


def test_nothing_is_drawn_where_nobody_looks() -> None:
    with transfer_progress(quiet=False) as progress:
        assert isinstance(progress, SilentProgress)
