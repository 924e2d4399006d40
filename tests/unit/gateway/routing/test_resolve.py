import hashlib
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import MissingModel, ModelNotFound, VersionRevoked, VersionUnavailable
from gateway.routing.resolve import BaseRoute, Route, bucket, resolve, shadow_of, stable_of, takes_candidate
from gateway.routing.snapshot import RoutingSnapshot, Row, RulesByTenant, Split, TenantRules
from tests.unit.gateway.worlds import FOREIGN, V1, V2, World, acme_world, shared_row, version_row

SPLIT = Split(candidate_id=V2, basis_points=500, salt="salt-1")


def route_of(snapshot: RoutingSnapshot, model: str = "support", key: str = "") -> Route:
    route = resolve(snapshot, tenant="acme", model=model, key=key)
    assert isinstance(route, Route)
    return route


def split_snapshot(split: Split = SPLIT, **states: str) -> RoutingSnapshot:
    """`support` points to v1, split with v2; the states of versions by name."""
    world = acme_world()
    world.versions = [
        version_row(V1, "v1", state=states.get("v1", "approved")),
        version_row(V2, "v2", state=states.get("v2", "approved")),
        version_row(FOREIGN, "v1", tenant="other"),
    ]
    snapshot = world.snapshot()
    alias = replace(snapshot.aliases["acme"]["support"], split=split)
    return replace(snapshot, aliases={**snapshot.aliases, "acme": {"support": alias}})


def test_an_alias_gives_the_version_that_it_points_to() -> None:
    route = route_of(acme_world().snapshot())
    assert (route.alias.name, route.version.id, route.side) == ("support", V1, "")


def test_the_own_tenant_may_stand_before_the_alias() -> None:
    assert route_of(acme_world().snapshot(), "acme/support").version.id == V1


def test_a_moved_alias_gives_the_other_version() -> None:
    world = acme_world()
    world.aliases[0] = ("acme", "support", V2, 2)
    assert route_of(world.snapshot()).version.id == V2


UNKNOWN = [
    "unknown",
    "secret",
    "base",
    "other/secret",
    "other/support",
    "acme/unknown",
    "acme/",
    "/support",
    "acme/acme/support",
    "/etc/passwd",
    "../support",
    "acme/../support",
    "./support",
    "Support",
    "support ",
    "support\n",
    "support\x00",
    "lk-support-tone-v1-acme",
    "süpport",
    "\ud800",
    "-support",
    "s" * 64,
    "s" * 1_000_000,
]


@pytest.mark.parametrize("model", UNKNOWN)
def test_what_the_tenant_does_not_have_is_not_found(model: str) -> None:
    with pytest.raises(ModelNotFound):
        resolve(acme_world().snapshot(), tenant="acme", model=model)


def test_every_unknown_model_gets_the_same_answer() -> None:
    said = set()
    for model in UNKNOWN:
        with pytest.raises(ModelNotFound) as caught:
            resolve(acme_world().snapshot(), tenant="acme", model=model)
        said.add((caught.value.message, caught.value.param, caught.value.code))
    assert len(said) == 1


def test_a_tenant_without_aliases_finds_nothing() -> None:
    with pytest.raises(ModelNotFound):
        resolve(acme_world().snapshot(), tenant="nobody", model="support")


@pytest.mark.parametrize("model", [None, "", 7, ["support"], {"name": "support"}, True])
def test_a_missing_model_is_a_bad_request(model: object) -> None:
    with pytest.raises(MissingModel) as caught:
        resolve(acme_world().snapshot(), tenant="acme", model=model)
    assert caught.value.param == "model"


@pytest.mark.parametrize("state", ["revoked", "candidate"])
def test_a_version_that_must_not_answer_is_refused(state: str) -> None:
    world = acme_world()
    world.versions[0] = version_row(V1, "v1", state=state)
    with pytest.raises(VersionRevoked):
        resolve(world.snapshot(), tenant="acme", model="support")


def test_a_yanked_version_goes_on_answering() -> None:
    world = acme_world()
    world.versions[0] = version_row(V1, "v1", state="yanked")
    assert route_of(world.snapshot()).version.state == "yanked"


def test_an_alias_to_a_version_out_of_sight_is_unavailable() -> None:
    world = acme_world()
    world.versions.clear()
    with pytest.raises(VersionUnavailable):
        resolve(world.snapshot(), tenant="acme", model="support")


def test_an_alias_never_gives_another_tenants_version() -> None:
    world = acme_world()
    world.versions[0] = version_row(V1, "v1", tenant="other")
    with pytest.raises(VersionUnavailable):
        resolve(world.snapshot(), tenant="acme", model="support")


def test_a_permitted_base_model_is_found_by_its_name() -> None:
    rules = RulesByTenant({"acme": TenantRules("acme", base_models=frozenset({"base", "elsewhere"}))})
    snapshot = replace(acme_world().snapshot(), rules=rules)
    assert resolve(snapshot, tenant="acme", model="base") == BaseRoute("base")
    with pytest.raises(ModelNotFound):
        resolve(snapshot, tenant="other", model="base")
    with pytest.raises(ModelNotFound):
        resolve(snapshot, tenant="acme", model="elsewhere")  # no node serves it


def test_a_bucket_is_the_first_eight_bytes_of_the_digest_modulo_ten_thousand() -> None:
    digest = hashlib.sha256(b"salt-1:user-7").hexdigest()
    assert bucket("salt-1", "user-7") == int(digest[:16], 16) % 10_000


def test_five_per_cent_are_five_per_cent_of_keys_to_half_a_per_cent() -> None:
    taken = sum(takes_candidate(SPLIT, tenant="acme", key=f"user-{number}") for number in range(20_000))
    assert 900 <= taken <= 1100


@given(st.text(max_size=20), st.text(max_size=20), st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_key_that_is_in_stays_in_while_the_share_grows(salt: str, key: str, one: int, other: int) -> None:
    less, more = (Split(V2, points, salt) for points in sorted((one, other)))
    if takes_candidate(less, tenant="acme", key=key):
        assert takes_candidate(more, tenant="acme", key=key)


def test_nothing_and_everything_are_exact() -> None:
    keys = [f"user-{number}" for number in range(500)]
    assert not any(takes_candidate(replace(SPLIT, basis_points=0), tenant="acme", key=key) for key in keys)
    assert all(takes_candidate(replace(SPLIT, basis_points=10_000), tenant="acme", key=key) for key in keys)


def test_another_salt_draws_other_keys() -> None:
    keys = [f"user-{number}" for number in range(5000)]
    first, second = ({key for key in keys if bucket(salt, key) < 500} for salt in ("salt-1", "salt-2"))
    assert len(first & second) < 40  # 12 or 13 by chance


def test_deny_wins_over_allow_and_allow_over_the_share() -> None:
    none = replace(SPLIT, basis_points=0)
    everything = replace(SPLIT, basis_points=10_000)
    acme = frozenset({"acme"})
    assert takes_candidate(replace(none, allow=acme), tenant="acme", key="k")
    assert not takes_candidate(replace(everything, deny=acme), tenant="acme", key="k")
    assert not takes_candidate(replace(everything, allow=acme, deny=acme), tenant="acme", key="k")


def test_a_split_alias_says_which_side_answers() -> None:
    canary = route_of(split_snapshot(replace(SPLIT, basis_points=10_000)))
    stable = route_of(split_snapshot(replace(SPLIT, basis_points=0)))
    assert (canary.side, canary.version.id) == ("canary", V2)
    assert (stable.side, stable.version.id) == ("stable", V1)


@pytest.mark.parametrize("candidate_id", [V2, FOREIGN, UUID(int=77)])
def test_a_candidate_that_must_not_answer_gives_its_share_back(candidate_id: UUID) -> None:
    split = Split(candidate_id, 10_000, "salt")
    route = route_of(split_snapshot(split, v2="revoked"))
    assert (route.side, route.version.id) == ("stable", V1)


def test_a_candidate_answers_though_the_stable_version_is_revoked() -> None:
    assert route_of(split_snapshot(replace(SPLIT, basis_points=10_000), v1="revoked")).version.id == V2


def test_the_stable_version_can_stand_in_for_a_candidate() -> None:
    snapshot = split_snapshot(replace(SPLIT, basis_points=10_000))
    fallen_back = stable_of(snapshot, route_of(snapshot))
    assert (fallen_back.version.id, fallen_back.side) == (V1, "stable")


SHADOW = replace(SPLIT, basis_points=0, shadow_id=V2, shadow_basis_points=10_000)


def shadowed(split: Split, request_id: str = "req-1", **states: str) -> UUID | None:
    snapshot = split_snapshot(split, **states)
    version = shadow_of(snapshot, route_of(snapshot), request_id=request_id)
    return None if version is None else version.id


def test_a_sampled_request_is_mirrored_to_the_shadow() -> None:
    assert shadowed(SHADOW) == V2


def test_the_sample_is_drawn_for_each_request_anew() -> None:
    tenth = replace(SHADOW, shadow_basis_points=1000)
    drawn = [f"req-{number}" for number in range(400) if shadowed(tenth, f"req-{number}") is not None]
    assert 20 <= len(drawn) <= 65


def test_nothing_is_mirrored_without_a_shadow_or_to_what_answers_or_must_not() -> None:
    assert shadowed(replace(SHADOW, shadow_id=None)) is None
    assert shadowed(replace(SHADOW, shadow_basis_points=0)) is None
    assert shadowed(replace(SHADOW, basis_points=10_000)) is None
    assert shadowed(replace(SHADOW, shadow_id=FOREIGN)) is None
    assert shadowed(SHADOW, v2="revoked") is None
    snapshot = acme_world().snapshot()
    assert shadow_of(snapshot, route_of(snapshot), request_id="req-1") is None


def test_nothing_is_mirrored_of_a_tenant_that_does_not_allow_it() -> None:
    rules = RulesByTenant({"acme": TenantRules("acme", allows_shadow=False)})
    snapshot = replace(split_snapshot(SHADOW), rules=rules)
    assert shadow_of(snapshot, route_of(snapshot), request_id="req-1") is None


FOREIGN_2 = UUID("00000000-0000-0000-0000-00000000000a")


def shared_world(*, share: int = 0, allow: tuple[str, ...] = (), shadow_share: int = 0) -> World:
    """Acme may call `other/secret` as `ours`, which is split with a second version of the owner's."""
    world = acme_world()
    split: Row = (FOREIGN_2, share, "salt-1", list(allow), [], FOREIGN_2, shadow_share)
    world.aliases.append(shared_row("ours", split=split))
    world.versions.append(version_row(FOREIGN_2, "v2", tenant="other"))
    return world


@pytest.mark.parametrize("model", ["ours", "acme/ours"])
def test_a_shared_alias_gives_its_owners_version_under_the_callers_name(model: str) -> None:
    route = route_of(shared_world().snapshot(), model)
    assert (route.version.id, route.alias.tenant, route.alias.name, route.side) == (FOREIGN, "acme", "ours", "stable")
    assert route.label == b"support-tone@v1"


@pytest.mark.parametrize("model", ["secret", "other/secret", "other/ours"])
def test_a_grant_opens_no_other_name_of_its_owner(model: str) -> None:
    with pytest.raises(ModelNotFound):
        route_of(shared_world().snapshot(), model)


def test_a_shared_alias_is_split_by_the_calling_tenant() -> None:
    assert route_of(shared_world(allow=("acme",)).snapshot(), "ours").version.id == FOREIGN_2
    assert route_of(shared_world(allow=("other",)).snapshot(), "ours").version.id == FOREIGN
    assert route_of(shared_world(share=10_000).snapshot(), "ours").side == "canary"


def test_a_shared_alias_is_mirrored_if_the_caller_lets_its_requests_be() -> None:
    world = shared_world(shadow_share=10_000)
    snapshot = world.snapshot()
    mirrored = shadow_of(snapshot, route_of(snapshot, "ours"), request_id="r")
    assert mirrored is not None
    assert mirrored.id == FOREIGN_2
    world.rules.append(("acme", None, None, None, None, [], False))
    snapshot = world.snapshot()
    assert shadow_of(snapshot, route_of(snapshot, "ours"), request_id="r") is None


def test_a_version_of_a_third_tenant_never_answers_for_a_shared_alias() -> None:
    world = acme_world()
    world.aliases.append(shared_row("ours", V1))
    with pytest.raises(VersionUnavailable):
        route_of(world.snapshot(), "ours")


def test_a_revoked_version_answers_for_a_shared_alias_no_more() -> None:
    with pytest.raises(VersionRevoked):
        route_of(shared_world().snapshot().revoking([FOREIGN]), "ours")
