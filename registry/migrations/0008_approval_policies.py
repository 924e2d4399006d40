"""Approval policies, approvals that a change voids, comments, retention, and lineage that can be searched."""

from pathlib import Path

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

import registry.models.policies

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("registry", "0007_keys")]

    operations = [
        migrations.RemoveConstraint(model_name="approval", name="approval_once_per_reviewer"),
        migrations.AddField(
            model_name="approval",
            name="base_digest",
            field=models.CharField(default="", max_length=64),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="approval",
            name="break_glass",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AlterField(
            model_name="approval",
            name="created_at",
            field=models.DateTimeField(default=django.utils.timezone.now),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("break_glass", False),
                    models.Q(("decision", "approved"), models.Q(("comment", ""), _negated=True)),
                    _connector="OR",
                ),
                name="approval_break_glass_has_a_reason",
            ),
        ),
        migrations.AddIndex(
            model_name="version",
            index=django.contrib.postgres.indexes.GinIndex(
                fields=["lineage"], name="version_lineage", opclasses=["jsonb_path_ops"]
            ),
        ),
        migrations.CreateModel(
            name="ApprovalPolicy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("required", models.PositiveSmallIntegerField(default=1)),
                (
                    "roles",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=20),
                        default=registry.models.policies.reviewers_alone,
                        size=None,
                    ),
                ),
                (
                    "only_people",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.EmailField(max_length=254), blank=True, default=list, size=None
                    ),
                ),
                (
                    "required_people",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.EmailField(max_length=254), blank=True, default=list, size=None
                    ),
                ),
                ("validity_days", models.PositiveSmallIntegerField(null=True)),
                ("updated_at", models.DateTimeField(null=True)),
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="approval_policy",
                        to="registry.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("required__gte", 1)), name="approval_policy_needs_somebody"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("roles", []), _negated=True), name="approval_policy_has_roles"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("validity_days__isnull", True), ("validity_days__gte", 1), _connector="OR"),
                        name="approval_policy_validity_positive",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RetentionPolicy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("keep_days", models.PositiveSmallIntegerField()),
                ("automatic", models.BooleanField(default=False)),
                ("applied_at", models.DateTimeField(null=True)),
                ("swept_at", models.DateTimeField(null=True)),
                ("updated_at", models.DateTimeField(null=True)),
                (
                    "adapter",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="retention_policy",
                        to="registry.adapter",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("keep_days__gte", 1)), name="retention_keeps_a_day"),
                    models.CheckConstraint(
                        condition=models.Q(("automatic", False), ("applied_at__isnull", False), _connector="OR"),
                        name="retention_automatic_after_a_first_time",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="VersionComment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text", models.TextField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="comments", to="registry.person"
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="comments", to="registry.version"
                    ),
                ),
            ],
            options={
                "ordering": ["created_at", "id"],
            },
        ),
        migrations.RunSQL((SQL / "approvals.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
