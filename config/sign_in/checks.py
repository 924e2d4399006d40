"""What has to be true of the settings before anybody signs in: a check of Django's."""

from typing import Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from config.sign_in.roles import MappingError, read_mapping

SIGN_IN: Final = "sign_in"


def connect() -> None:
    """Called once, when Django is set up."""
    register(check_mapping, SIGN_IN)


def check_mapping(**_facts: Any) -> list[CheckMessage]:  # noqa: ANN401  Django passes what it likes
    """What groups give can be read: else the first who comes by single sign-on would find out."""
    try:
        read_mapping(settings.OIDC["roles"])
    except MappingError as error:
        return [Error(str(error), id="lorekeeper.E001")]
    return []
