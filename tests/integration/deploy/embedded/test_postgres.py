import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from deploy.embedded.errors import AlreadyRunning, ServerFailed
from deploy.embedded.ports import free_port
from deploy.embedded.postgres import APP, GATEWAY, OWNER, SUPERUSER, PostgresPasswords, PostgresServer
from deploy.embedded.system.sessions import postgres_in

pytestmark = pytest.mark.e2e

ROLES = (OWNER, APP, GATEWAY)


def make(folder: Path) -> PostgresServer:
    return PostgresServer(folder, port=free_port(), passwords=PostgresPasswords.generate(), durable=False)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """One for the tests that leave it running, if not unhurt."""
    with make(tmp_path_factory.mktemp("postgres")) as made:
        yield made


def keep_a_word(server: PostgresServer) -> None:
    # A server that is not durable may forget what it has not written yet.
    with psycopg.connect(server.url(OWNER), options="-c synchronous_commit=on") as owner:
        owner.execute("DROP TABLE IF EXISTS kept")
        owner.execute("CREATE TABLE kept (word text)")
        owner.execute("INSERT INTO kept VALUES ('still here')")


def kept_word(server: PostgresServer) -> str:
    with psycopg.connect(server.url(OWNER)) as owner:
        row = owner.execute("SELECT word FROM kept").fetchone()
    assert row is not None
    return str(row[0])


def test_postgres_18_runs_without_root_and_each_role_logs_in(server: PostgresServer) -> None:
    assert psutil.Process(server.pid).uids().effective != 0
    for role in ROLES:
        with psycopg.connect(server.url(role)) as connection:
            assert connection.info.server_version >= 180000
            row = connection.execute("SELECT current_user, current_database()").fetchone()
            assert row == (role, "lorekeeper")


def test_no_role_may_more_than_its_part(server: PostgresServer) -> None:
    with psycopg.connect(server.url(SUPERUSER)) as admin:
        rows = admin.execute(
            "SELECT rolname, rolcanlogin, rolinherit OR rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication"
            " OR rolbypassrls FROM pg_roles WHERE rolname LIKE 'lorekeeper%' ORDER BY 1"
        ).fetchall()
        owner = admin.execute("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'lorekeeper'").fetchone()
    assert rows == [(role, True, False) for role in sorted(ROLES)]
    assert owner == (OWNER,)


@pytest.mark.parametrize("role", [APP, GATEWAY])
@pytest.mark.parametrize(
    "statement", ["CREATE TABLE mine (id int)", "CREATE SCHEMA mine", "CREATE TEMP TABLE mine (id int)"]
)
def test_only_the_owner_makes_anything(server: PostgresServer, role: str, statement: str) -> None:
    with psycopg.connect(server.url(role)) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement)


def test_a_statement_of_the_app_or_the_gateway_cannot_run_for_ever(server: PostgresServer) -> None:
    for role, seconds in ((APP, "30s"), (GATEWAY, "5s")):
        with psycopg.connect(server.url(role)) as connection:
            assert connection.execute("SHOW statement_timeout").fetchone() == (seconds,)
            assert connection.execute("SHOW lock_timeout").fetchone() != ("0",)
            assert connection.execute("SHOW idle_in_transaction_session_timeout").fetchone() != ("0",)


def test_nobody_gets_in_without_the_password(server: PostgresServer) -> None:
    for host in ("127.0.0.1", str(server.socket_folder)):
        for password in ("", "wrong"):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(
                    host=host, port=server.port, user=SUPERUSER, password=password, dbname="postgres", passfile="/none"
                )


def test_it_listens_on_the_loopback_interface_alone(server: PostgresServer) -> None:
    listening = [c.laddr.ip for c in psutil.Process(server.pid).net_connections() if c.status == psutil.CONN_LISTEN]
    assert set(listening) == {"127.0.0.1"}


def test_the_roles_file_can_be_run_again_and_changes_passwords(server: PostgresServer) -> None:
    keep_a_word(server)
    server.passwords = PostgresPasswords(
        superuser=server.passwords.superuser, owner="new-owner", app="new-app", gateway="new-gateway"
    )
    server.settle()
    assert kept_word(server) == "still here"


def test_a_second_start_on_the_same_folder_reuses_the_data(server: PostgresServer) -> None:
    keep_a_word(server)
    server.restart()
    assert kept_word(server) == "still here"


def test_a_second_server_on_the_same_folder_is_refused_and_the_first_goes_on(server: PostgresServer) -> None:
    other = PostgresServer(server.folder, port=free_port(), passwords=server.passwords, durable=False)
    with pytest.raises(AlreadyRunning, match=str(os.getpid())):
        other.start()
    assert server.health()


@pytest.mark.parametrize("group", [False, True], ids=["the main process", "its process group"])
def test_after_sigkill_it_starts_again_with_its_data_although_a_backend_was_busy(
    server: PostgresServer, group: bool
) -> None:
    keep_a_word(server)
    busy = threading.Thread(target=count_for_ever, args=(server,))
    busy.start()
    wait_for_backend(server)
    server.kill(group=group)
    begun = time.monotonic()
    assert server.wait() == -signal.SIGKILL
    assert postgres_in(server.data) == []
    server.launch()
    print(f"postgres is back after {time.monotonic() - begun:.2f} s")
    busy.join()
    assert kept_word(server) == "still here"


def count_for_ever(server: PostgresServer) -> None:
    with contextlib.suppress(psycopg.OperationalError), psycopg.connect(server.url(OWNER)) as owner:
        owner.execute("SELECT count(*) FROM generate_series(1, 1000000000) AS n")


def wait_for_backend(server: PostgresServer) -> None:
    with psycopg.connect(server.url(SUPERUSER), autocommit=True) as admin:
        for _ in range(100):
            row = admin.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%generate_series(1, 1%'"
                " AND state = 'active' AND pid <> pg_backend_pid()"
            ).fetchone()
            if row == (1,):
                return
            time.sleep(0.05)
    pytest.fail("the busy query never ran")


def test_a_pid_file_that_names_a_living_foreign_process_does_not_block_the_start(server: PostgresServer) -> None:
    keep_a_word(server)
    pid_file = server.data / "postmaster.pid"
    old = pid_file.read_text().splitlines()
    server.kill()
    server.wait()
    pid_file.write_text("\n".join([str(os.getpid()), *old[1:]]) + "\n")
    server.launch()
    assert kept_word(server) == "still here"


def test_a_start_that_was_killed_while_it_made_the_cluster_is_made_again(folder: Path) -> None:
    half = folder / "postgres" / "data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    with make(folder / "postgres") as server:
        assert server.health()


def test_what_keeps_it_from_starting_is_in_the_error(folder: Path) -> None:
    with make(folder / "postgres") as server:
        server.stop()
        with (server.data / "postgresql.conf").open("a") as settings:
            settings.write("no_such_setting = 1\n")
        with pytest.raises(ServerFailed, match="no_such_setting"):
            server.start()
        assert postgres_in(server.data) == []


def test_a_long_path_gets_a_socket_in_the_temporary_folder(folder: Path) -> None:
    with make(folder / ("x" * 100) / "postgres") as server:
        assert not server.socket_folder.is_relative_to(server.folder)
        assert server.health()
    assert not server.socket_folder.exists()


def test_stopping_leaves_no_process(folder: Path) -> None:
    server = make(folder / "postgres")
    server.start()
    server.stop()
    server.stop()
    assert postgres_in(server.data) == []
    assert not server.running
