"""``python -m config.messages.compile``: make the .mo file beside each .po file that is newer. No Django."""

from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

ROOT = Path(__file__).resolve().parents[2]


def catalogues() -> list[Path]:
    """The .po files of this repository."""
    return sorted(ROOT.glob("*/locale/*/LC_MESSAGES/django.po"))


def compile_all() -> None:
    for source in catalogues():
        made = source.with_suffix(".mo")
        if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
            compile_one(source, made)


def compile_one(source: Path, made: Path) -> None:
    with source.open("rb") as file:
        catalogue = read_po(file)
    fresh = made.with_suffix(".mo.new")
    with fresh.open("wb") as file:
        write_mo(file, catalogue)
    fresh.replace(made)


if __name__ == "__main__":
    compile_all()
