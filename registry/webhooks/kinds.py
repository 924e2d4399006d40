"""What receivers are told of: each audit record with one of these tags is an event of that kind. Pure.

A kind is ``family.happening``. A pattern is a kind, or ``family.*`` for all of a family, those to come included.
"""

from collections.abc import Iterable
from typing import Final

PING: Final = "ping"
_ALL: Final = "*"

KINDS: Final[dict[str, str]] = {
    "adapter:version:upload": "version.upload_started",
    "adapter:version:finalize": "version.uploaded",
    "adapter:version:validate": "version.validated",
    "adapter:version:approve": "version.approved",
    "adapter:version:break_glass": "version.approved",
    "adapter:version:decline": "version.declined",
    "adapter:version:expire": "version.expired",
    "adapter:version:yank": "version.yanked",
    "adapter:version:revoke": "version.revoked",
    "adapter:version:purge": "version.purged",
    "adapter:version:resign": "version.resigned",
    "adapter:version:attach_signature": "version.signature_attached",
    "adapter:version:request_revalidation": "version.revalidation_requested",
    "adapter:version:revalidate": "version.revalidated",
    "adapter:version:drop_revalidation": "version.revalidation_dropped",
    "adapter:approval:give": "approval.given",
    "tenant:approval_policy:set": "approval.policy_changed",
    "platform:break_glass:use": "approval.glass_broken",
    "tenant:alias:set": "alias.made",
    "tenant:alias:move": "alias.moved",
    "tenant:alias:roll_back": "alias.rolled_back",
    "tenant:alias:set_split": "alias.split_changed",
    "tenant:alias:clear_split": "alias.split_cleared",
    "tenant:alias:protect": "alias.protected",
    "tenant:alias:unprotect": "alias.unprotected",
    "tenant:alias:grant": "alias.granted",
    "tenant:alias:end_grant": "alias.grant_ended",
    "tenant:release:make": "release.made",
    "tenant:release:approve": "release.approved",
    "tenant:release:start": "release.started",
    "tenant:release:begin_step": "release.step_begun",
    "tenant:release:pass_step": "release.step_passed",
    "tenant:release:pause": "release.paused",
    "tenant:release:resume": "release.resumed",
    "tenant:release:retry": "release.retried",
    "tenant:release:promote": "release.promoted",
    "tenant:release:abort": "release.aborted",
    "tenant:release:roll_back": "release.rolled_back",
    "tenant:release_template:write": "release.template_written",
    "platform:node:register": "node.registered",
    "platform:node:change": "node.changed",
    "platform:node:rotate_token": "node.token_rotated",
    "platform:node:report": "node.reported",
    "platform:node:lose": "node.lost",
    "platform:node:taint": "node.tainted",
    "platform:node:cordon": "node.cordoned",
    "platform:node:uncordon": "node.uncordoned",
    "platform:node:drain": "node.draining",
    "platform:node:resume": "node.resumed",
    "platform:node:recycle": "node.recycling",
    "platform:node:recycled": "node.recycled",
    "platform:node:abandon_recycle": "node.recycle_abandoned",
    "platform:node:stick": "node.stuck",
    "platform:node:drift": "node.drifted",
    "node:residency:want": "residency.wanted",
    "node:residency:keep": "residency.demoted",
    "node:residency:release": "residency.released",
    "node:residency:observe": "residency.observed",
    "node:residency:forget": "residency.forgotten",
    "tenant:quota:refuse": "quota.refused",
}
FAMILIES: Final = frozenset(kind.partition(".")[0] for kind in KINDS.values())
PATTERNS: Final = (*(f"{family}.{_ALL}" for family in sorted(FAMILIES)), *sorted(set(KINDS.values())))


def tags_for(patterns: Iterable[str]) -> frozenset[str]:
    """The tags of the audit records that an endpoint with these patterns is told of."""
    wanted = set(patterns)
    return frozenset(
        tag for tag, kind in KINDS.items() if kind in wanted or f"{kind.partition('.')[0]}.{_ALL}" in wanted
    )
