"""The marks that applications give to answers."""

from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"

_FEEDBACK = migrations.CreateModel(
    name="GatewayFeedback",
    fields=[
        (
            "pk",
            models.CompositePrimaryKey(
                "at", "tenant", "request_id", "name", blank=True, editable=False, primary_key=True, serialize=False
            ),
        ),
        ("at", models.DateTimeField()),
        ("tenant", models.TextField()),
        ("request_id", models.TextField()),
        ("name", models.TextField()),
        ("mark", models.FloatField()),
    ],
    options={"db_table": "gateway_feedback"},
)


class Migration(migrations.Migration):
    dependencies = [("cachecontrol", "0011_nodes_given_up")]

    # Partitioned from its beginning on.
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL((SQL / "feedback.sql").read_text(), reverse_sql=migrations.RunSQL.noop)
            ],
            state_operations=[_FEEDBACK],
        )
    ]
