"""What each kind of engine can do, as data."""

from typing import Final

from workers.node.engines.ports import Capabilities

CAPABILITIES: Final[dict[str, Capabilities]] = {
    "vllm": Capabilities(
        runtime_load=True,
        true_unload=False,
        reads_back=False,
        pins=False,
        re_reads_disk=True,
        has_cpu_tier=True,
        reports_in_use=True,
        lists_adapters=True,
        names_its_model=True,
        log_probabilities=True,
    ),
    "tgi": Capabilities(
        runtime_load=False,
        true_unload=False,
        reads_back=False,
        pins=False,
        re_reads_disk=False,
        has_cpu_tier=False,
        reports_in_use=False,
        lists_adapters=False,
        names_its_model=False,
        log_probabilities=True,
    ),
    "sglang": Capabilities(
        runtime_load=True,
        true_unload=True,
        reads_back=False,
        pins=True,
        re_reads_disk=True,
        has_cpu_tier=True,
        reports_in_use=False,
        lists_adapters=True,
        names_its_model=True,
        log_probabilities=True,
    ),
    "lorax": Capabilities(
        runtime_load=True,
        true_unload=False,
        reads_back=False,
        pins=False,
        re_reads_disk=True,
        has_cpu_tier=True,
        reports_in_use=False,
        lists_adapters=False,
        names_its_model=False,
        log_probabilities=True,
    ),
}
