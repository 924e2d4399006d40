"""One Hypothesis profile for the state machines: the same examples each time in CI, no time limit for a single one."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "machines",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    print_blob=True,
)
settings.load_profile("machines")
