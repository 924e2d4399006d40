"""Request records by day and with more to say, and the comparisons of shadow answers."""

from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"

_REQUEST = migrations.CreateModel(
    name="GatewayRequest",
    fields=[
        (
            "pk",
            models.CompositePrimaryKey(
                "at", "request_id", "is_shadow", blank=True, editable=False, primary_key=True, serialize=False
            ),
        ),
        ("at", models.DateTimeField()),
        ("request_id", models.TextField()),
        ("tenant", models.TextField()),
        ("alias", models.TextField()),
        ("version_id", models.UUIDField(null=True)),
        ("node", models.TextField(null=True)),
        ("tier", models.TextField()),
        ("status", models.IntegerField()),
        ("error_kind", models.TextField()),
        ("queue_ms", models.IntegerField()),
        ("load_ms", models.IntegerField()),
        ("ttft_ms", models.IntegerField()),
        ("total_ms", models.IntegerField()),
        ("prompt_tokens", models.IntegerField(null=True)),
        ("completion_tokens", models.IntegerField(null=True)),
        ("stream", models.BooleanField()),
        ("path", models.TextField(db_default="")),
        ("side", models.TextField(db_default="")),
        ("is_shadow", models.BooleanField(db_default=False)),
        ("fallback", models.TextField(db_default="")),
        ("retries", models.IntegerField(db_default=0)),
        ("engine_ms", models.IntegerField(db_default=0)),
    ],
    options={
        "db_table": "gateway_request",
        "indexes": [
            models.Index(fields=["version_id", "-at"], name="gateway_request_last_use"),
            models.Index(fields=["tenant", "at"], name="gateway_request_of_tenant"),
        ],
    },
)
_SHADOW = migrations.CreateModel(
    name="GatewayShadow",
    fields=[
        (
            "pk",
            models.CompositePrimaryKey(
                "at", "request_id", blank=True, editable=False, primary_key=True, serialize=False
            ),
        ),
        ("at", models.DateTimeField()),
        ("request_id", models.TextField()),
        ("tenant", models.TextField()),
        ("alias", models.TextField()),
        ("stable_version_id", models.UUIDField()),
        ("candidate_version_id", models.UUIDField()),
        ("agreement", models.FloatField(null=True)),
        ("stable_tokens", models.IntegerField(null=True)),
        ("candidate_tokens", models.IntegerField(null=True)),
        ("stable_ms", models.IntegerField()),
        ("candidate_ms", models.IntegerField()),
        ("error_kind", models.TextField()),
    ],
    options={
        "db_table": "gateway_shadow",
        "indexes": [models.Index(fields=["candidate_version_id", "-at"], name="gateway_shadow_of_candidate")],
    },
)


class Migration(migrations.Migration):
    dependencies = [("cachecontrol", "0006_metrics")]

    # A table is partitioned from its beginning on, so that it's made anew.
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL((SQL / "requests.sql").read_text(), reverse_sql=migrations.RunSQL.noop)
            ],
            state_operations=[migrations.DeleteModel(name="GatewayRequest"), _REQUEST, _SHADOW],
        )
    ]
