import pytest

from gateway.path.hedging import Hedging
from gateway.settings import Settings, SettingsError
from gateway.spans.sender import Receiver

ENV = {
    "LOREKEEPER_GATEWAY_DB_URL": "postgresql://gateway:secret-one@localhost/lorekeeper",
    "LOREKEEPER_WEB_URL": "http://127.0.0.1:8000/",
    "LOREKEEPER_GATEWAY_TOKEN": "lk_secret-two",
}


def test_three_variables_are_enough() -> None:
    settings = Settings.from_env(ENV)
    assert settings.web_url == "http://127.0.0.1:8000"
    assert (settings.cold_wait_s, settings.snapshot_poll_s) == (30.0, 3.0)


def test_times_can_be_shortened() -> None:
    settings = Settings.from_env({**ENV, "LOREKEEPER_COLD_WAIT": "1.5", "LOREKEEPER_SNAPSHOT_POLL": "0.2"})
    assert (settings.cold_wait_s, settings.snapshot_poll_s) == (1.5, 0.2)


@pytest.mark.parametrize("name", ENV)
def test_a_missing_variable_is_named(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        Settings.from_env({**ENV, name: ""})


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf"])
def test_a_time_that_is_no_time_is_named(text: str) -> None:
    with pytest.raises(SettingsError, match="LOREKEEPER_COLD_WAIT"):
        Settings.from_env({**ENV, "LOREKEEPER_COLD_WAIT": text})


def test_printed_settings_show_no_secrets() -> None:
    assert "secret" not in repr(Settings.from_env(ENV))


@pytest.mark.parametrize("url", ["postgres//gateway:secret-one@localhost/db", "postgresql://g:secret-one%zz@h/db"])
def test_a_database_url_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(SettingsError, match="LOREKEEPER_GATEWAY_DB_URL") as caught:
        Settings.from_env({**ENV, "LOREKEEPER_GATEWAY_DB_URL": url})
    assert "secret" not in str(caught.value)


def test_the_client_and_the_number_of_processes_can_be_chosen() -> None:
    assert (Settings.from_env(ENV).client, Settings.from_env(ENV).processes) == ("llhttp", 1)
    chosen = Settings.from_env({**ENV, "LOREKEEPER_GATEWAY_CLIENT": "aiohttp", "LOREKEEPER_GATEWAY_PROCESSES": "4"})
    assert (chosen.client, chosen.processes) == ("aiohttp", 4)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("LOREKEEPER_GATEWAY_CLIENT", "curl"),
        ("LOREKEEPER_GATEWAY_PROCESSES", "0"),
        ("LOREKEEPER_GATEWAY_PROCESSES", "-1"),
        ("LOREKEEPER_GATEWAY_PROCESSES", "two"),
        ("LOREKEEPER_GATEWAY_PROCESSES", "100000"),
    ],
)
def test_a_choice_that_there_is_not_is_named(name: str, text: str) -> None:
    with pytest.raises(SettingsError, match=name):
        Settings.from_env({**ENV, name: text})


def test_shadows_can_be_turned_off_and_not_be_endless() -> None:
    assert Settings.from_env({**ENV, "LOREKEEPER_GATEWAY_SHADOWS": "0"}).shadows == 0
    with pytest.raises(SettingsError, match="LOREKEEPER_GATEWAY_SHADOWS must be a number from 0 to 1000"):
        Settings.from_env({**ENV, "LOREKEEPER_GATEWAY_SHADOWS": "1001"})


@pytest.mark.parametrize("text", ["0", "-1", "many"])
def test_how_many_marks_a_tenant_may_send_is_a_number_above_0(text: str) -> None:
    assert Settings.from_env({**ENV, "LOREKEEPER_GATEWAY_FEEDBACK": "600"}).feedback_per_minute == 600
    with pytest.raises(SettingsError, match="LOREKEEPER_GATEWAY_FEEDBACK must be a number from 1"):
        Settings.from_env({**ENV, "LOREKEEPER_GATEWAY_FEEDBACK": text})


def test_spans_go_nowhere_unless_it_is_said_where_to() -> None:
    assert Settings.from_env(ENV).traces is None
    said = {
        "LOREKEEPER_GATEWAY_TRACES_URL": "http://collector:4318/v1/traces",
        "LOREKEEPER_GATEWAY_TRACES_HEADERS": "authorization=secret-three",
        "LOREKEEPER_GATEWAY_TRACES_SHARE": "0.1",
    }
    settings = Settings.from_env({**ENV, **said})
    assert settings.traces == Receiver("http://collector:4318/v1/traces", "authorization=secret-three", 0.1)
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("LOREKEEPER_GATEWAY_TRACES_URL", "collector:4318"),
        ("LOREKEEPER_GATEWAY_TRACES_URL", "http://"),
        ("LOREKEEPER_GATEWAY_TRACES_SHARE", "1.1"),
        ("LOREKEEPER_GATEWAY_TRACES_SHARE", "nan"),
        ("LOREKEEPER_GATEWAY_TRACES_SHARE", "half"),
    ],
)
def test_what_is_no_address_and_no_share_is_named(name: str, text: str) -> None:
    url = {"LOREKEEPER_GATEWAY_TRACES_URL": "http://collector:4318/v1/traces"}
    with pytest.raises(SettingsError, match=name):
        Settings.from_env({**ENV, **url, name: text})


@pytest.mark.parametrize("missing", ["opentelemetry", "opentelemetry.exporter"])
def test_without_opentelemetry_the_setting_says_what_to_install(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    def find(name: str) -> object:
        if name.startswith(missing):
            raise ModuleNotFoundError(missing)
        return object()

    monkeypatch.setattr("gateway.settings.find_spec", find)
    with pytest.raises(SettingsError, match="lorekeeper\\[traces\\]"):
        Settings.from_env({**ENV, "LOREKEEPER_GATEWAY_TRACES_URL": "http://collector:4318/v1/traces"})


def test_nothing_is_asked_of_a_second_node_unless_it_is_said_when() -> None:
    assert Settings.from_env(ENV).hedging is None
    assert Settings.from_env({**ENV, "LOREKEEPER_GATEWAY_HEDGE_AFTER": "0.3"}).hedging == Hedging(after_s=0.3)
    said = {"LOREKEEPER_GATEWAY_HEDGE_AFTER": "p97.5", "LOREKEEPER_GATEWAY_HEDGE_SHARE": "0.02"}
    assert Settings.from_env({**ENV, **said}).hedging == Hedging(quantile=0.975, share=0.02)


@pytest.mark.parametrize("text", ["soon", "0", "-1", "p", "p5", "p49", "p100"])
def test_what_is_neither_a_time_nor_a_percentile_is_named(text: str) -> None:
    with pytest.raises(SettingsError, match=r"LOREKEEPER_GATEWAY_HEDGE_AFTER.*p95"):
        Settings.from_env({**ENV, "LOREKEEPER_GATEWAY_HEDGE_AFTER": text})
