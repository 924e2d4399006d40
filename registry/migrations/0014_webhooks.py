"""Webhooks: receivers, how far each was told of which chain, and what was sent to them."""

import uuid
from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql" / "webhooks.sql"


class Migration(migrations.Migration):
    dependencies = [("registry", "0013_restored_feeds")]

    operations = [
        migrations.CreateModel(
            name="WebhookEndpoint",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=63)),
                ("url", models.TextField()),
                (
                    "kinds",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=60), size=None),
                ),
                ("secret", models.BinaryField()),
                ("previous_secret", models.BinaryField(null=True)),
                ("previous_until", models.DateTimeField(null=True)),
                ("failing_since", models.DateTimeField(null=True)),
                ("disabled_at", models.DateTimeField(null=True)),
                ("disabled_reason", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="webhooks",
                        to="registry.tenant",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("event_id", models.CharField(max_length=100)),
                ("kind", models.CharField(max_length=60)),
                ("object_key", models.CharField(blank=True, default="", max_length=200)),
                ("body", models.TextField()),
                ("state", models.CharField(default="pending", max_length=10)),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("created_at", models.DateTimeField()),
                ("next_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "again_of",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="again",
                        to="registry.webhookdelivery",
                    ),
                ),
                (
                    "endpoint",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="registry.webhookendpoint",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="WebhookCursor",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("chain", models.CharField(max_length=63)),
                ("seq", models.BigIntegerField()),
                (
                    "endpoint",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="cursors",
                        to="registry.webhookendpoint",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="WebhookAttempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveSmallIntegerField()),
                ("at", models.DateTimeField()),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("took_ms", models.PositiveIntegerField()),
                ("excerpt", models.TextField(blank=True, default="")),
                ("error", models.TextField(blank=True, default="")),
                (
                    "delivery",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attempts",
                        to="registry.webhookdelivery",
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
                "constraints": [models.UniqueConstraint(fields=("delivery", "number"), name="webhook_attempt_once")],
            },
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.UniqueConstraint(
                fields=("tenant", "name"), name="webhook_name_once", nulls_distinct=False
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(("kinds", []), _negated=True), name="webhook_has_kinds"
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(
                condition=models.Q(("state", "pending")), fields=["next_at"], name="webhook_delivery_due"
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(
                condition=models.Q(("state", "pending")),
                fields=["endpoint", "object_key", "id"],
                name="webhook_delivery_order",
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(fields=["endpoint", "-id"], name="webhook_delivery_newest"),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(fields=["ended_at"], name="webhook_delivery_by_end"),
        ),
        migrations.AddConstraint(
            model_name="webhookdelivery",
            constraint=models.UniqueConstraint(
                condition=models.Q(("object_key", ""), _negated=True),
                fields=("endpoint", "event_id"),
                name="webhook_event_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookdelivery",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["pending", "delivered", "parked"])),
                name="webhook_delivery_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookcursor",
            constraint=models.UniqueConstraint(fields=("endpoint", "chain"), name="webhook_cursor_once"),
        ),
        migrations.RunSQL(SQL.read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
