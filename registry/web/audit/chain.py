"""How the chain stands, having it checked, and how anybody can check it without us."""

from django.http import HttpRequest, HttpResponse

from registry.permissions import Action
from registry.services.audit.checks import ChainState, begin_check, chain_state
from registry.web.audit.alarms import alarm_of
from registry.web.audit.pages import LogPage


class ChainPage(LogPage):
    actions = {"get": Action.READ_AUDIT}
    template_name = "registry/audit/chain.html"

    def get(self, request: HttpRequest, tenant: str | None = None) -> HttpResponse:
        state = chain_state(actor=self.actor, tenant=self.log_of)
        facts = {
            "state": state,
            "alarm": alarm_of(state.finding, state.broken_at),
            "percent": _percent(state),
            "check_address": self.way("audit_check"),
            "export_address": self.way("audit_export"),
            "commands": _commands(self.chain),
        }
        return self.show(self.mine(**facts))


class CheckPage(LogPage):
    """Begins a check; a second click finds the first one's."""

    actions = {"post": Action.READ_AUDIT}

    def post(self, request: HttpRequest, tenant: str | None = None) -> HttpResponse:
        begin_check(actor=self.actor, tenant=self.log_of)
        return self.leave(self.way("audit_chain"))


def _percent(state: ChainState) -> int:
    check = state.running
    return 100 * check.reached // check.until if check is not None and check.until else 0


def _commands(chain: str) -> str:
    return "\n".join(
        (
            f"lorekeeper audit export {chain} -o {chain}.jsonl",
            f"lorekeeper audit checkpoints {chain} {chain}-checkpoints",
            f"lorekeeper audit verify {chain}.jsonl --checkpoint {chain}-checkpoints --key trusted-keys.pem",
        )
    )
