import pytest
from django.test import Client

from releases.models import ReleaseTemplate
from tests.web.conftest import filled
from tests.web.reading import text_of
from tests.web.releases.conftest import Stage

pytestmark = pytest.mark.django_db
SMALL = "canary: [{percent: 5}]\n"


@pytest.fixture
def templates(stage: Stage) -> str:
    return f"{stage.releases}/templates"


def test_the_built_in_template_is_listed_and_shown_as_the_plan_that_it_is(viewer: Client, templates: str) -> None:
    assert "built in" in text_of(viewer.get(templates))
    shown = text_of(viewer.get(f"{templates}/default"))
    assert "50 % of requests" in shown


def test_a_template_is_written_and_each_edition_is_kept(manager: Client, stage: Stage, templates: str) -> None:
    made = filled(manager, f"{stage.releases}/new-template?like=default", name="quick", text=SMALL)
    assert made["Location"] == f"{templates}/quick"
    assert filled(manager, f"{templates}/quick/edit", text=SMALL.replace("5", "7")).status_code == 302
    assert list(ReleaseTemplate.objects.order_by("number").values_list("number", flat=True)) == [1, 2]
    newest = manager.get(f"{templates}/quick")
    assert "What this edition changed" in text_of(newest)
    assert "5 % of requests" in text_of(manager.get(f"{templates}/quick?number=1"))


def test_what_would_change_is_shown_without_writing_it(manager: Client, templates: str) -> None:
    looked = filled(manager, f"{templates}/default/edit", text=SMALL, look="1")
    assert looked.status_code == 200
    assert any(line.differs for line in looked.context["lines"])
    assert "5 % of requests" in text_of(looked)
    assert not ReleaseTemplate.objects.exists()


@pytest.mark.parametrize("button", [{}, {"look": "1"}])
def test_what_is_wrong_stands_next_to_the_text(button: dict[str, str], manager: Client, templates: str) -> None:
    answer = filled(manager, f"{templates}/default/edit", text="canary: [{percent: -1}]", **button)
    assert answer.status_code == 422
    assert "canary[0].percent" in str(answer.context["form"].errors["text"])
    assert not ReleaseTemplate.objects.exists()


def test_another_edition_that_was_written_meanwhile_is_not_overwritten(manager: Client, templates: str) -> None:
    seen = manager.get(f"{templates}/default/edit").context["form"]["seen"].value()
    filled(manager, f"{templates}/default/edit", text=SMALL)
    answer = manager.post(f"{templates}/default/edit", {"text": "approvals: 2", "seen": seen})
    assert answer.status_code == 422
    assert "another edition meanwhile" in text_of(answer)
    assert ReleaseTemplate.objects.count() == 1


def test_a_new_template_does_not_take_the_name_of_another(manager: Client, stage: Stage) -> None:
    address = f"{stage.releases}/new-template"
    assert filled(manager, address, name="quick", text=SMALL).status_code == 302
    assert filled(manager, address, name="quick", text="approvals: 3").status_code == 422
    assert ReleaseTemplate.objects.count() == 1


def test_an_edition_that_there_is_not_is_not_found(viewer: Client, templates: str) -> None:
    assert viewer.get(f"{templates}/default?number=99").status_code == 404
    assert viewer.get(f"{templates}/default?number=nonsense").status_code == 200


def test_a_viewer_is_offered_no_editing(viewer: Client, templates: str) -> None:
    assert "/edit" not in viewer.get(f"{templates}/default").content.decode()
    assert "new-template" not in viewer.get(templates).content.decode()
