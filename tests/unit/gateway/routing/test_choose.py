from gateway.routing.choose import candidates, choose
from gateway.routing.snapshot import Residency
from tests.unit.gateway.worlds import V1, World, acme_world, node_row, residency_row


def nobody(_: Residency) -> bool:
    return False


def chosen(world: World, in_flight: dict[str, int] | None = None) -> str | None:
    snapshot = world.snapshot()
    best = choose(candidates(snapshot, snapshot.versions[V1], is_absent=nobody), in_flight=in_flight or {})
    return best.node.name if best else None


def two_nodes() -> World:
    world = acme_world()
    world.nodes.append(node_row("n2"))
    world.residencies.append(residency_row("n2", world.versions[0]))
    return world


def test_the_node_that_has_the_version_loaded_is_chosen() -> None:
    assert chosen(acme_world()) == "n1"


def test_no_node_is_chosen_when_the_version_is_loaded_nowhere() -> None:
    world = acme_world()
    world.residencies.clear()
    assert chosen(world) is None


def test_a_version_that_is_loading_or_draining_is_not_routable() -> None:
    for observed in ("loading", "draining", "on_disk", "failed"):
        world = acme_world()
        world.residencies[0] = residency_row("n1", world.versions[0], observed=observed)
        assert chosen(world) is None


def test_the_least_busy_node_is_chosen() -> None:
    assert chosen(two_nodes(), {"n1": 3, "n2": 2}) == "n2"
    assert chosen(two_nodes(), {"n1": 1, "n2": 2}) == "n1"
    assert chosen(two_nodes(), {"n1": 1}) == "n2"


def test_a_lost_node_comes_last_but_is_not_ruled_out() -> None:
    world = two_nodes()
    world.nodes[0] = node_row("n1", status="lost")
    assert chosen(world, {"n2": 99}) == "n2"
    world.residencies.pop()
    assert chosen(world) == "n1"


def test_a_node_with_another_base_is_never_chosen() -> None:
    world = acme_world()
    world.nodes[0] = node_row("n1", base="c" * 64)
    assert chosen(world) is None


def test_an_engine_that_takes_names_in_another_way_is_never_chosen() -> None:
    world = acme_world()
    world.nodes[0] = ("n1", "tgi", *node_row("n1")[2:])
    assert chosen(world) is None


def test_a_node_with_too_small_a_rank_is_never_chosen() -> None:
    world = acme_world()
    world.nodes[0] = node_row("n1", max_rank=4)
    assert chosen(world) is None


def test_a_residency_under_another_engine_name_is_never_chosen() -> None:
    world = acme_world()
    world.residencies[0] = ("n1", V1, "lk-something-else", "loaded", 1)
    assert chosen(world) is None


def test_a_residency_on_an_unknown_node_is_passed_over() -> None:
    world = acme_world()
    world.nodes.clear()
    assert chosen(world) is None


def test_an_absent_residency_is_passed_over() -> None:
    snapshot = two_nodes().snapshot()
    found = candidates(snapshot, snapshot.versions[V1], is_absent=lambda residency: residency.node == "n1")
    assert [candidate.node.name for candidate in found] == ["n2"]
