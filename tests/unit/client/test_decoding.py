import pytest

from client.decoding import decode, decode_list
from client.errors import UnexpectedAnswer
from client.models import Alias, AuditRecord, Identity, Version

VERSION = {"id": "1", "tenant": "acme", "adapter": "tone", "name": "v1", "state": "candidate"}


def test_nested_lists_become_tuples_of_dataclasses() -> None:
    version = decode(Version, {**VERSION, "files": [{"path": "a", "size": 3, "sha256": "0f"}], "target_modules": ["q"]})
    assert version.files[0].size == 3
    assert version.target_modules == ("q",)


def test_null_and_missing_fields_take_their_defaults() -> None:
    version = decode(Version, {**VERSION, "rank": None, "files": None})
    assert (version.rank, version.files, version.root_digest) == (None, (), None)


def test_unknown_fields_are_ignored() -> None:
    assert decode(Version, {**VERSION, "new_in_next_release": 1}).name == "v1"


def test_a_missing_field_is_refused_by_name() -> None:
    with pytest.raises(UnexpectedAnswer, match=r"Alias\.version"):
        decode(Alias, {"tenant": "acme", "name": "support", "adapter": "tone"})


@pytest.mark.parametrize("wrong", [True, "8", 8.5, [8]])
def test_a_field_of_another_type_is_refused_by_name(wrong: object) -> None:
    with pytest.raises(UnexpectedAnswer, match=r"Version\.rank"):
        decode(Version, {**VERSION, "rank": wrong})


def test_an_answer_that_is_no_object_is_refused() -> None:
    with pytest.raises(UnexpectedAnswer, match="Version"):
        decode(Version, [])


def test_roles_by_tenant_are_read() -> None:
    identity = decode(Identity, {"person": {"email": "a@b.c", "name": "A"}, "roles": {"acme": ["viewer"]}})
    assert identity.roles == {"acme": ("viewer",)}
    assert identity.person is not None
    assert identity.person.email == "a@b.c"


def test_an_audit_record_is_read() -> None:
    data = {
        "seq": 1,
        "at": "2026-07-04T00:00:00Z",
        "actor": {"kind": "person"},
        "action": "a:b:c",
        "object": {"kind": "version"},
        "before": None,
        "prev_hash": "0",
        "hash": "1",
        "payload": "{}",
    }
    assert decode(AuditRecord, data).object == {"kind": "version"}


def test_a_list_may_stand_alone_or_in_results() -> None:
    assert decode_list(Version, [VERSION]) == decode_list(Version, {"results": [VERSION]})


def test_a_list_that_is_none_is_refused() -> None:
    with pytest.raises(UnexpectedAnswer):
        decode_list(Version, {"rows": []})
