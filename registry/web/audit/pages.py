"""What all pages about an audit log share: each is there for the log of a tenant and for that of the platform."""

from typing import Any

from django.urls import reverse

from registry.audit import PLATFORM_CHAIN
from registry.permissions import Action
from registry.web.page import Facts, Page


class LogPage(Page):
    """A page about the log of the tenant in its address, or of the platform where there is none."""

    @property
    def chain(self) -> str:
        return self.tenant.name if self.tenant else PLATFORM_CHAIN

    @property
    def log_of(self) -> str | None:
        """As services take it: the tenant's name, None for the platform."""
        return self.tenant.name if self.tenant else None

    def way(self, route: str, **names: Any) -> str:  # noqa: ANN401  whatever stands in an address
        return way_in(self.log_of, route, **names)

    def mine(self, **facts: Any) -> Facts:  # noqa: ANN401  context of a template
        """Facts with what every page of a log shows."""
        return {
            "tenant": self.tenant,
            "chain": self.chain,
            "log_address": self.way("audit"),
            "chain_address": self.way("audit_chain"),
            **facts,
        }


def way_in(tenant: str | None, route: str, **names: Any) -> str:  # noqa: ANN401  whatever stands in an address
    """The address of a page of a tenant's log, or the platform's."""
    if tenant is None:
        return reverse(f"platform_{route}", kwargs=names)
    return reverse(route, kwargs={"tenant": tenant, **names})


def of_platform(page: type[LogPage]) -> type[LogPage]:
    """The same page for the platform's log."""
    return type(
        f"Platform{page.__name__}", (page,), {"actions": dict.fromkeys(page.actions, Action.READ_PLATFORM_AUDIT)}
    )
