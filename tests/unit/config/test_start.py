import os
import subprocess
import sys
from typing import Final

import pytest

WEB: Final = ("-c", "import config.wsgi")
COMMAND: Final = ("manage.py", "check")


@pytest.mark.parametrize(
    ("start", "roles", "said"),
    [
        (WEB, '{"ops": ["acme/operator"]}', ""),
        (WEB, '{"ops": ["acme/king"]}', "ops gives acme/king; a role is one of"),
        (COMMAND, "{", "OIDC_ROLES is not JSON"),
    ],
)
def test_what_groups_give_is_read_when_a_process_starts(start: tuple[str, ...], roles: str, said: str) -> None:
    environment = {**os.environ, "LOREKEEPER_OIDC_ROLES": roles, "LOREKEEPER_SECRET_KEY": "x"}
    started = subprocess.run([sys.executable, *start], env=environment, capture_output=True, text=True, check=False)
    assert (started.returncode == 0) == (not said), started.stderr
    assert said in started.stderr
