import hashlib
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import InvalidInput
from registry.hub.names import (
    EMPTY_COMMIT,
    RepoName,
    base_model_names,
    check_branch,
    commit_id,
    identity_in,
    is_commit_id,
    is_left_out,
    lfs_pointer,
    parse_repo_name,
)
from registry.naming import check_name


@given(identity=st.uuids(), text=st.text())
def test_a_commit_is_found_by_its_id_and_changes_with_its_content(identity: UUID, text: str) -> None:
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
    commit = commit_id(identity, digest)
    assert is_commit_id(commit)
    assert identity_in(commit) == identity
    assert commit.endswith(digest[:8])


@pytest.mark.parametrize("text", ["main", "", EMPTY_COMMIT, "A" * 40, "0" * 39, "g" * 40])
def test_what_is_no_commit_names_nothing(text: str) -> None:
    assert identity_in(text) == UUID(int=0)


def test_the_first_dot_of_a_repository_ends_the_adapter() -> None:
    assert parse_repo_name("support-tone") == RepoName("support-tone", None)
    assert parse_repo_name("support-tone.2026-07-04.3") == RepoName("support-tone", "2026-07-04.3")
    for text in ("", ".v1", "Support", "a/b", "a.", "a.v1/"):
        with pytest.raises(InvalidInput):
            parse_repo_name(text)


def test_a_branch_is_no_commit_and_no_path() -> None:
    assert check_branch("next-2") == "next-2"
    for name in ("refs/pr/1", "0" * 40, ""):
        with pytest.raises(InvalidInput):
            check_branch(name)


def test_the_pointer_of_a_file_is_that_of_git_lfs() -> None:
    # As `git hash-object` gives it for the pointer file of "hello\n".
    digest = hashlib.sha256(b"hello\n").hexdigest()
    text = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize 6\n"
    pointer = lfs_pointer(sha256=digest, size=6)
    assert pointer.size == len(text)
    assert pointer.oid == hashlib.sha1(b"blob %d\0" % len(text) + text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("recorded", "name"),
    [
        ("HuggingFaceTB/SmolLM2-135M-Instruct", "smollm2-135m-instruct"),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", "huggingfacetb-smollm2-135m-instruct"),
        ("Qwen/Qwen2.5-7B", "qwen2-5-7b"),
        ("/models/tiny_base/", "tiny-base"),
        ("C:\\models\\tiny-base", "tiny-base"),
        ("tiny-base", "tiny-base"),
    ],
)
def test_a_base_is_known_by_its_hub_id_its_name_or_its_folder(recorded: str, name: str) -> None:
    assert name in base_model_names(recorded)


@given(st.text(max_size=80))
def test_any_recorded_base_gives_names_that_may_be_looked_up(recorded: str) -> None:
    for name in base_model_names(recorded):
        if name and len(name) <= 63:
            check_name(name)


@pytest.mark.parametrize(
    "path", ["training_args.bin", "checkpoint-1/optimizer.pt", ".gitattributes", "rng_state_0.pth"]
)
def test_what_trainers_write_beside_an_adapter_is_left_out(path: str) -> None:
    assert is_left_out(path)


@pytest.mark.parametrize("path", ["adapter_model.bin", "adapter_model.safetensors", "model.pt", "training_args.binx"])
def test_nothing_else_is_left_out_silently(path: str) -> None:
    assert not is_left_out(path)
