"""Where the client connects and as whom: environment first, then the file that `lorekeeper login` wrote."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from client.errors import ConfigurationError
from client.i18n import _

if TYPE_CHECKING:
    from collections.abc import Mapping

URL_VARIABLE = "LOREKEEPER_URL"
TOKEN_VARIABLE = "LOREKEEPER_TOKEN"  # noqa: S105  # the variable's name, not a secret
TRUSTED_KEYS_VARIABLE = "LOREKEEPER_TRUSTED_KEYS"
_PRIVATE_FOLDER = 0o700


@dataclass(frozen=True, slots=True)
class Credentials:
    """A server's base URL and a token for it."""

    url: str
    token: str = field(repr=False)


def clean_url(text: str) -> str:
    """Return a base URL without trailing slash.

    Raises:
        ConfigurationError: it isn't an http(s) address with a host and nothing behind the path.

    """
    url = text.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid or parts.query or parts.fragment or parts.username or parts.password:
        message = _("{text!r} isn't a server address; give one like https://lorekeeper.example (variable {name}).")
        raise ConfigurationError(message.format(text=text, name=URL_VARIABLE))
    return url


def config_path(environ: Mapping[str, str]) -> Path:
    """Return the configuration file's place by the XDG rules."""
    base = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if base.startswith("/") else _home(environ) / ".config"
    return folder / "lorekeeper" / "config.json"


def trusted_keys_path(environ: Mapping[str, str]) -> Path:
    """Return where the keys lie that this machine trusts: as the environment says, or beside the configuration."""
    named = environ.get(TRUSTED_KEYS_VARIABLE, "")
    return Path(named) if named else config_path(environ).with_name("trusted-keys.json")


def _home(environ: Mapping[str, str]) -> Path:
    try:
        return Path(environ.get("HOME") or "~").expanduser()
    except RuntimeError as error:
        raise ConfigurationError(_("This user has no home folder; set XDG_CONFIG_HOME.")) from error


def is_token(text: str) -> bool:
    """Say whether this may be a token: other characters can't be sent in a header."""
    return text.isascii() and text.isprintable() and " " not in text and bool(text)


def load_credentials(environ: Mapping[str, str]) -> Credentials:
    """Return URL and token from the environment, or what is missing there from the configuration file.

    A stored token is only ever sent to the server it was stored for.

    Raises:
        ConfigurationError: either is missing, the file is broken, or the stored token belongs to another server.

    """
    url, token = environ.get(URL_VARIABLE, ""), environ.get(TOKEN_VARIABLE, "").strip()
    if token and not is_token(token):
        raise ConfigurationError(
            _("{name} has characters that tokens don't have; copy it again.").format(name=TOKEN_VARIABLE)
        )
    # With both in the environment the file isn't touched: it may lie in a home that this user can't read.
    stored = None if url and token else _load_stored(config_path(environ))
    url = url or (stored.url if stored else "")
    if not url:
        raise ConfigurationError(
            _("No server is known; run `lorekeeper login` or set {name}.").format(name=URL_VARIABLE)
        )
    url = clean_url(url)
    if token:
        return Credentials(url, token)
    if stored is None:
        raise ConfigurationError(
            _("No token is known; run `lorekeeper login` or set {name}.").format(name=TOKEN_VARIABLE)
        )
    if stored.url != url:
        message = _("The stored token belongs to {stored}, not to {url}; run `lorekeeper login` or set {name}.")
        raise ConfigurationError(message.format(stored=stored.url, url=url, name=TOKEN_VARIABLE))
    return stored


def save_credentials(credentials: Credentials, environ: Mapping[str, str]) -> Path:
    """Write the configuration file, readable by its owner only, and return its path."""
    path = config_path(environ)
    path.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_FOLDER)
    text = json.dumps({"url": credentials.url, "token": credentials.token}, indent=2) + "\n"
    descriptor, name = tempfile.mkstemp(prefix=".config.", dir=path.parent)  # mkstemp gives mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def _load_stored(path: Path) -> Credentials | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _broken(path) from error
    if not isinstance(data, dict) or not isinstance(data.get("url"), str) or not isinstance(data.get("token"), str):
        raise _broken(path)
    if not is_token(data["token"]):
        raise _broken(path)
    return Credentials(clean_url(data["url"]), data["token"])


def _broken(path: Path) -> ConfigurationError:
    return ConfigurationError(
        _("{path} can't be read as the client's configuration; run `lorekeeper login` again.").format(path=path)
    )
