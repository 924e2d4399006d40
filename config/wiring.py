"""What one app supplies to the ports of another below it. Listed in INSTALLED_APPS, after the apps it joins."""

from django.apps import AppConfig


class WiringConfig(AppConfig):
    name = "config"
    label = "wiring"

    def ready(self) -> None:
        # Services import models, which exist only when all apps are loaded.
        from cachecontrol.services.demand import prewarm_version
        from releases.ports import PORTS

        PORTS.prewarm = prewarm_version
