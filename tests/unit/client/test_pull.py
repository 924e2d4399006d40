import pytest

from client.errors import UnexpectedAnswer
from client.pull import check_path


@pytest.mark.parametrize("path", ["adapter_config.json", "nested/README.md", "a..b"])
def test_plain_relative_paths_are_written(path: str) -> None:
    check_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "../x",
        "a/../x",
        "a//b",
        "a/",
        "./a",
        ".git/config",
        "a/.ssh",
        "a\\b",
        "a\nb",
        "model.sig",
        "release.intoto.json",
    ],
)
def test_paths_that_would_leave_hide_or_pose_are_refused(path: str) -> None:
    with pytest.raises(UnexpectedAnswer, match="nothing was pulled"):
        check_path(path)
