"""Release templates: what a tenant's releases are made by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from client.decoding import decode
from client.pages import read_all
from client.transport import path_of

if TYPE_CHECKING:
    from client.transport import Transport


@dataclass(frozen=True, slots=True)
class ReleaseTemplate:
    """One edition of a template (`number` 0: built in); `text` and `document` only where one was asked for."""

    name: str
    number: int
    tenant: str = ""
    digest: str = ""
    written_by: str | None = None
    written_at: str | None = None
    text: str = ""
    document: dict[str, object] = field(default_factory=dict)


class ReleaseTemplates:
    """Calls below `/tenants/{tenant}/release-templates`."""

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def all(self, tenant: str) -> tuple[ReleaseTemplate, ...]:
        """Return the edition in use of every template."""
        return read_all(ReleaseTemplate, self._transport, path_of("tenants", tenant, "release-templates"))

    def get(self, tenant: str, name: str, *, number: int | None = None) -> ReleaseTemplate:
        """Return one edition with its text; without `number` the one in use."""
        params: dict[str, str | int] = {} if number is None else {"number": number}
        return decode(ReleaseTemplate, self._transport.call("GET", _template(tenant, name), params=params))

    def write(self, tenant: str, name: str, text: str) -> ReleaseTemplate:
        """Write the next edition (YAML), which releases are made by from now on."""
        return decode(ReleaseTemplate, self._transport.call("PUT", _template(tenant, name), body={"text": text}))


def _template(tenant: str, name: str) -> str:
    return path_of("tenants", tenant, "release-templates", name)
