"""What is measured, in numbers: everything that the outcome depends on, and that is printed with it."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Plan:
    """The load, the engine and the origin; both arms get the same.

    Attributes:
        requests: in each arm.
        rate: requests per second on average; they come whether or not earlier ones are answered.
        tenants: of so many owners.
        versions: of all tenants together, two of each adapter.
        exponent: of the Zipf law by which versions are asked for.
        session: requests of one session on average; a session stays with its version.
        think_s: seconds between two requests of a session on average.
        drift_s: after so many seconds two versions change places in the order of popularity.
        tokens: of each answer.
        layers: of the base model; with all its 30 layers two cores would need an hour.
        gpu_slots: adapters in use at once.
        places: adapters that the engine holds at once, slots included.
        latency_s: from a request to the first byte of the origin's answer.
        bytes_per_s: of the origin's line, shared by all downloads.
        disk_share: of all versions' bytes that fit on the node's disk.
        ranks: of the adapters, in turn.
        seed: of load and weights.

    """

    requests: int = 1500
    rate: float = 4.0
    tenants: int = 5
    versions: int = 40
    exponent: float = 1.3
    session: float = 1.0
    think_s: float = 3.0
    drift_s: float = 60.0
    tokens: int = 4
    layers: int = 2
    gpu_slots: int = 2
    places: int = 4
    latency_s: float = 0.08
    bytes_per_s: float = 0.375 * MIB
    disk_share: float = 0.75
    ranks: tuple[int, ...] = (4, 8, 16)
    seed: int = 11
