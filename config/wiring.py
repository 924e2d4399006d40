"""What one app supplies to the ports of another below it. Listed in INSTALLED_APPS, after the apps it joins."""

from django.apps import AppConfig


class WiringConfig(AppConfig):
    name = "config"
    label = "wiring"

    def ready(self) -> None:
        # Services import models, which exist only when all apps are loaded.
        from cachecontrol.selectors import holders_of, placed_versions  # noqa: PLC0415
        from cachecontrol.services.demand import prewarm_version  # noqa: PLC0415
        from registry import ports as registry  # noqa: PLC0415
        from releases import ports as releases  # noqa: PLC0415
        from releases.selectors import (  # noqa: PLC0415
            rollback_targets_of,
            version_ids_by_alias,
            versions_aliased_since,
        )

        releases.PORTS.prewarm = prewarm_version
        registry.PORTS.alias_targets = version_ids_by_alias
        registry.PORTS.aliased_since = versions_aliased_since
        registry.PORTS.rollback_targets = rollback_targets_of
        registry.PORTS.holders_of = holders_of
        registry.PORTS.placed_versions = placed_versions
