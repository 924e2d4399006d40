"""What one app supplies to the ports of another below it. Listed in INSTALLED_APPS, after the apps it joins."""

from django.apps import AppConfig


class WiringConfig(AppConfig):
    name = "config"
    label = "wiring"

    def ready(self) -> None:
        # Services import models, which exist only when all apps are loaded.
        from cachecontrol.services.demand import prewarm_version  # noqa: PLC0415
        from releases.ports import PORTS  # noqa: PLC0415

        PORTS.prewarm = prewarm_version
