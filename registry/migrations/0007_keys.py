"""Keys that rotate and can be revoked, and what pipelines sign with keys of their own."""

from pathlib import Path

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql" / "keys.sql"


class Migration(migrations.Migration):
    dependencies = [("registry", "0006_hub")]

    operations = [
        migrations.AddField("signingkey", "revoked_at", models.DateTimeField(null=True)),
        migrations.AddField("signingkey", "revoked_reason", models.TextField(blank=True, default="", db_default="")),
        migrations.AddField("signature", "resigned_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "tenant", "require_pipeline_signature", models.BooleanField(default=False, db_default=False)
        ),
        migrations.CreateModel(
            name="PipelineKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=100)),
                ("key_id", models.CharField(max_length=64)),
                ("public_pem", models.TextField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                ("revoked_reason", models.TextField(blank=True, default="")),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="pipeline_keys", to="registry.tenant"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("tenant", "key_id"), name="pipeline_key_once")],
            },
        ),
        migrations.CreateModel(
            name="PipelineSignature",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("bundle", models.TextField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "attached_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "key",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="signatures",
                        to="registry.pipelinekey",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="pipeline_signatures",
                        to="registry.version",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("version", "key"), name="pipeline_signature_once")],
            },
        ),
        migrations.RunSQL(SQL.read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
