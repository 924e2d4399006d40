"""How an act came in, signed checkpoints of the audit chains, and notices that bound what the log is told."""

from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql" / "audit_checkpoints.sql"


class Migration(migrations.Migration):
    dependencies = [("registry", "0008_approval_policies")]

    operations = [
        migrations.AddField("auditrecord", "how", models.CharField(db_default="", default="", max_length=20)),
        migrations.CreateModel(
            name="AuditCheckpoint",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("chain", models.CharField(max_length=63)),
                ("seq", models.BigIntegerField()),
                ("head", models.CharField(max_length=64)),
                ("object_key", models.CharField(max_length=200, unique=True)),
                ("sha256", models.CharField(max_length=64)),
                ("key_id", models.CharField(max_length=64)),
                ("locked_until", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={"indexes": [models.Index(fields=["chain", "-id"], name="audit_checkpoint_newest")]},
        ),
        migrations.CreateModel(
            name="AuditNotice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("chain", models.CharField(max_length=63)),
                ("key", models.CharField(max_length=64)),
                ("facts", models.JSONField()),
                ("count", models.BigIntegerField(default=1)),
                ("told", models.BigIntegerField(default=0)),
                ("began_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["ends_at"], name="audit_notice_by_end")],
                "constraints": [models.UniqueConstraint(fields=("chain", "key"), name="audit_notice_once")],
            },
        ),
        migrations.RunSQL(SQL.read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
