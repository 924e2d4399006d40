"""Tiers and the life of a node: what may be wanted on disk alone, where a version is, restarts, drift."""

from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql" / "tiers.sql"


class Migration(migrations.Migration):
    dependencies = [("cachecontrol", "0002_rules_in_the_database"), ("registry", "0010_idempotency")]

    operations = [
        migrations.RemoveConstraint(
            model_name="node",
            name="node_engine_kind_known",
        ),
        migrations.RemoveConstraint(
            model_name="residency",
            name="residency_desired_known",
        ),
        migrations.AddField(
            model_name="node",
            name="cordoned",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="node",
            name="disk_free_bytes",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="node",
            name="disk_used_bytes",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="node",
            name="draining",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="node",
            name="drift",
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name="node",
            name="full_report_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="node",
            name="memory_bytes",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="node",
            name="mismatches",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="node",
            name="poisoned",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="node",
            name="recycle_after",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="node",
            name="recycles",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="node",
            name="recycling_boot_id",
            field=models.CharField(blank=True, default="", max_length=100),
        ),
        migrations.AddField(
            model_name="node",
            name="recycling_since",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="node",
            name="restartable",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="node",
            name="score_clock",
            field=models.FloatField(default=0.0),
        ),
        migrations.AddField(
            model_name="node",
            name="stuck",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="residency",
            name="fetch_ms",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="residency",
            name="fetched_bytes",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="residency",
            name="is_hot",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="residency",
            name="last_used_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="residency",
            name="score_clock",
            field=models.FloatField(default=0.0),
        ),
        migrations.AddField(
            model_name="residency",
            name="tier",
            field=models.CharField(blank=True, default="", max_length=4),
        ),
        migrations.AddField(
            model_name="residency",
            name="tier_is_estimate",
            field=models.BooleanField(default=False),
        ),
        migrations.AddConstraint(
            model_name="node",
            constraint=models.CheckConstraint(
                condition=models.Q(("engine_kind__in", ["vllm", "tgi", "sglang", "lorax"])),
                name="node_engine_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="node",
            constraint=models.CheckConstraint(
                condition=models.Q(("memory_bytes__isnull", True), ("memory_bytes__gt", 0), _connector="OR"),
                name="node_has_memory",
            ),
        ),
        migrations.AddConstraint(
            model_name="residency",
            constraint=models.CheckConstraint(
                condition=models.Q(("desired__in", ["gpu", "disk", "absent"])), name="residency_desired_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="residency",
            constraint=models.CheckConstraint(
                condition=models.Q(("tier__in", ["", "gpu", "cpu", "disk"])), name="residency_tier_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="residency",
            constraint=models.CheckConstraint(
                condition=models.Q(("is_hot", False), ("desired", "gpu"), _connector="OR"),
                name="residency_hot_is_wanted",
            ),
        ),
        migrations.RunSQL(SQL.read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
