import pytest

from client.refs import PairRef, VersionRef


def test_a_version_is_read_and_written_the_same() -> None:
    ref = VersionRef.parse("acme/support-tone@2026-07-04.3")
    assert (ref.tenant, ref.adapter, ref.version) == ("acme", "support-tone", "2026-07-04.3")
    assert str(ref) == "acme/support-tone@2026-07-04.3"


@pytest.mark.parametrize(
    "text",
    [
        "acme",
        "acme/tone",
        "acme/tone@",
        "Acme/tone@v1",
        "acme/tone@../v1",
        "acme/tone@v1\n",
        "a/b/c@v1",
        "acme/tone@.v",
    ],
)
def test_other_forms_of_a_version_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="TENANT/ADAPTER@VERSION"):
        VersionRef.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "acme",
        "/tone",
        "acme/",
        "acme/tone@v1",
        "acme/-tone",
        "acme//tone",
        "a" * 64 + "/x",
        "acme/a.b",
        "acme/.default",
    ],
)
def test_other_forms_of_a_pair_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="TENANT/NAME"):
        PairRef.parse(text)


def test_the_default_of_an_adapter_is_a_pair() -> None:
    assert PairRef.parse("acme/tone.default") == PairRef("acme", "tone.default")
