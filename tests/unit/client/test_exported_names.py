import subprocess
import sys

import client


def test_the_exported_names_are_sorted_and_exist() -> None:
    assert client.__all__ == sorted(client.__all__, key=lambda name: (not name[0].isupper(), name))
    assert all(hasattr(client, name) for name in client.__all__)


def test_the_sdk_exports_every_error_of_its_tree() -> None:
    errors = {name for name, kind in vars(client.errors).items() if isinstance(kind, type) and not name.startswith("_")}
    assert errors <= set(client.__all__)


def test_the_public_names_of_the_sdk_stay_as_they_are() -> None:
    missing = {
        "ApiError",
        "GatewayClient",
        "LorekeeperClient",
        "LorekeeperError",
        "PairRef",
        "PushResult",
        "RetryPolicy",
        "Version",
        "VersionRef",
        "verify_export",
    } - set(client.__all__)
    assert not missing


def test_the_error_tree_in_the_docstring_names_every_error() -> None:
    text = client.errors.__doc__ or ""
    kinds = [kind for kind in vars(client.errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert [kind.__name__ for kind in kinds if not kind.__name__.startswith("_") and kind.__name__ not in text] == []


def test_neither_sdk_nor_command_line_imports_django() -> None:
    code = "import sys, client.cli.main; sys.exit(any(m.split('.')[0] in ('django', 'celery') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
