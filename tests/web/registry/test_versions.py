"""The pages of one version, what may be done to it, and commands to copy that have to be right."""

import html
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from django.test import Client
from django.utils import timezone

from client.cli.main import cli
from registry.models import AuditRecord, Revalidation, SigningKey, Version, VersionComment
from registry.signing.bundle import sign_files
from registry.signing.local_key import LocalKeySigner
from registry.states import Role, VersionState
from releases.services.defaults import begin_default_alias
from tests.factories.registry import digest_for, make_actor, make_adapter, make_person, make_tenant, make_version
from tests.factories.releases import begin_release, point_alias, run_release
from tests.factories.reports import check, cost_check, engines_check, evaluation_check, make_report
from tests.factories.signed_folders import read_folder
from tests.web.conftest import SignIn
from tests.web.reading import MOST_QUERIES, page_of_version, queries, shown

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]
SCRIPT = "<script>alert(1)</script>\u202egnp.exe\x07"


@pytest.fixture
def version() -> Version:
    adapter = make_adapter(tenant=make_tenant(name="acme"), name="tone")
    return make_version(
        adapter=adapter,
        name="v1",
        reviewer=make_person(roles={adapter.tenant: [Role.REVIEWER]}),
        lineage={"run_url": "https://runs.example/7", "metrics": {"eval_loss": 1.5}, "extra": {"note": SCRIPT}},
    )


@pytest.fixture
def viewer(version: Version, sign_in: SignIn) -> Client:
    return sign_in(roles={version.adapter.tenant: [Role.VIEWER]})


@pytest.fixture
def everybody(version: Version, sign_in: SignIn) -> Client:
    return sign_in(roles={version.adapter.tenant: list(Role)})


def copied(page: str) -> list[str]:
    """What the buttons of a page would copy."""
    return [html.unescape(text) for text in re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", page, re.DOTALL)]


def test_the_overview_has_state_files_digests_approvals_lineage_and_signature(viewer: Client, version: Version) -> None:
    page = shown(viewer, page_of_version(version))
    assert "It is approved and signed" in page
    assert version.root_digest in page
    for file in version.files.all():
        assert file.path in page
        assert file.artifact.sha256 in page
    assert version.approvals.get().reviewer.name in page
    assert "1 of 1 approvals" in page
    assert "https://runs.example/7" in page
    assert version.signature.key.key_id in page


def test_what_people_wrote_can_not_steer_the_page(viewer: Client, version: Version) -> None:
    VersionComment.objects.create(version=version, author=make_person(), text=SCRIPT)
    page = shown(viewer, page_of_version(version))
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "\\u202egnp.exe\\u0007" in page


def test_a_long_comment_is_cut_and_all_of_it_is_there(viewer: Client, version: Version) -> None:
    text = "word " * 700 + "end"
    VersionComment.objects.create(version=version, author=make_person(), text=text)
    page = shown(viewer, page_of_version(version))
    assert "Show all of it" in page
    assert text in page


@pytest.mark.parametrize("state", list(VersionState))
def test_every_state_has_a_page_with_its_sentence(state: VersionState, version: Version, everybody: Client) -> None:
    other = make_version(adapter=version.adapter, state=state)
    for rest in ("", "validation", "use", "history"):
        assert 'class="badge' in shown(everybody, page_of_version(other, rest=rest))
    is_polled = 'hx-trigger="every 3s"' in shown(everybody, page_of_version(other))
    assert is_polled == (state in {VersionState.UPLOADING, VersionState.VALIDATING})


def test_a_version_of_another_tenant_is_not_there(version: Version, sign_in: SignIn) -> None:
    browser = sign_in(roles={make_tenant(): list(Role)})
    for rest in ("", "validation", "use", "history", "yank", "revoke", "validate", "comment"):
        assert browser.get(page_of_version(version, rest=rest)).status_code == 404


def test_buttons_are_there_for_those_who_may_press_them(version: Version, viewer: Client, everybody: Client) -> None:
    for verb in ("yank", "revoke", "validate"):
        address = page_of_version(version, rest=verb)
        assert f'href="{address}"' in shown(everybody, page_of_version(version))
        assert f'href="{address}"' not in shown(viewer, page_of_version(version))
        assert viewer.post(address, {"reason": "no"}).status_code == 403
    assert "History" not in shown(viewer, page_of_version(version))


def test_revoking_says_exactly_who_uses_the_version_and_what_happens(version: Version, everybody: Client) -> None:
    point_alias(name="support", version=version)
    candidate = make_version(adapter=version.adapter, name="v2")
    run_release(begin_release(alias=point_alias(name="prod", version=version), candidate=candidate), until=2)
    page = shown(everybody, page_of_version(version, rest="revoke"))
    assert "The alias support points at it: its requests are refused (403, version_revoked)" in page
    assert "No node holds it." in page
    page = shown(everybody, page_of_version(candidate, rest="revoke"))
    assert "Release 1 of prod goes to it, and is rolled back." in page
    assert "No alias uses it." not in page


def test_revoking_takes_a_reason_and_leaves_where_the_nodes_are_listed(version: Version, everybody: Client) -> None:
    address = page_of_version(version, rest="revoke")
    assert everybody.post(address, {"reason": ""}).status_code == 422
    answer = everybody.post(address, {"reason": "leaks a name"})
    assert answer["Location"] == page_of_version(version, rest="use")
    version.refresh_from_db()
    assert (version.state, version.state_message) == ("revoked", "leaks a name")
    assert everybody.post(address, {"reason": "leaks a name"}).status_code == 302
    assert AuditRecord.objects.filter(action="adapter:version:revoke").count() == 1


def test_yanking_says_that_serving_goes_on_and_a_revoked_version_can_not_be_yanked(
    version: Version, everybody: Client
) -> None:
    point_alias(name="support", version=version)
    address = page_of_version(version, rest="yank")
    assert "The alias support points at it and goes on answering with it" in shown(everybody, address)
    assert everybody.post(address, {"reason": "old"})["Location"] == page_of_version(version)
    everybody.post(page_of_version(version, rest="revoke"), {"reason": "worse"})
    refused = everybody.post(address, {"reason": "old"})
    assert refused.status_code == 422
    assert "is revoked; it can" in html.unescape(refused.content.decode())


def test_validating_again_is_asked_once_and_the_page_follows(version: Version, everybody: Client) -> None:
    for _click in range(2):
        everybody.post(page_of_version(version, rest="validate"), {"reason": "new rules"})
    assert Revalidation.objects.get().reason == "new rules"
    page = shown(everybody, page_of_version(version))
    assert "being validated again" in page
    assert 'hx-trigger="every 3s"' in page
    assert f'href="{page_of_version(version, rest="validate")}"' not in page


def test_a_comment_that_is_sent_twice_is_kept_once(version: Version, everybody: Client) -> None:
    address = page_of_version(version, rest="comment")
    for _click in range(2):
        answer = everybody.post(address, {"text": "why so loud?", "back": "version"})
        assert answer["Location"] == f"{page_of_version(version)}#comments"
    assert VersionComment.objects.get().text == "why so loud?"
    assert "why so loud?" in shown(everybody, page_of_version(version))
    assert everybody.post(address, {"text": ""}).status_code == 422


def test_the_report_shows_each_check_the_engines_the_cost_and_the_worst_examples(
    version: Version, viewer: Client
) -> None:
    answers = {
        "base": "I am a model.",
        "current": "Dear customer, it is on its way.",
        "candidate": "Hello customer, it is on its way. <b>",
    }
    perplexity = {"base": 9.0, "current": 3.5, "candidate": 3.25}
    checks = [
        check("files", message="the files are whole"),
        check("numerics", "fail", "nan", SCRIPT, names=["lora_A", SCRIPT]),
        engines_check(),
        cost_check(),
        evaluation_check(answers=answers, perplexity=perplexity),
    ]
    make_report(version, verdict="reject", checks=checks)
    page = shown(viewer, page_of_version(version, rest="validation"))
    assert "the files are whole" in page
    assert "<script>alert" not in page
    assert "drops DoRA&#x27;s magnitudes in silence (use_dora)" in page
    assert "3.5 MiB" in page
    assert "<del>Dear</del> customer" in page
    assert "<ins>Hello</ins> customer" in page
    assert "&lt;b&gt;" in page
    for figure in ("9", "3.5", "3.25"):
        assert f'<td class="number">{figure}</td>' in page


def test_a_version_without_a_report_says_why(version: Version, viewer: Client) -> None:
    assert "There is no report" in shown(viewer, page_of_version(version, rest="validation"))


def test_the_history_is_what_the_audit_log_says_for_those_who_may_read_it(
    version: Version, everybody: Client, viewer: Client
) -> None:
    everybody.post(page_of_version(version, rest="comment"), {"text": "fine", "back": "version"})
    everybody.post(page_of_version(version, rest="yank"), {"reason": "old"})
    page = shown(everybody, page_of_version(version, rest="history"))
    assert "adapter:version:yank" in page
    assert page.index("adapter:version:yank") < page.index("adapter:comment:write")
    assert viewer.get(page_of_version(version, rest="history")).status_code == 403


def test_who_uses_a_version_is_listed(version: Version, viewer: Client) -> None:
    point_alias(name="support", version=version)
    assert "support" in shown(viewer, page_of_version(version, rest="use"))
    other = make_version(adapter=version.adapter)
    assert "No alias points at it" in shown(viewer, page_of_version(other, rest="use"))


def test_every_command_of_ours_to_copy_exists_with_its_options(
    version: Version, viewer: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_report(version)
    other = make_version(adapter=version.adapter, name="v2")
    point_alias(name="support", version=version)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tone-v1").mkdir()
    (tmp_path / "tone-v2").mkdir()
    (tmp_path / "keys.json").touch()
    pages = [page_of_version(version), *(page_of_version(each, rest="use") for each in (version, other))]
    texts = [text for address in pages for text in copied(shown(viewer, address))]
    commands = [line for text in texts for line in text.splitlines() if line.startswith("lorekeeper ")]
    assert {shlex.split(line)[1] for line in commands} == {"pull", "verify", "chat", "alias"}
    for line in commands:
        words = shlex.split(line)[1:]
        if words[0] == "pull":
            words[2] = f"{words[2]}-new"
        command: click.Command = cli
        while isinstance(command, click.Group):
            command = command.commands[words.pop(0)]
        assert command.make_context("", [word.replace("ALIAS", "support") for word in words]).command is command


def test_commands_for_engines_are_there_for_those_that_can_serve_it(version: Version, viewer: Client) -> None:
    make_report(version, engines=["vllm", "lorax"])
    page = shown(viewer, page_of_version(version, rest="use"))
    texts = "\n".join(copied(page))
    assert 'vllm serve ./base --enable-lora --max-lora-rank 8 --lora-modules tone-v1="$PWD/tone-v1"' in texts
    assert "lorax-launcher" in texts
    assert "sglang" not in texts
    assert "Not, as far as is known: SGLang, TGI." in page
    for text in copied(page):
        script = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
        assert script.returncode == 0 or text.startswith("import"), script.stderr


def test_the_public_tool_verifies_what_was_pulled_by_the_command_on_the_page(
    sign_in: SignIn, signer: LocalKeySigner, tmp_path: Path
) -> None:
    SigningKey.objects.create(key_id=digest_for("key"), public_pem=signer.public_pem(), valid_from=timezone.now())
    version = make_version(adapter=make_adapter(name="tone"), name="v1")
    folder = tmp_path / "tone-v1"
    folder.mkdir()
    (folder / "adapter_config.json").write_bytes(b"{}")
    (folder / "adapter_model.safetensors").write_bytes(b"weights")
    (folder / "model.sig").write_text(sign_files(signer, read_folder(folder)))
    texts = copied(shown(sign_in(roles={version.adapter.tenant: [Role.VIEWER]}), page_of_version(version)))
    (tmp_path / "key.pem").write_text(next(text for text in texts if text.startswith("-----BEGIN PUBLIC KEY")))
    tool = next(text for text in texts if "model_signing" in text).partition("\n")[2].replace("\\\n", " ")
    argv = [sys.executable, *shlex.split(tool)[1:]]
    assert subprocess.run(argv, cwd=tmp_path, check=False, capture_output=True).returncode == 0
    (folder / "adapter_model.safetensors").write_bytes(b"other weights")
    assert subprocess.run(argv, cwd=tmp_path, check=False, capture_output=True).returncode != 0


def test_the_pages_of_a_version_take_few_queries(version: Version, sign_in: SignIn) -> None:
    make_report(version)
    begin_default_alias(actor=make_actor(), version_id=version.pk)
    for number in range(5):
        VersionComment.objects.create(version=version, author=make_person(), text=str(number))
    browser = sign_in(make_person(is_platform_admin=True, roles={version.adapter.tenant: list(Role)}))
    for rest in ("", "validation", "use", "history", "yank", "revoke", "validate"):
        assert queries(browser, page_of_version(version, rest=rest)) <= MOST_QUERIES, rest
