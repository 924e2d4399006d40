from tests.unit.gateway.worlds import FOREIGN, V1, V2, acme_world, residency_row, version_row


def test_two_snapshots_of_the_same_facts_are_equal() -> None:
    assert acme_world().snapshot() == acme_world().snapshot()


def test_the_order_of_rows_does_not_matter() -> None:
    world, other = acme_world(), acme_world()
    world.residencies.append(residency_row("n0", world.versions[0]))
    other.residencies.insert(0, residency_row("n0", world.versions[0]))
    assert world.snapshot() == other.snapshot()


def test_a_changed_fact_makes_another_snapshot() -> None:
    world = acme_world()
    world.aliases[0] = ("acme", "support", V2, 2)
    assert world.snapshot() != acme_world().snapshot()


def test_aliases_belong_to_their_tenant() -> None:
    snapshot = acme_world().snapshot()
    assert snapshot.alias("acme", "secret") is None
    assert snapshot.alias("nobody", "support") is None
    assert (found := snapshot.alias("other", "secret")) is not None
    assert found.version_id == FOREIGN


def test_only_aliases_that_can_answer_are_listed() -> None:
    world = acme_world()
    world.aliases += [("acme", "beta", V2, 1), ("acme", "alpha", V1, 1)]
    world.versions[1] = version_row(V2, "v2", state="revoked")
    assert world.snapshot().served_aliases("acme") == ("alpha", "support")
    assert world.snapshot().served_aliases("nobody") == ()


def test_a_version_is_named_by_tenant_adapter_and_version() -> None:
    assert acme_world().snapshot().versions[V1].label == "acme/support-tone@v1"
