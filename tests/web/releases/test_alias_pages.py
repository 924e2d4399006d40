from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from registry.states import Role, VersionState
from releases.models import Alias, AliasGrant, AliasInterval, AliasProtection
from releases.services.protection import protect_alias
from releases.services.splits import SplitWish, set_split
from tests.factories.registry import make_actor, make_tenant, make_version
from tests.factories.releases import begin_release, commit, make_alias, point_alias
from tests.web.conftest import SignIn, filled
from tests.web.reading import text_of
from tests.web.releases.conftest import Stage

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(stage: Stage, sign_in: SignIn) -> Client:
    return sign_in(is_platform_admin=True, roles={stage.tenant: [Role.VIEWER]})


def alias_of(stage: Stage) -> Alias:
    return Alias.objects.get(pk=stage.alias.pk)


def test_the_list_is_narrowed_by_name_and_adapter(stage: Stage, viewer: Client) -> None:
    make_alias(version=make_version(adapter=stage.old.adapter), name="other")
    assert [row.name for row in viewer.get(f"{stage.releases}/aliases").context["rows"]] == ["other", "support"]
    assert [row.name for row in viewer.get(f"{stage.releases}/aliases?name=upp").context["rows"]] == ["support"]
    assert len(viewer.get(f"{stage.releases}/aliases?adapter=none").context["rows"]) == 0


def test_an_empty_list_says_what_to_do(sign_in: SignIn) -> None:
    tenant = make_tenant()
    manager = sign_in(roles={tenant: [Role.RELEASE_MANAGER]})
    shown = manager.get(f"/ui/tenants/{tenant.name}/releases/aliases")
    assert "An alias is the name that applications call" in text_of(shown)
    assert f"/ui/tenants/{tenant.name}/releases/new-alias" in shown.content.decode()


def test_a_page_shows_where_the_alias_points_and_who_answers(stage: Stage, viewer: Client) -> None:
    wish = SplitWish(candidate=stage.new, basis_points=1250, allow=("globex",))
    set_split(actor=make_actor(), alias=stage.alias, wish=wish)
    shown = text_of(viewer.get(stage.address))
    assert "v2, the candidate, has:" in shown
    assert "12.5 %" in shown
    assert "globex" in shown
    assert "v1 answers everything else." in shown


def test_a_split_made_by_hand_is_ended(stage: Stage, manager: Client) -> None:
    set_split(actor=make_actor(), alias=stage.alias, wish=SplitWish(candidate=stage.new, basis_points=100))
    assert filled(manager, f"{stage.address}/split/end").status_code == 302
    assert not hasattr(alias_of(stage), "split")


def test_what_it_stood_for_at_a_time_is_told_in_the_readers_zone(stage: Stage, viewer: Client) -> None:
    commit()
    point_alias(name="support", version=stage.new)
    commit()
    began = AliasInterval.objects.get(valid_to__isnull=True).valid_from
    # Before the first of them the alias was not there.
    viewer.cookies["lorekeeper_zone"] = "Asia/Shanghai"
    local = (began + timedelta(seconds=1, hours=8)).strftime("%Y-%m-%dT%H:%M:%S")
    shown = viewer.get(stage.address, {"at": local})
    assert [row.number for row in shown.context["rows"]] == [2]
    assert "It stood for v2 (revision 2) then." in text_of(shown)
    never = viewer.get(stage.address, {"at": "2001-01-01T00:00"})
    assert "It was not there yet then." in text_of(never)


def test_a_time_that_is_none_is_said_next_to_the_field(stage: Stage, viewer: Client) -> None:
    shown = viewer.get(stage.address, {"at": "yesterday-ish"})
    assert shown.status_code == 200
    assert shown.context["asked"].errors["at"]
    assert len(shown.context["rows"]) == 1


def test_history_shows_each_revision_with_its_times(stage: Stage, viewer: Client) -> None:
    commit()
    point_alias(name="support", version=stage.new)
    commit()
    rows = list(viewer.get(stage.address).context["rows"])
    assert [row.number for row in rows] == [2, 1]
    (first,) = rows[1].intervals.all()
    assert first.valid_to == rows[0].intervals.all()[0].valid_from


def test_an_alias_is_moved_by_hand(stage: Stage, manager: Client) -> None:
    assert filled(manager, f"{stage.address}/move", version=stage.target, reason="quick").status_code == 302
    assert alias_of(stage).version_id == stage.new.pk


def test_a_move_from_another_revision_than_was_seen_is_refused(stage: Stage, manager: Client) -> None:
    answer = manager.post(f"{stage.address}/move", {"version": stage.target, "revision": 7})
    assert answer.status_code == 422
    assert "somebody moved it" in text_of(answer)
    assert alias_of(stage).version_id == stage.old.pk


def test_an_unapproved_version_is_refused_next_to_the_field(stage: Stage, manager: Client) -> None:
    raw = make_version(adapter=stage.old.adapter, name="raw", state=VersionState.CANDIDATE)
    answer = filled(manager, f"{stage.address}/move", version=f"{raw.adapter.name}@raw")
    assert answer.status_code == 422
    assert "approved" in str(answer.context["form"].errors["version"])


def test_an_alias_is_made(stage: Stage, manager: Client) -> None:
    answer = filled(manager, f"{stage.releases}/new-alias", name="fresh", version=stage.target)
    assert answer["Location"] == f"{stage.releases}/aliases/fresh"
    assert Alias.objects.get(name="fresh").version_id == stage.new.pk
    again = filled(manager, f"{stage.releases}/new-alias", name="fresh", version=stage.target)
    assert again.status_code == 422


def test_moving_by_hand_is_not_offered_where_it_is_protected_or_a_release_goes_on(
    stage: Stage, manager: Client
) -> None:
    offered = f'href="{stage.address}/move"'
    assert offered in manager.get(stage.address).content.decode()
    protect_alias(actor=make_actor(), alias=stage.alias)
    assert offered not in manager.get(stage.address).content.decode()
    assert filled(manager, f"{stage.address}/move", version=stage.target).status_code == 422
    AliasProtection.objects.all().delete()
    begin_release(alias=stage.alias, candidate=stage.new)
    assert offered not in manager.get(stage.address).content.decode()


def test_an_alias_is_protected_changed_and_unprotected(stage: Stage, admin: Client) -> None:
    mover = stage.person(Role.RELEASE_MANAGER)
    assert filled(admin, f"{stage.address}/protect", movers=mover.email, needs_release="on").status_code == 302
    kept = AliasProtection.objects.get()
    assert (kept.movers, kept.needs_release) == ([mover.email], True)
    assert mover.email in text_of(admin.get(stage.address))
    stale = admin.post(f"{stage.address}/protect", {"movers": "", "seen": ""})
    assert stale.status_code == 422
    assert "changed the protection meanwhile" in text_of(stale)
    assert filled(admin, f"{stage.address}/unprotect").status_code == 302
    assert not AliasProtection.objects.exists()


def test_who_may_not_move_aliases_is_refused_as_a_mover_next_to_the_field(stage: Stage, admin: Client) -> None:
    answer = filled(admin, f"{stage.address}/protect", movers="nobody@example.com")
    assert answer.status_code == 422
    assert "nobody@example.com" in str(answer.context["form"].errors["movers"])


def test_an_alias_is_shared_and_shared_no_more(stage: Stage, admin: Client) -> None:
    other = make_tenant()
    assert filled(admin, f"{stage.address}/share", tenant=other.name, name="theirs").status_code == 302
    assert AliasGrant.objects.get().name == "theirs"
    assert other.name in text_of(admin.get(stage.address))
    assert filled(admin, f"{stage.address}/share/{other.name}/end").status_code == 302
    assert not AliasGrant.objects.exists()


@pytest.mark.parametrize("wanted", ["nobody", ""])
def test_sharing_with_a_tenant_that_there_is_not_is_said_next_to_the_field(
    wanted: str, stage: Stage, admin: Client
) -> None:
    answer = filled(admin, f"{stage.address}/share", tenant=wanted)
    assert answer.status_code == 422
    assert answer.context["form"].errors["tenant"]


def test_what_is_shared_with_a_tenant_stands_in_its_own_list(stage: Stage, sign_in: SignIn) -> None:
    other = make_tenant()
    AliasGrant.objects.create(alias=stage.alias, tenant=other, name="theirs", granted_at=timezone.now())
    reader = sign_in(roles={other: [Role.VIEWER]})
    assert "theirs" in text_of(reader.get(f"/ui/tenants/{other.name}/releases/aliases"))
