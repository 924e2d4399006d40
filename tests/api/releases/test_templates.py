from typing import Any

import pytest

from registry.states import Role
from releases.plan.document import PlanDocument
from tests.api.releases.conftest import Caller, Member

pytestmark = pytest.mark.django_db
PLACE = "release-templates"


def test_a_template_is_written_read_and_listed(ada: Caller, member: Member) -> None:
    written = ada.put(f"{PLACE}/careful", {"text": "approvals: 2 # two\n"})
    assert written.status_code == 200, written.json()
    body = written.json()
    assert (body["number"], body["text"], body["written_by"]) == (1, "approvals: 2 # two\n", "ada@example.com")
    assert body["document"] == {**PlanDocument().model_dump(mode="json"), "approvals": 2}
    ada.put(f"{PLACE}/careful", {"text": "approvals: 3"})
    viewer = member(Role.VIEWER)
    assert viewer.get(f"{PLACE}/careful").json()["document"]["approvals"] == 3
    assert viewer.get(f"{PLACE}/careful", number=1).json() == body
    listed = viewer.get(PLACE).json()
    assert [(row["name"], row["number"], row["written_by"]) for row in listed["results"]] == [
        ("careful", 2, "ada@example.com"),
        ("default", 0, None),
    ]
    assert (listed["next"], "text" in listed["results"][0]) == (None, False)


def test_the_built_in_template_is_there_before_anybody_wrote_one(ada: Caller) -> None:
    found = ada.get(f"{PLACE}/default").json()
    assert (found["number"], found["text"], found["document"]) == (0, "", PlanDocument().model_dump(mode="json"))
    ada.put(f"{PLACE}/default", {"text": "approvals: 0"})
    assert ada.get(f"{PLACE}/default").json()["number"] == 1
    assert ada.get(f"{PLACE}/default", number=0).json() == found


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"text": "approvals: many"}, "approvals"),
        ({"text": "canary: [{percent: 10}, {percent: 1}]"}, "text"),
        ({"text": "a: &x 1"}, "text"),
        ({}, "text"),
        ({"text": ""}, "text"),
    ],
)
def test_a_text_that_is_no_plan_is_refused_by_its_path(ada: Caller, body: dict[str, Any], field: str) -> None:
    refused = ada.put(f"{PLACE}/careful", body)
    assert (refused.status_code, refused.json()["field"]) == (400, field)
    assert ada.get(f"{PLACE}/careful").status_code == 404


def test_a_change_names_what_it_is_based_on(ada: Caller) -> None:
    none_yet = ada.put(f"{PLACE}/careful", {"text": "approvals: 1"}, **{"If-None-Match": "*"})
    assert none_yet.status_code == 200
    again = ada.put(f"{PLACE}/careful", {"text": "approvals: 2"}, **{"If-None-Match": "*"})
    assert (again.status_code, again.json()["code"]) == (412, "precondition_failed")
    first = none_yet.headers["ETag"]
    assert ada.get(f"{PLACE}/careful").headers["ETag"] == first
    second = ada.put(f"{PLACE}/careful", {"text": "approvals: 2"}, **{"If-Match": first})
    assert second.json()["number"] == 2
    assert ada.put(f"{PLACE}/careful", {"text": "approvals: 3"}, **{"If-Match": first}).status_code == 412
    built_in = ada.get(f"{PLACE}/default").headers["ETag"]
    assert ada.put(f"{PLACE}/default", {"text": "approvals: 0"}, **{"If-Match": built_in}).status_code == 200


def test_only_release_managers_write_and_all_members_read(member: Member) -> None:
    for role in Role:
        caller = member(role)
        written = caller.put(f"{PLACE}/careful", {"text": "approvals: 3"})
        assert (written.status_code == 200) == (role is Role.RELEASE_MANAGER), role
        assert caller.get(PLACE).status_code == 200
