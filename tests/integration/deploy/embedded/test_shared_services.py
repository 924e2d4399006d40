import psycopg
import pytest
import redis
from django.db import connection

from deploy.embedded.postgres import APP, PostgresServer
from deploy.embedded.seaweed import SeaweedServer
from deploy.embedded.valkey import ValkeyServer


@pytest.mark.django_db
def test_django_uses_the_database_of_the_test_session_as_its_owner(postgres: PostgresServer) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user, current_database(), current_setting('port')")
        user, database, port = cursor.fetchone()
    assert user == "lorekeeper_owner"
    assert database.startswith("test_lorekeeper")
    assert port == str(postgres.port)


@pytest.mark.django_db
def test_the_app_role_can_create_nothing_in_the_test_database(postgres: PostgresServer) -> None:
    database = str(connection.settings_dict["NAME"])
    with (
        psycopg.connect(postgres.url(APP, database=database)) as app,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        app.execute("CREATE TABLE public.mine (id int)")


def test_the_broker_of_the_session_answers(valkey: ValkeyServer) -> None:
    with redis.Redis.from_url(valkey.url) as client:
        assert client.ping()


def test_the_store_of_the_session_has_its_bucket(s3: SeaweedServer) -> None:
    client = s3.client()
    assert s3.bucket in [bucket["Name"] for bucket in client.list_buckets()["Buckets"]]
    client.close()
