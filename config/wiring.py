"""What one app supplies to the ports of another below it. Listed in INSTALLED_APPS, after the apps it joins."""

from django.apps import AppConfig


class WiringConfig(AppConfig):
    name = "config"
    label = "wiring"

    def ready(self) -> None:
        # Services import models, which exist only when all apps are loaded.
        from cachecontrol.requests.departures import find_last_answers  # noqa: PLC0415
        from cachecontrol.requests.windows import count_window  # noqa: PLC0415
        from cachecontrol.selectors import holders_of, placed_versions  # noqa: PLC0415
        from cachecontrol.services.demand import prewarm_version  # noqa: PLC0415
        from cachecontrol.services.releases.cooling import cool  # noqa: PLC0415
        from cachecontrol.services.releases.warming import warm_up  # noqa: PLC0415
        from config.sign_in import arrivals, checks  # noqa: PLC0415
        from registry import ports as registry  # noqa: PLC0415
        from releases import ports as releases  # noqa: PLC0415
        from releases.selectors import (  # noqa: PLC0415
            rollback_targets_of,
            version_ids_by_alias,
            versions_aliased_since,
        )
        from releases.services.defaults import begin_default_alias  # noqa: PLC0415
        from releases.services.withdrawals import end_uses, hold_users  # noqa: PLC0415
        from releases.uses import aliases_of_adapters, uses_of_version  # noqa: PLC0415
        from workers.jobs.comparing import compare_evaluations  # noqa: PLC0415

        releases.PORTS.prewarm = prewarm_version
        releases.PORTS.warm_up = warm_up
        releases.PORTS.evaluation = compare_evaluations
        releases.PORTS.cool = cool
        releases.PORTS.window = count_window
        releases.PORTS.last_answers = find_last_answers
        registry.PORTS.alias_targets = version_ids_by_alias
        registry.PORTS.aliases_of = aliases_of_adapters
        registry.PORTS.uses_of = uses_of_version
        registry.PORTS.aliased_since = versions_aliased_since
        registry.PORTS.rollback_targets = rollback_targets_of
        registry.PORTS.holders_of = holders_of
        registry.PORTS.placed_versions = placed_versions
        registry.PORTS.hold_users = hold_users
        registry.PORTS.version_withdrawn = end_uses
        registry.PORTS.version_approved = begin_default_alias
        arrivals.connect()
        checks.connect()
