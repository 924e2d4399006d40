"""Lists of adapters and versions, the adapter's page, and a new adapter."""

import pytest

from registry.models import Adapter, AuditRecord
from registry.states import Role, VersionState
from releases.services.defaults import begin_default_alias
from tests.factories.registry import (
    make_actor,
    make_adapter,
    make_base_revision,
    make_person,
    make_tenant,
    make_version,
)
from tests.factories.releases import point_alias
from tests.web.conftest import SignIn
from tests.web.reading import MOST_QUERIES, queries, shown

pytestmark = pytest.mark.django_db


def test_the_list_has_the_adapters_of_all_tenants_of_the_reader_and_no_others(sign_in: SignIn) -> None:
    mine, also_mine, foreign = make_tenant(), make_tenant(), make_tenant()
    for tenant in (mine, also_mine, foreign):
        make_adapter(tenant=tenant, name=f"tone-{tenant.pk}")
    browser = sign_in(roles={mine: [Role.VIEWER], also_mine: [Role.VIEWER]})
    page = shown(browser, "/ui/adapters")
    assert f"tone-{mine.pk}" in page
    assert f"tone-{also_mine.pk}" in page
    assert f"tone-{foreign.pk}" not in page
    assert "Nothing fits" in shown(browser, f"/ui/adapters?q=tone-{foreign.pk}")


def test_a_platform_admin_sees_the_adapters_of_every_tenant(sign_in: SignIn) -> None:
    adapter = make_adapter(name="of-somebody")
    assert "of-somebody" in shown(sign_in(is_platform_admin=True), f"/ui/adapters?tenant={adapter.tenant.name}")


def test_adapters_are_found_by_how_their_name_begins_by_tenant_and_by_base_model(sign_in: SignIn) -> None:
    tenant, other = make_tenant(name="acme"), make_tenant(name="blue")
    base = make_base_revision().base_model
    make_adapter(tenant=tenant, name="support-tone", base_model=base)
    make_adapter(tenant=tenant, name="legal")
    make_adapter(tenant=other, name="support-form")
    browser = sign_in(roles={tenant: [Role.VIEWER], other: [Role.VIEWER]})
    page = shown(browser, "/ui/adapters?q=supp")
    assert "support-tone" in page
    assert "support-form" in page
    assert ">legal<" not in page
    page = shown(browser, "/ui/adapters?q=acme/supp")
    assert "support-tone" in page
    assert "support-form" not in page
    page = shown(browser, f"/ui/adapters?base_model={base.name}")
    assert "support-tone" in page
    assert "support-form" not in page
    page = shown(browser, "/ui/adapters?tenant=blue")
    assert "support-form" in page
    assert "support-tone" not in page


def test_the_list_of_adapters_says_the_newest_version_and_what_the_default_stands_for(sign_in: SignIn) -> None:
    adapter = make_adapter(name="tone")
    begin_default_alias(actor=make_actor(), version_id=make_version(adapter=adapter, name="v1").pk)
    make_version(adapter=adapter, name="v2", state=VersionState.CANDIDATE)
    page = shown(sign_in(roles={adapter.tenant: [Role.VIEWER]}), "/ui/adapters")
    assert ">v2</a>" in page
    assert "candidate" in page
    assert ">v1<" in page


def test_a_search_that_finds_nothing_says_so_and_leads_back(sign_in: SignIn) -> None:
    browser = sign_in(roles={make_tenant(): [Role.VIEWER]})
    assert "Nothing fits" in shown(browser, "/ui/adapters?q=nowhere")
    assert "Nothing fits" in shown(browser, "/ui/adapters/versions?q=nowhere")
    assert "There are no adapters yet" in shown(browser, "/ui/adapters")
    assert "There are no versions yet" in shown(browser, "/ui/adapters/versions")


def test_versions_are_found_by_reference_name_digest_state_uploader_and_lineage(sign_in: SignIn) -> None:
    adapter = make_adapter(tenant=make_tenant(name="acme"), name="tone")
    other = make_adapter(tenant=adapter.tenant, name="other", base_model=adapter.base_model)
    commit, uploader = "0f" * 20, make_person(email="ana@example.com")
    wanted = make_version(
        adapter=adapter,
        name="2026-11-29.1",
        uploader=uploader,
        files={"adapter_config.json": b"{}", "adapter_model.safetensors": b"wanted"},
        lineage={"git_commit": commit, "metrics": {"eval_loss": 1.5}, "parent_version": "tone@v0"},
    )
    make_version(adapter=other, name="v7", state=VersionState.CANDIDATE, lineage={"metrics": {"eval_loss": 3.5}})
    browser = sign_in(roles={adapter.tenant: [Role.VIEWER]})
    for search in (
        "q=acme/tone@2026",
        "q=tone@2026-11-29.1",
        "q=tone",
        "q=2026-11",
        "q=acme/tone",
        f"q={wanted.root_digest[:10]}",
        "state=approved",
        "uploader=ana@example.com",
        f"git_commit={commit.upper()}",
        "metric=eval_loss%3C2",
        "parent_version=tone@v0",
        f"base_model={adapter.base_model.name}&state=approved",
    ):
        page = shown(browser, f"/ui/adapters/versions?{search}")
        assert "2026-11-29.1</a>" in page, search
        assert "v7</a>" not in page, search


def test_a_filter_that_makes_no_sense_is_refused_next_to_its_field(sign_in: SignIn) -> None:
    adapter = make_adapter()
    make_version(adapter=adapter, name="v7")
    browser = sign_in(roles={adapter.tenant: [Role.VIEWER]})
    page = shown(browser, "/ui/adapters/versions?git_commit=abc")
    assert "40 or 64 hexadecimal digits" in page
    assert "Nothing was searched for" in page
    assert "v7</a>" not in page
    assert "is not a bound of a metric" in shown(browser, "/ui/adapters/versions?metric=nonsense")


def test_the_lists_go_from_page_to_page_and_back_with_their_filters(sign_in: SignIn) -> None:
    adapter = make_adapter()
    names = [f"v{number:03}" for number in range(120)]
    for name in names:
        make_version(adapter=adapter, name=name, state=VersionState.UPLOADING)
    browser = sign_in(roles={adapter.tenant: [Role.VIEWER]})
    for address in (
        "/ui/adapters/versions?state=uploading",
        f"/ui/adapters/{adapter.tenant.name}/{adapter.name}?state=uploading",
    ):
        answer = browser.get(address)
        seen: list[str] = []
        while True:
            rows = answer.context["rows"]
            seen += [version.name for version in rows]
            if not rows.following:
                break
            assert "state=uploading" in rows.following
            answer = browser.get(rows.following)
        assert seen == names[::-1]
        assert [version.name for version in browser.get(rows.previous).context["rows"]] == names[20:70][::-1]


def test_the_page_of_an_adapter_has_its_versions_its_aliases_and_what_it_is_for(sign_in: SignIn) -> None:
    adapter = make_adapter(tenant=make_tenant(name="acme"), name="tone")
    Adapter.objects.filter(pk=adapter.pk).update(description="For the\nhelp desk <b>")
    version = make_version(adapter=adapter, name="v1")
    point_alias(name="support", version=version)
    page = shown(sign_in(roles={adapter.tenant: [Role.VIEWER]}), "/ui/adapters/acme/tone")
    assert "For the\nhelp desk &lt;b&gt;" in page
    assert "support" in page
    assert 'href="/ui/adapters/acme/tone/v1"' in page


def test_an_adapter_without_versions_says_how_to_push_one(sign_in: SignIn) -> None:
    adapter = make_adapter(tenant=make_tenant(name="acme"), name="tone")
    page = shown(sign_in(roles={adapter.tenant: [Role.VIEWER]}), "/ui/adapters/acme/tone")
    assert "lorekeeper push FOLDER acme/tone" in page


def test_an_uploader_makes_an_adapter_and_it_is_in_the_audit_log(sign_in: SignIn) -> None:
    tenant, base = make_tenant(name="acme"), make_base_revision().base_model
    browser = sign_in(roles={tenant: [Role.UPLOADER]})
    assert 'href="/ui/adapters/acme/-/new"' in shown(browser, "/ui/adapters")
    facts = {"name": "tone", "base_model": base.name, "description": "help desk"}
    made = browser.post("/ui/adapters/acme/-/new", facts)
    assert made["Location"] == "/ui/adapters/acme/tone"
    assert Adapter.objects.get(tenant=tenant).description == "help desk"
    assert AuditRecord.objects.filter(chain="acme").get().how == "web"
    again = browser.post("/ui/adapters/acme/-/new", facts)
    assert again.status_code == 422
    assert "There is already an adapter named tone." in again.content.decode()
    assert "Small letters" in browser.post("/ui/adapters/acme/-/new", {**facts, "name": "Tone!"}).content.decode()


def test_only_an_uploader_is_offered_a_new_adapter(sign_in: SignIn) -> None:
    tenant = make_tenant(name="acme")
    browser = sign_in(roles={tenant: [role for role in Role if role is not Role.UPLOADER]})
    assert "/-/new" not in shown(browser, "/ui/adapters")
    assert browser.get("/ui/adapters/acme/-/new").status_code == 403


def test_the_lists_take_no_more_queries_for_more_rows(sign_in: SignIn) -> None:
    tenant = make_tenant(name="acme")
    person = make_person(is_platform_admin=True, roles={tenant: list(Role)})
    browser = sign_in(person)
    for number in range(60):
        adapter = make_adapter(tenant=tenant, name=f"tone-{number}")
        point_alias(name=f"alias-{number}", version=make_version(adapter=adapter, name="v1"))
    for rest in ("", "/versions", "/versions?q=tone-1", "/acme/tone-1"):
        assert queries(browser, f"/ui/adapters{rest}") <= MOST_QUERIES, rest
