"""What engines of each kind can do, as far as planning is concerned. The drivers say the same; a test compares them."""

from dataclasses import dataclass
from typing import Final

from cachecontrol.states import EngineKind


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCapabilities:
    """What a plan may rely on.

    Attributes:
        runtime_load: adapters come and go while it serves; where not, a change of its set is a restart of the engine,
            so changes are worth collecting.
        true_unload: an unload frees memory at once; where not, the place is taken over by the next load.
        reads_back: the node tells where each adapter's weights are; where not, GPU residency is an estimate.
        pins: an adapter can be kept in its slot, so that the engine's own LRU leaves it there.
        re_reads_disk: it may read a loaded adapter's files again at any time, so they stay as long as it is loaded.
        has_cpu_tier: it can hold more adapters than it has slots; where not, what doesn't fit the slots is on disk.
        reports_in_use: the node knows when nothing runs or waits for an adapter, so that draining needn't wait blindly.

    """

    runtime_load: bool
    true_unload: bool
    reads_back: bool
    pins: bool
    re_reads_disk: bool
    has_cpu_tier: bool
    reports_in_use: bool


CAPABILITIES: Final[dict[EngineKind, EngineCapabilities]] = {
    EngineKind.VLLM: EngineCapabilities(
        runtime_load=True,
        true_unload=False,
        reads_back=False,
        pins=False,
        re_reads_disk=True,
        has_cpu_tier=True,
        reports_in_use=True,
    ),
    EngineKind.TGI: EngineCapabilities(
        runtime_load=False,
        true_unload=False,
        reads_back=False,
        pins=False,
        re_reads_disk=False,
        has_cpu_tier=False,
        reports_in_use=False,
    ),
    EngineKind.SGLANG: EngineCapabilities(
        runtime_load=True,
        true_unload=True,
        reads_back=False,
        pins=True,
        re_reads_disk=True,
        has_cpu_tier=True,
        reports_in_use=False,
    ),
    EngineKind.LORAX: EngineCapabilities(
        runtime_load=True,
        true_unload=False,
        reads_back=False,
        pins=False,
        re_reads_disk=True,
        has_cpu_tier=True,
        reports_in_use=False,
    ),
}
