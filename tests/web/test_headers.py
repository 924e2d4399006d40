import pytest
from django.test import Client
from django.test.utils import override_settings

from config.web.headers import content_policy
from tests.factories.registry import make_person
from tests.web.conftest import SignIn

pytestmark = pytest.mark.django_db


def test_a_page_may_do_nothing_but_what_comes_from_here(client: Client) -> None:
    answer = client.get("/ui/account/login")
    policy = dict(each.split(" ", 1) for each in answer["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in answer["Content-Security-Policy"]
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"
    assert answer["Cache-Control"].find("no-store") >= 0


def test_answers_of_the_api_and_files_have_the_policy_too(client: Client) -> None:
    for address in ("/api/v1/whoami", "/static/css/base.css"):
        answer = client.get(address)
        assert "default-src 'none'" in answer["Content-Security-Policy"]
        answer.close()


def test_a_form_may_lead_to_the_provider_of_identities_and_nowhere_else() -> None:
    assert "form-action 'self'" in content_policy()
    oidc = {"issuer": "https://id.example/realms/x", "origins": ["https://mfa.example"]}
    with override_settings(OIDC=oidc):
        assert content_policy().endswith("form-action 'self' https://id.example https://mfa.example")


def test_a_page_says_that_it_differs_by_reader_language_and_htmx(sign_in: SignIn) -> None:
    vary = sign_in(make_person()).get("/ui/")["Vary"]
    assert {"HX-Request", "HX-Target", "Cookie", "Accept-Language"} <= {each.strip() for each in vary.split(",")}


def test_a_form_that_was_not_ours_is_refused(client: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    answer = strict.post(
        "/ui/account/login", {"login": "a@b.example", "password": "x"}, headers={"Accept": "text/html"}
    )
    assert answer.status_code == 403
    assert "cookies are blocked" in answer.content.decode()


def test_no_page_holds_a_script_or_a_style_of_its_own(sign_in: SignIn) -> None:
    page = sign_in(make_person()).get("/ui/").content.decode()
    assert " style=" not in page
    assert " onclick=" not in page
    assert "<style" not in page
    assert "<script>" not in page


def test_the_start_page_is_where_the_site_begins(client: Client) -> None:
    assert client.get("/")["Location"] == "/ui/"


@pytest.mark.parametrize(("accept", "kind"), [("text/html", "text/html"), ("*/*", "application/problem+json")])
def test_what_is_nowhere_is_told_to_people_and_programs_in_their_own_way(
    accept: str, kind: str, client: Client
) -> None:
    answer = client.get("/ui/nowhere", headers={"Accept": accept})
    assert (answer.status_code, answer["Content-Type"].split(";")[0]) == (404, kind)


def test_a_page_is_read_in_the_language_of_the_browser_and_in_the_chosen_one(client: Client) -> None:
    chinese = client.get("/ui/account/login", headers={"Accept-Language": "zh-CN"}).content.decode()
    assert '<html lang="zh-hans"' in chinese
    assert "登录" in chinese
    left = client.post("/ui/preferences", {"language": "en", "theme": "dark", "zone": "Asia/Shanghai", "next": "/ui/"})
    assert left["Location"] == "/ui/"
    english = client.get("/ui/account/login", headers={"Accept-Language": "zh-CN"}).content.decode()
    assert 'data-theme="dark"' in english
    assert "Times in Asia/Shanghai." in english


def test_preferences_lead_to_no_other_site(client: Client) -> None:
    assert client.post("/ui/preferences", {"theme": "dark", "next": "https://evil.example/"})["Location"] == "/ui/"


def test_programs_are_always_answered_in_english(client: Client) -> None:
    answer = client.get("/api/v1/whoami", headers={"Accept-Language": "zh-CN"})
    assert "token" in answer.json()["detail"]
