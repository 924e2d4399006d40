"""Evaluation sets and gates of tenants, the reference that nodes probe against, and re-runs of the checks."""

from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("registry", "0004_upload_parts")]

    operations = [
        migrations.AddField(
            model_name="validationreport",
            name="reference",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="version",
            name="evaluation_attempts",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.CreateModel(
            name="EvaluationGates",
            fields=[
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="evaluation_gates",
                        serialize=False,
                        to="registry.tenant",
                    ),
                ),
                ("gates", models.JSONField()),
                ("changed_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="EvaluationSet",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=63)),
                ("examples", models.JSONField()),
                ("digest", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("changed_at", models.DateTimeField()),
                (
                    "adapter",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="evaluation_sets",
                        to="registry.adapter",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="evaluation_sets",
                        to="registry.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "name"), name="evaluation_set_name_once"),
                    models.UniqueConstraint(
                        fields=("tenant", "adapter"), name="evaluation_set_once_for_each", nulls_distinct=False
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Revalidation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("requested_by", models.CharField(max_length=254)),
                ("reason", models.TextField(blank=True, default="")),
                ("requested_at", models.DateTimeField(auto_now_add=True)),
                ("sent_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "report",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="registry.validationreport",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="revalidations",
                        to="registry.version",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("finished_at__isnull", True)), fields=["sent_at"], name="revalidation_open"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("finished_at__isnull", True)),
                        fields=("version",),
                        name="revalidation_open_once",
                    )
                ],
            },
        ),
        migrations.RunSQL((SQL / "evaluation.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
