"""Which node answers: those that have the version loaded, the least busy first."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway.routing.snapshot import Node, Residency, RoutingSnapshot, Version

# Others take the version's name in another field, and some of them answer an unknown name with the base model.
_ENGINE_KINDS = frozenset({"vllm"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that has the version loaded, with the residency that says so."""

    node: Node
    residency: Residency


def candidates(
    snapshot: RoutingSnapshot, version: Version, *, is_absent: Callable[[Residency], bool]
) -> tuple[Candidate, ...]:
    """Every node on which the version is loaded, fits, and isn't passed over for now."""
    found = (
        Candidate(snapshot.nodes[residency.node], residency)
        for residency in snapshot.residencies.get(version.id, ())
        if residency.observed == "loaded" and residency.node in snapshot.nodes and not is_absent(residency)
    )
    return tuple(candidate for candidate in found if _fits(candidate, version))


def choose(found: tuple[Candidate, ...], *, in_flight: Mapping[str, int]) -> Candidate | None:
    """The best candidate, or None when there is none.

    A node whose heartbeats stopped comes last but isn't ruled out: its engine may well go on answering while only
    the control plane is out of reach, and an engine that doesn't is found out by the request itself.
    """
    return min(
        found,
        key=lambda candidate: (
            candidate.node.status != "up",
            in_flight.get(candidate.node.name, 0),
            candidate.node.name,
        ),
        default=None,
    )


def _fits(candidate: Candidate, version: Version) -> bool:
    node, residency = candidate.node, candidate.residency
    return (
        node.engine_kind in _ENGINE_KINDS
        and residency.engine_name == version.engine_name
        and node.base_digest == version.base_digest
        and version.rank <= node.max_rank
    )
