from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry import naming
from registry.errors import InvalidInput

SHA = "a" * 64


@pytest.mark.parametrize("name", ["a", "acme", "support-tone", "0", "a" * 63, "a--b"])
def test_a_plain_name_is_accepted(name: str) -> None:
    assert naming.check_name(name) == name


@pytest.mark.parametrize("name", ["llama-3.1-8b-instruct", "a", "0", "a.b.c", "x" * 63])
def test_names_of_base_models_have_dots_as_their_publishers_write_them(name: str) -> None:
    assert naming.check_base_model_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "a..b", ".a", "a.", "-a", "A", "a/b", "a b", "a\n", "é", "x" * 64])
def test_other_names_of_base_models_are_refused(name: str) -> None:
    with pytest.raises(naming.BadName) as refusal:
        naming.check_base_model_name(name)
    assert refusal.value.field == "base_model"


@pytest.mark.parametrize(
    "name", ["", "-a", "a-", "A", "a_b", "a.b", "a" * 64, "a\n", "ä", "a/b", "..", "a b", "\u0661"]
)
def test_a_bad_name_is_refused_and_names_its_field(name: str) -> None:
    with pytest.raises(naming.BadName, match=r"^adapter: ") as caught:
        naming.check_name(name, field="adapter")
    assert caught.value.field == "adapter"
    assert caught.value.code == "bad_name"
    assert isinstance(caught.value, InvalidInput)


@pytest.mark.parametrize("name", ["support", "tone.default", f"{'a' * 63}.default"])
def test_an_alias_is_named_as_anything_is_or_is_the_default_of_an_adapter(name: str) -> None:
    assert naming.check_alias_name(name) == name


@pytest.mark.parametrize(
    "name", [".default", "a.b", "a.default.default", "A.default", "a.Default", f"{'a' * 64}.default"]
)
def test_other_names_with_a_dot_are_no_aliases(name: str) -> None:
    with pytest.raises(naming.BadName, match=r"^alias: "):
        naming.check_alias_name(name)


def test_the_default_of_an_adapter_is_called_after_it() -> None:
    assert naming.default_alias_name("tone") == "tone.default"


def test_the_platform_is_no_tenant() -> None:
    assert naming.check_tenant_name("acme") == "acme"
    with pytest.raises(naming.BadName, match="reserved"):
        naming.check_tenant_name("platform")


@pytest.mark.parametrize("name", ["api", "store", "datasets", "spaces", "models"])
def test_what_addresses_begin_with_is_no_tenant(name: str) -> None:
    with pytest.raises(naming.BadName, match="reserved"):
        naming.check_tenant_name(name)


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("", "empty"),
        ("../../etc", "path"),
        ("a/b", "slash"),
        (" lead", "space"),
        ("a\nb", "control"),
        ("\u202eabc", "control or invisible"),
        ("x" * 64, "length"),
        ("na\u00efve", "letters"),
        ("A-b", "upper case"),
        (".hidden", "start"),
        ("trailing-", "end"),
        ("v1@2", "at sign"),
        ("a.b", "signs"),
    ],
)
def test_a_refused_name_is_told_what_is_wrong_with_it(name: str, cause: str) -> None:
    with pytest.raises(naming.BadName, match=cause):
        naming.check_name(name)


@pytest.mark.parametrize("name", ["2026-07-04.3", "v1", "V1_rc-2", "1", "a" * 64])
def test_a_plain_version_name_is_accepted(name: str) -> None:
    assert naming.check_version_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", ".v1", "v1.", "v 1", "v/1", "a" * 65, "v1\n", "vé"])
def test_a_bad_version_name_is_refused(name: str) -> None:
    with pytest.raises(naming.BadName) as caught:
        naming.check_version_name(name)
    assert caught.value.field == "version"


def test_the_default_version_name_is_date_and_counter() -> None:
    assert naming.default_version_name(date(2026, 7, 4), 3) == "2026-07-04.3"
    with pytest.raises(naming.BadName):
        naming.default_version_name(date(2026, 7, 4), 0)


def _engine_name(**changes: str) -> str:
    identity = {"tenant": "acme", "adapter": "support-tone", "version": "2026-07-04.3", "base_digest": SHA}
    return naming.engine_name(**{**identity, "root_digest": "b" * 64, **changes})


def test_the_engine_name_is_readable_and_fixed_for_ever() -> None:
    assert _engine_name() == "lk-support-tone-2026-07-04-3-aae6457b5512053cd50e"


@pytest.mark.parametrize("part", ["tenant", "adapter", "version", "base_digest", "root_digest"])
def test_each_part_of_the_identity_changes_the_engine_name(part: str) -> None:
    assert _engine_name(**{part: "c" * 10}) != _engine_name()


@given(adapter=st.from_regex(naming._NAME, fullmatch=True), version=st.from_regex(naming._VERSION_NAME, fullmatch=True))
def test_an_engine_name_is_itself_a_short_plain_word(adapter: str, version: str) -> None:
    name = _engine_name(adapter=adapter, version=version)
    assert len(name) <= 66
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert not name.endswith("-")


def test_the_object_key_ends_with_the_digest() -> None:
    assert naming.object_key(tenant="acme", sha256=SHA) == f"artifacts/acme/aa/{SHA}"
    with pytest.raises(naming.BadDigest):
        naming.object_key(tenant="acme", sha256="A" * 64)
    with pytest.raises(naming.BadName):
        naming.object_key(tenant="../acme", sha256=SHA)


GOOD_PATHS = ["adapter_model.safetensors", "a/b/c.json", "README.md", "Zürich.json", "two words.txt", "a.b.json"]


@pytest.mark.parametrize("path", GOOD_PATHS)
def test_an_ordinary_path_is_accepted(path: str) -> None:
    assert naming.check_path(path) == path


BAD_PATHS = {
    "": "empty",
    "/etc/passwd.json": "absolute",
    "../x.json": "'..'",
    "a/../x.json": "'..'",
    "./x.json": "'.'",
    "a//x.json": "empty segment",
    "a/": "empty segment",
    "a\\x.json": "backslash",
    "C:\\x.json": "backslash",
    "C:x.json": "contains one of",
    ".git/config.json": "git",
    "a/.GIT/x.json": "git",
    ".gitattributes": "git",
    ".github/x.json": "git",
    "GIT~1/x.json": "git",
    "-rf.json": "begins with '-'",
    "a/-x.json": "begins with '-'",
    "a\x00.json": "control",
    "a\n.json": "control",
    "a\x7f.json": "control",
    "a\u202egnp.json": "direction-changing",
    "a\u2066.json": "direction-changing",
    "a\u200b.json": "invisible",
    "a\u00a0b.json": "invisible",
    "a\ud800.json": "control",
    "Zu\u0308rich.json": "NFC",
    "d/" * 8 + "x.json": "deeper",
    "x" * 256: "longer",
    "ü" * 128 + ".json": "longer",
    "NUL": "Windows",
    "con.json": "Windows",
    "a/Com1.x.json": "Windows",
    "lpt\u00b9.json": "Windows",
    "a./x.json": "dot",
    " a.json": "space",
    "a.json ": "space",
    "model.sig": "signature",
    "Release.intoto.json": "signature",
}


@pytest.mark.parametrize(("path", "reason"), BAD_PATHS.items(), ids=ascii)
def test_a_dangerous_path_is_refused_with_its_reason(path: str, reason: str) -> None:
    with pytest.raises(naming.BadPath, match=reason) as caught:
        naming.check_path(path, field="files[2].path")
    assert caught.value.field == "files[2].path"
    assert str(caught.value).isascii()
    assert "\n" not in str(caught.value)


@given(st.text(max_size=40))
def test_an_accepted_path_never_leaves_its_folder(path: str) -> None:
    try:
        naming.check_path(path)
    except naming.BadPath:
        return
    assert not {"", ".", ".."} & set(path.split("/"))
    assert "\\" not in path


GOOD_KINDS = ["a.safetensors", "x/adapter_config.json", "chat_template.jinja", "README.md", "NOTES.MD", "a.txt"]


@pytest.mark.parametrize("path", [*GOOD_KINDS, "LICENSE", "tokenizer.model", "merges.txt", "vocab.txt", "x/LICENSE"])
def test_a_file_an_adapter_needs_is_accepted(path: str) -> None:
    assert naming.check_file_kind(path) == path


@pytest.mark.parametrize("path", ["adapter_model.bin", "a.pt", "a.PTH", "a.pkl", "a.pickle", "a.ckpt", "x/a.joblib"])
def test_a_pickle_is_refused_because_it_can_run_code(path: str) -> None:
    with pytest.raises(naming.FileKindRefused, match="pickled code") as caught:
        naming.check_file_kind(path)
    assert caught.value.code == "file_kind_refused"


@pytest.mark.parametrize(
    "path", ["train.py", "a.so", "a.gguf", "a.SAFETENSORS", "other.model", "a", "a.zip", "a.json.gz"]
)
def test_any_other_file_is_refused(path: str) -> None:
    with pytest.raises(naming.FileKindRefused, match="an adapter holds"):
        naming.check_file_kind(path)


def test_the_paths_of_an_upload_come_back_in_the_order_of_the_signature() -> None:
    assert naming.check_manifest_paths(["b.json", "a-b/x.json", "a/x.json"]) == ("a/x.json", "a-b/x.json", "b.json")


@pytest.mark.parametrize(
    ("paths", "reason"),
    [
        (["a.json", "a.json"], "listed twice"),
        (["a.json", "A.json"], "clashes"),
        (["d/a.json", "D/b.json"], "clashes"),
        (["straße.json", "strasse.json"], "clashes"),
        (["a.json", "a.json/b.json"], "clashes"),
        (["A.json/b.json", "a.json"], "clashes"),
    ],
)
def test_paths_that_cannot_lie_side_by_side_are_refused(paths: list[str], reason: str) -> None:
    with pytest.raises(naming.PathClash, match=reason) as caught:
        naming.check_manifest_paths(paths)
    assert caught.value.field == "files[1].path"


def test_two_files_in_one_folder_do_not_clash() -> None:
    naming.check_manifest_paths(["d/e/a.json", "d/e/b.json", "d/c.json"])


@pytest.mark.parametrize("count", [0, naming.MAX_FILES + 1])
def test_an_upload_has_a_sane_number_of_files(count: int) -> None:
    with pytest.raises(naming.BadPath) as caught:
        naming.check_manifest_paths([f"{index}.json" for index in range(count)])
    assert caught.value.field == "files"


def test_a_bad_path_in_an_upload_is_named_by_its_place() -> None:
    with pytest.raises(naming.BadPath) as caught:
        naming.check_manifest_paths(["a.json", "../b.json"])
    assert caught.value.field == "files[1].path"
    with pytest.raises(naming.FileKindRefused) as refused:
        naming.check_manifest_paths(["a.pkl"])
    assert refused.value.field == "files[0].path"
