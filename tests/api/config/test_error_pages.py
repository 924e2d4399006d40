import pytest
from django.test import Client

from config.error_pages import failed


def test_an_unknown_address_of_the_api_is_a_problem_document(client: Client) -> None:
    answer = client.get("/api/v1/nothing-here")
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "not_found"


def test_an_unknown_address_elsewhere_is_a_page_for_people(client: Client) -> None:
    answer = client.get("/nothing-here", headers={"X-Request-Id": "r-17", "Accept": "text/html,*/*"})
    assert answer.status_code == 404
    assert answer["X-Request-Id"] == "r-17"
    assert b"r-17" in answer.content


def test_an_unknown_address_is_a_problem_document_to_a_program(client: Client) -> None:
    answer = client.get("/nothing-here", headers={"Accept": "*/*"})
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"


def test_a_failure_tells_nothing_of_its_inside(rf: object) -> None:
    request = rf.get("/api/v1/whoami")  # type: ignore[attr-defined]
    answer = failed(request)
    assert answer.status_code == 500
    assert b"Traceback" not in answer.content


def test_a_request_id_that_could_forge_a_log_line_is_replaced(client: Client) -> None:
    answer = client.get("/healthz", headers={"X-Request-Id": "a b\x7f"})
    assert answer["X-Request-Id"] != "a b\x7f"


@pytest.mark.django_db
def test_the_web_process_says_that_it_is_alive_and_ready(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ok"}
