from pathlib import Path

from bench.cache.adapters import Built
from bench.cache.asking import PATIENCE_S, Answer
from bench.cache.figures import figures_of
from bench.cache.identity import Voice, Voices
from bench.cache.reads import Read

VERSIONS = {number: Built(number, "acme", "tone", f"v{number}", Path(f"version-{number}"), 8) for number in (1, 2)}
VOICES = Voices({f"acme/tone@v{number}": Voice((str(number),), (-0.1,)) for number in (1, 2)})


def answer(version: int, *, by: int, said: str = "", first_token_s: float = 0.1, found: bool = True) -> Answer:
    return Answer(
        version,
        0.0,
        status=200,
        first_token_s=first_token_s,
        voice=Voice((str(by),), (-0.1,)),
        found=found,
        said=said or f"acme/tone@v{version}",
    )


def test_an_arm_is_summed_up_with_what_was_wrong_apart_from_what_was_not_answered() -> None:
    answers = [
        answer(1, by=1),
        answer(1, by=2, found=False),
        answer(2, by=2, said="acme/tone@v1"),
        Answer(2, 0.0, status=503, reason="no room"),
    ]

    figures = figures_of(
        answers,
        versions=VERSIONS,
        voices=VOICES,
        reads=[Read(1.0, "a", 100), Read(2.0, "b", 50)],
        downloaded=70,
        crashed=False,
    )

    assert (figures.requests, figures.answered, figures.misses) == (4, 3, 2)
    assert (figures.wrong, figures.misrouted) == (1, 1)
    assert (figures.loads, figures.loaded_bytes, figures.downloaded_bytes) == (2, 150, 70)
    assert figures.reasons == {"503 no room": 1}
    assert figures.p95_ms == PATIENCE_S * 1000
