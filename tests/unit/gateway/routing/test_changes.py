from collections.abc import Callable

import pytest

from gateway.routing.changes import Changed, changed_snapshot
from gateway.routing.snapshot import ColdRule, Draft, RoutingRows, Row
from tests.unit.gateway.worlds import (
    FOREIGN,
    V1,
    V2,
    World,
    acme_world,
    node_row,
    residency_row,
    shared_row,
    token_row,
    version_row,
)

Edit = Callable[[World], None]

SPLIT: Row = (V2, 500, "salt", ["acme"], [], None, 0)


def rich_world() -> World:
    world = acme_world()
    world.residencies.append(residency_row("n2", world.versions[1]))
    world.nodes.append(node_row("n2"))
    world.rules.append(("acme", 60, None, 4, None, ["base"], True))
    world.cold_rules.append(("base", "", "wait", 5.0, None))
    return world


def drop_alias(world: World) -> None:
    del world.aliases[1]


def move_alias(world: World) -> None:
    world.aliases[0] = ("acme", "support", V2, 2)


def split_alias(world: World) -> None:
    world.aliases[0] = (*world.aliases[0], *SPLIT)


def share_alias(world: World) -> None:
    world.aliases.append(shared_row("ours"))


def add_alias(world: World) -> None:
    world.aliases.append(("new", "first", V1, 1))


def revoke(world: World) -> None:
    world.versions[0] = version_row(V1, "v1", state="revoked")


def lose_node(world: World) -> None:
    del world.nodes[1], world.residencies[1]


def node_drains(world: World) -> None:
    world.nodes[0] = node_row("n1", status="lost")
    world.residencies[0] = residency_row("n1", world.versions[0], observed="draining")


def load_elsewhere(world: World) -> None:
    world.residencies += [residency_row("n2", world.versions[0]), residency_row("n1", world.versions[1])]


def unload(world: World) -> None:
    del world.residencies[0]


def add_token(world: World) -> None:
    world.tokens.append(token_row("lk_new", "new"))


def drop_token(world: World) -> None:
    del world.tokens[0]


def change_rules(world: World) -> None:
    world.rules[0] = ("acme", None, None, None, None, [], False)


def drop_rules(world: World) -> None:
    world.rules.clear()


def change_policy(world: World) -> None:
    world.cold_rules[:] = [("base", "acme", "base", None, 20.0)]


EDITS: dict[Edit, list[tuple[str, str]]] = {
    drop_alias: [("aliases", "other/secret")],
    move_alias: [("aliases", "acme/support")],
    split_alias: [("aliases", "acme/support")],
    add_alias: [("aliases", "new/first")],
    share_alias: [("aliases", "acme/ours")],
    revoke: [("versions", str(V1))],
    lose_node: [("nodes", "n2"), ("residencies", str(V2))],
    node_drains: [("nodes", "n1")],
    load_elsewhere: [("residencies", str(V1)), ("residencies", str(V2))],
    unload: [("residencies", str(V1))],
    add_token: [("tokens", token_row("lk_new", "new")[1])],
    drop_token: [("tokens", acme_world().tokens[0][1])],
    change_rules: [("rules", "acme")],
    drop_rules: [("rules", "acme")],
    change_policy: [("cold_rules", "")],
}


def rows_of(world: World, changed: Changed) -> RoutingRows:
    """What the views have under the keys."""

    def is_named(row: Row) -> bool:
        return row[1] in changed.residencies or row[0] in changed.nodes

    return RoutingRows(
        aliases=[row for row in world.aliases if (row[0], row[1]) in changed.aliases],
        versions=[row for row in world.versions if row[0] in changed.versions],
        nodes=[row for row in world.nodes if row[0] in changed.nodes],
        residencies=[row for row in world.residencies if is_named(row)],
        tokens=[row for row in world.tokens if row[1] in changed.tokens],
        rules=[row for row in world.rules if row[0] in changed.rules],
        cold_rules=world.cold_rules if changed.cold_rules else [],
    )


@pytest.mark.parametrize("edit", list(EDITS))
def test_a_delta_comes_to_what_a_read_of_everything_finds(edit: Edit) -> None:
    before, world = rich_world().snapshot(), rich_world()
    edit(world)
    changed = Changed.read(EDITS[edit])
    after = changed_snapshot(before, changed, rows_of(world, changed))
    assert after == world.snapshot()
    assert after != before
    assert after.bases == world.snapshot().bases


@pytest.mark.parametrize("edit", list(EDITS))
def test_what_has_not_changed_is_the_same_object(edit: Edit) -> None:
    changed, world = Changed.read(EDITS[edit]), rich_world()
    before = world.snapshot()
    assert changed_snapshot(before, changed, rows_of(world, changed)) is before
    edit(world)
    after = changed_snapshot(before, changed, rows_of(world, changed))
    fields = ("aliases", "versions", "nodes", "residencies", "tokens", "rules", "cold_rules")
    touched = {kind for kind, _key in EDITS[edit]} | ({"residencies"} if edit is node_drains else set())
    assert {name for name in fields if getattr(after, name) is not getattr(before, name)} == touched
    kept = [key for key, places in after.residencies.items() if places is before.residencies.get(key)]
    assert kept or edit in (load_elsewhere, lose_node, unload, node_drains)


def test_a_delta_about_a_node_leaves_what_its_versions_have_on_others() -> None:
    world = rich_world()
    world.residencies.append(residency_row("n2", world.versions[0]))
    before = world.snapshot()
    changed = Changed.read([("nodes", "n1")])
    del world.residencies[0]
    after = changed_snapshot(before, changed, rows_of(world, changed))
    assert [place.node for place in after.residencies[V1]] == ["n2"]


def test_a_new_estimate_of_a_tier_is_taken_over_though_it_is_no_news() -> None:
    world = acme_world()
    before, changed = world.snapshot(), Changed.read([("residencies", str(V1))])
    world.residencies[0] = (*residency_row("n1", world.versions[0]), "cpu")
    after = changed_snapshot(before, changed, rows_of(world, changed))
    assert after == before
    assert after.residencies[V1][0].tier == "cpu"


def test_kinds_that_are_unknown_say_nothing() -> None:
    assert Changed.read([("weather", "rain")]) == Changed()


def test_the_last_alias_of_a_tenant_takes_the_tenant_along() -> None:
    world = acme_world()
    before, changed = world.snapshot(), Changed.read([("aliases", "other/secret")])
    after = changed_snapshot(before, changed, RoutingRows())
    assert set(after.aliases) == {"acme"}
    assert FOREIGN in after.versions


def test_a_read_of_everything_shares_what_is_as_it_was() -> None:
    before, world = rich_world().snapshot(), rich_world()
    move_alias(world)
    world.versions[2] = version_row(FOREIGN, "v1", tenant="other", state="yanked")
    draft = Draft(before)
    # In pieces, as a reader takes them.
    for row in world.aliases:
        draft.take(RoutingRows(aliases=[row]))
    draft.take(RoutingRows(versions=world.versions, nodes=world.nodes, residencies=world.residencies))
    draft.take(RoutingRows(tokens=world.tokens, rules=world.rules, cold_rules=world.cold_rules))
    after = draft.snapshot()
    assert after == world.snapshot()
    assert after.versions[V1] is before.versions[V1]
    assert after.aliases["other"] is before.aliases["other"]
    shared = ("nodes", "residencies", "tokens", "rules")
    assert all(getattr(after, name) is getattr(before, name) for name in shared)


def test_rules_of_a_tenant_and_of_tenants_without_any() -> None:
    snapshot = rich_world().snapshot()
    assert snapshot.rules["acme"].requests_per_minute == 60
    assert snapshot.rules["acme"].base_models == {"base"}
    other = snapshot.rules["other"]
    assert (other.tenant, other.requests_per_minute, other.allows_shadow) == ("other", None, True)
    assert snapshot.rules["other"] is other
    assert "other" not in snapshot.rules


def test_a_tenants_own_cold_rule_comes_before_everybodys() -> None:
    world = rich_world()
    world.cold_rules.append(("base", "acme", "stable", 1.0, 20.0))
    snapshot = world.snapshot()
    assert snapshot.cold_rule("base", "acme") == ColdRule("stable", 1.0, 20.0)
    assert snapshot.cold_rule("base", "other") == ColdRule("wait", 5.0)
    assert snapshot.cold_rule("unknown", "acme") == ColdRule()


def test_an_alias_without_a_split_has_none_and_one_with_has_its_sets() -> None:
    world = acme_world()
    world.aliases[1] = (*world.aliases[1], *[None] * 7)
    split_alias(world)
    snapshot = world.snapshot()
    assert (plain := snapshot.alias("other", "secret")) is not None
    assert plain.split is None
    assert (alias := snapshot.alias("acme", "support")) is not None
    assert alias.split is not None
    assert (alias.split.candidate_id, alias.split.basis_points) == (V2, 500)
    assert alias.split.allow == frozenset({"acme"})


def test_the_nodes_of_a_base_model_are_found_by_its_name() -> None:
    assert [node.name for node in rich_world().snapshot().bases["base"]] == ["n1", "n2"]
