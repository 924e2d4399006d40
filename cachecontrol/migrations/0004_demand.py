"""Heat, the load queue, leases, and the record of evictions."""

from pathlib import Path
from typing import Any

import django.db.models.deletion
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"
_STATES = ["queued", "placed", "done", "refused", "expired"]
_OPEN = ("queued", "placed")
_REASONS = ["room", "quota", "ttl", "idle", "drain", "pressure", "withdrawn", "manual", "plan"]


def _reference(to: str, **options: Any) -> models.ForeignKey:  # noqa: ANN401  Django's options
    return models.ForeignKey(to=to, on_delete=django.db.models.deletion.PROTECT, **options)


def _one_to_one(to: str, related_name: str) -> models.OneToOneField:
    return models.OneToOneField(
        to=to,
        on_delete=django.db.models.deletion.PROTECT,
        primary_key=True,
        related_name=related_name,
        serialize=False,
    )


def _id() -> models.BigAutoField:
    return models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    dependencies = [("cachecontrol", "0003_tiers"), ("registry", "0002_rules_in_the_database")]

    operations = [
        migrations.CreateModel(
            name="VersionHeat",
            fields=[
                ("version", _one_to_one("registry.version", "heat")),
                ("rate", models.FloatField(default=0)),
                ("as_of", models.DateTimeField()),
                ("hits", models.BigIntegerField(default=0)),
                ("last_used_at", models.DateTimeField(null=True)),
                ("predicted_per_h", models.FloatField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="TenantHeat",
            fields=[
                ("tenant", _one_to_one("registry.tenant", "heat")),
                ("rate", models.FloatField(default=0)),
                ("as_of", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="HeatCursor",
            fields=[("id", _id()), ("counted_below", models.BigIntegerField(default=0))],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="heat_cursor_is_one_row"),
                ]
            },
        ),
        migrations.CreateModel(
            name="Lease",
            fields=[
                ("name", models.CharField(max_length=120, primary_key=True, serialize=False)),
                ("held_until", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="LoadFailure",
            fields=[
                ("version", _one_to_one("registry.version", "load_failure")),
                ("failures", models.PositiveIntegerField(default=1)),
                ("last_at", models.DateTimeField()),
                ("message", models.CharField(blank=True, default="", max_length=500)),
            ],
        ),
        migrations.CreateModel(
            name="LoadRequest",
            fields=[
                ("id", _id()),
                ("pool", models.CharField(max_length=64)),
                ("version", _reference("registry.version", related_name="load_requests")),
                ("tenant", _reference("registry.tenant", related_name="load_requests")),
                ("sla", models.CharField(max_length=63)),
                ("state", models.CharField(default="queued", max_length=8)),
                ("waiting", models.PositiveIntegerField(default=0)),
                ("enqueued_at", models.DateTimeField()),
                ("deadline_at", models.DateTimeField()),
                ("placed_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("node", _reference("cachecontrol.node", null=True, related_name="load_requests")),
                ("tier", models.CharField(default="remote", max_length=8)),
                ("message", models.CharField(blank=True, default="", max_length=500)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", _OPEN)), fields=("version",), name="load_request_open_once"
                    ),
                    models.CheckConstraint(condition=models.Q(("state__in", _STATES)), name="load_request_state_known"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at__isnull", True), ("state__in", _OPEN)),
                            models.Q(
                                models.Q(("state__in", _OPEN), _negated=True),
                                ("ended_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="load_request_ends_once",
                    ),
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "queued")), fields=["pool", "enqueued_at"], name="load_queue"
                    ),
                    models.Index(fields=["pool", "placed_at"], name="load_served"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Eviction",
            fields=[
                ("id", _id()),
                ("node", _reference("cachecontrol.node", related_name="evictions")),
                ("version", _reference("registry.version", related_name="evictions")),
                ("tier", models.CharField(max_length=8)),
                ("to_tier", models.CharField(max_length=8)),
                ("reason", models.CharField(max_length=12)),
                ("policy", models.CharField(blank=True, default="", max_length=20)),
                ("policy_number", models.PositiveIntegerField(null=True)),
                ("score", models.FloatField(null=True)),
                ("factors", models.JSONField(default=dict)),
                ("runner_up", _reference("registry.version", null=True, related_name="+")),
                ("runner_up_score", models.FloatField(null=True)),
                ("asked_by", models.CharField(blank=True, default="", max_length=63)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("tier__in", ("gpu", "cpu", "disk")), ("to_tier__in", ("cpu", "disk", "remote"))
                        ),
                        name="eviction_tiers_known",
                    ),
                    models.CheckConstraint(condition=models.Q(("reason__in", _REASONS)), name="eviction_reason_known"),
                ],
                "indexes": [
                    models.Index(fields=["version", "-at"], name="eviction_of_version"),
                    models.Index(fields=["node", "-at"], name="eviction_on_node"),
                ],
            },
        ),
        migrations.RunSQL((SQL / "demand.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
