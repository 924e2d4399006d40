import httpx
import pytest

from client import LorekeeperClient, PairRef, Release, RetryPolicy, VersionRef, WaitTimedOut

ALIAS = PairRef("acme", "support")
VERSION = {"adapter": "tone", "version": "v1"}
RELEASE = {
    "tenant": "acme",
    "alias": "support",
    "number": 1,
    "state": "progressing",
    "sentence": "It waits.",
    "stable": VERSION,
    "candidate": {**VERSION, "version": "v2"},
}


def client(*answers: dict[str, object]) -> LorekeeperClient:
    """A client of a server that gives these answers, the last one again and again."""
    left = list(answers)

    def serve(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=left.pop(0) if len(left) > 1 else left[0])

    return LorekeeperClient(
        "http://registry.test", "lk_1", retry=RetryPolicy(attempts=1), transport=httpx.MockTransport(serve)
    )


def watched(*answers: dict[str, object], timeout_s: float | None = None) -> list[Release]:
    now = iter(range(1000))
    calls = client(*answers).releases
    return list(calls.watch(ALIAS, 1, timeout_s=timeout_s, clock=lambda: next(now), sleep=lambda _seconds: None))


def test_a_release_to_another_tenants_version_is_not_asked_for() -> None:
    with pytest.raises(ValueError, match="other"):
        client(RELEASE).releases.make(ALIAS, VersionRef("other", "tone", "v2"))


def test_watching_tells_what_is_new_until_the_release_is_over() -> None:
    over = {**RELEASE, "state": "promoted"}
    seen = watched(RELEASE, {**RELEASE, "looked_at": "later"}, {**RELEASE, "sentence": "Still."}, over)
    assert [(release.state, release.sentence) for release in seen] == [
        ("progressing", "It waits."),
        ("progressing", "Still."),
        ("promoted", "It waits."),
    ]
    assert seen[-1].is_over


def test_a_release_that_is_over_is_told_once() -> None:
    assert len(watched({**RELEASE, "state": "aborted"})) == 1


def test_watching_for_too_long_says_so() -> None:
    with pytest.raises(WaitTimedOut, match="acme/support release 1 is still progressing after 3 s"):
        watched(RELEASE, timeout_s=3)
