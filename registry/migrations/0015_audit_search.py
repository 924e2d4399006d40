"""Finding audit records by what they say, and checks of the chains that people ask for."""

from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql" / "audit_search.sql"


class Migration(migrations.Migration):
    dependencies = [("registry", "0014_webhooks")]

    operations = [
        migrations.CreateModel(
            name="AuditCheck",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("chain", models.CharField(max_length=63)),
                ("asked_by", models.CharField(max_length=254)),
                ("until", models.BigIntegerField()),
                ("reached", models.BigIntegerField(default=0)),
                ("hash", models.CharField(max_length=64)),
                ("signed_to", models.BigIntegerField(default=0)),
                ("started_at", models.DateTimeField(auto_now_add=True)),
                ("moved_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("finding", models.CharField(blank=True, default="", max_length=20)),
                ("broken_at", models.BigIntegerField(null=True)),
            ],
            options={
                "indexes": [models.Index(fields=["chain", "-id"], name="audit_check_newest")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)), fields=("chain",), name="audit_check_one_at_a_time"
                    )
                ],
            },
        ),
        migrations.AddIndex("auditrecord", models.Index(fields=["chain", "at"], name="audit_by_time")),
        migrations.RunSQL(SQL.read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
