from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from registry.models import AuditRecord
from registry.states import Role
from releases.models import Alias, AliasGrant, Release, Rollback
from releases.states import ReleaseState
from tests.factories.registry import make_tenant, make_version
from tests.factories.releases import begin_release, point_alias, run_release
from tests.web.conftest import SignIn, filled
from tests.web.reading import text_of
from tests.web.releases.conftest import Stage

pytestmark = pytest.mark.django_db


def alias_of(stage: Stage) -> Alias:
    return Alias.objects.get(pk=stage.alias.pk)


def canary(stage: Stage) -> Release:
    return run_release(begin_release(alias=stage.alias, candidate=stage.new), until=2)


def test_the_button_is_on_every_alias_and_release_page_of_who_may(stage: Stage, sign_in: SignIn) -> None:
    release = canary(stage)
    pages = (stage.address, f"{stage.address}/{release.number}")
    for roles, is_there in (((Role.OPERATOR,), True), ((Role.RELEASE_MANAGER,), True), ((Role.REVIEWER,), False)):
        browser = sign_in(stage.person(*roles))
        for page in pages:
            assert ('/rollback"' in browser.get(page).content.decode()) is is_there


def test_the_question_says_exactly_what_will_change(stage: Stage, manager: Client) -> None:
    release = canary(stage)
    asked = text_of(manager.get(f"{stage.address}/{release.number}/rollback"))
    assert "From v2 to v1: v1 answers, v2 answers nothing more." in asked
    assert "For the 10 % of requests to" in asked
    assert f"support #{release.number}, which is under way, ends as rolled back." in asked
    assert "v2 is cooled" in asked


def test_the_question_about_a_moved_alias_speaks_of_everybody_and_of_those_who_share_it(
    stage: Stage, manager: Client
) -> None:
    point_alias(name="support", version=stage.new)
    AliasGrant.objects.create(alias=stage.alias, tenant=make_tenant(name="globex"), name="s", granted_at=timezone.now())
    asked = text_of(manager.get(f"{stage.address}/rollback"))
    assert "From v2 to v1" in asked
    assert "For everybody who calls" in asked
    assert "globex" in asked


def test_without_an_earlier_version_the_question_says_so_and_the_service_refuses(stage: Stage, manager: Client) -> None:
    assert "no earlier version" in text_of(manager.get(f"{stage.address}/rollback"))
    answer = filled(manager, f"{stage.address}/rollback")
    assert answer.status_code == 422
    assert alias_of(stage).revision == 1


def test_one_confirmation_rolls_a_release_back(stage: Stage, manager: Client) -> None:
    release = canary(stage)
    answer = filled(manager, f"{stage.address}/{release.number}/rollback", reason="odd answers")
    assert answer["Location"] == f"{stage.address}/{release.number}"
    assert Release.objects.get().state == ReleaseState.ROLLED_BACK
    assert alias_of(stage).version_id == stage.old.pk
    told = AuditRecord.objects.filter(action="tenant:release:roll_back").get()
    assert told.reason == "odd answers"


def test_an_alias_goes_back_to_what_it_was_and_its_page_says_how_long_that_took(stage: Stage, manager: Client) -> None:
    point_alias(name="support", version=stage.new)
    answer = filled(manager, f"{stage.address}/rollback")
    assert alias_of(stage).version_id == stage.old.pk
    shown = manager.get(answer["Location"])
    assert "Rolled back: v1 answers." in text_of(shown)
    assert b'hx-trigger="every 3s"' in shown.content
    rollback = Rollback.objects.get()
    Rollback.objects.filter(pk=rollback.pk).update(
        last_answer_at=rollback.asked_at + timedelta(seconds=2.5), strays=3, settled_at=timezone.now()
    )
    shown = manager.get(stage.address)
    assert "2.5 s" in text_of(shown)
    assert b"hx-trigger" not in shown.content


def test_the_release_that_was_rolled_back_says_how_long_it_took(stage: Stage, manager: Client) -> None:
    release = canary(stage)
    filled(manager, f"{stage.address}/{release.number}/rollback")
    shown = text_of(manager.get(f"{stage.address}/{release.number}"))
    assert "How long the rollback took Done after" in shown
    assert "none so far" in shown


def test_a_second_click_does_not_go_back_further(stage: Stage, manager: Client) -> None:
    point_alias(name="support", version=stage.new)
    point_alias(name="support", version=make_version(adapter=stage.old.adapter, name="v3"))
    seen = {"revision": 3, "ends": 0}
    clicks = [manager.post(f"{stage.address}/rollback", seen).status_code for _click in range(2)]
    assert clicks == [302, 302]
    assert alias_of(stage).version_id == stage.new.pk
    assert alias_of(stage).revision == 4


def test_a_second_click_on_a_release_changes_nothing(stage: Stage, manager: Client) -> None:
    release = canary(stage)
    seen = {"revision": 1, "ends": release.number}
    address = f"{stage.address}/{release.number}/rollback"
    assert [manager.post(address, seen).status_code for _click in range(2)] == [302, 302]
    assert alias_of(stage).revision == 2


def test_what_somebody_moved_meanwhile_is_left_and_said(stage: Stage, manager: Client) -> None:
    point_alias(name="support", version=stage.new)
    seen = {"revision": 2, "ends": 0}
    point_alias(name="support", version=make_version(adapter=stage.old.adapter, name="v3"))
    answer = manager.post(f"{stage.address}/rollback", seen, follow=True)
    assert "v3 was moved in meanwhile" in text_of(answer)
    assert alias_of(stage).version.name == "v3"


def test_a_release_that_began_since_the_question_makes_it_be_asked_again(stage: Stage, manager: Client) -> None:
    point_alias(name="support", version=stage.new)
    begin_release(alias=alias_of(stage), candidate=make_version(adapter=stage.old.adapter))
    answer = manager.post(f"{stage.address}/rollback", {"revision": 2, "ends": 0})
    assert answer.status_code == 422
    assert "A release has begun or ended since" in text_of(answer)
    assert alias_of(stage).version_id == stage.new.pk


def test_a_release_whose_alias_has_moved_on_offers_no_way_back(stage: Stage, manager: Client) -> None:
    release = run_release(begin_release(alias=stage.alias, candidate=stage.new), until=3)
    assert Release.objects.get().state == ReleaseState.PROMOTED
    address = f"{stage.address}/{release.number}"
    assert f'href="{address}/rollback"' in manager.get(address).content.decode()
    point_alias(name="support", version=stage.old)
    assert f'href="{address}/rollback"' not in manager.get(address).content.decode()
    assert "There is nothing to undo" in text_of(manager.get(f"{address}/rollback"))
    assert filled(manager, f"{address}/rollback").status_code == 422


def test_nobody_else_rolls_back(stage: Stage, viewer: Client) -> None:
    viewer.raise_request_exception = False
    assert viewer.get(f"{stage.address}/rollback").status_code == 403
    assert viewer.post(f"{stage.address}/rollback", {"revision": 1, "ends": 0}).status_code == 403


def test_all_rollbacks_of_an_alias_are_listed(stage: Stage, manager: Client) -> None:
    assert "It was never rolled back" in text_of(manager.get(f"{stage.address}/rollbacks"))
    point_alias(name="support", version=stage.new)
    filled(manager, f"{stage.address}/rollback")
    shown = manager.get(f"{stage.address}/rollbacks")
    assert [row.left_id for row in shown.context["rows"]] == [stage.new.pk]
