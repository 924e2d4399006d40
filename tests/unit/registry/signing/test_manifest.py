import hashlib

from registry.signing.manifest import SignedFile, in_signed_order, root_digest


def _file(path: str, content: bytes = b"x") -> SignedFile:
    return SignedFile(path, len(content), hashlib.sha256(content).hexdigest())


def test_the_root_digest_is_over_the_raw_digests_in_signed_order() -> None:
    one, two = _file("a.json", b"1"), _file("b.json", b"2")
    expected = hashlib.sha256(hashlib.sha256(b"1").digest() + hashlib.sha256(b"2").digest()).hexdigest()
    assert root_digest([two, one]) == root_digest([one, two]) == expected


def test_paths_are_ordered_by_segment_and_not_by_character() -> None:
    assert [file.path for file in in_signed_order(map(_file, ["a-b/x", "a/x", "a.b", "B"]))] == [
        "B",
        "a/x",
        "a-b/x",
        "a.b",
    ]
