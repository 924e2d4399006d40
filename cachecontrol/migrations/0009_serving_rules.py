"""What a tenant may ask of the gateway, and what the gateway reads of it and of cache policies."""

from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


def _none_or_positive(field: str, name: str) -> models.CheckConstraint:
    condition = models.Q((f"{field}__isnull", True), (f"{field}__gte", 1), _connector="OR")
    return models.CheckConstraint(condition=condition, name=name)


class Migration(migrations.Migration):
    dependencies = [("cachecontrol", "0008_routing_changes"), ("registry", "0012_routing_changes")]

    operations = [
        migrations.CreateModel(
            name="TenantRules",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("requests_per_minute", models.PositiveIntegerField(null=True)),
                ("tokens_per_minute", models.PositiveIntegerField(null=True)),
                ("concurrent_requests", models.PositiveIntegerField(null=True)),
                ("gpu_ms_per_minute", models.PositiveIntegerField(null=True)),
                (
                    "base_models",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=63), blank=True, default=list, size=None
                    ),
                ),
                ("allows_shadow", models.BooleanField(default=True)),
                ("updated_at", models.DateTimeField(null=True)),
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="serving_rules",
                        to="registry.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    _none_or_positive("requests_per_minute", "tenant_rules_requests_positive"),
                    _none_or_positive("tokens_per_minute", "tenant_rules_tokens_positive"),
                    _none_or_positive("concurrent_requests", "tenant_rules_concurrent_positive"),
                    _none_or_positive("gpu_ms_per_minute", "tenant_rules_gpu_positive"),
                ],
            },
        ),
        migrations.RunSQL((SQL / "serving_rules.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
