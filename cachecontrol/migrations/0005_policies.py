"""Cache policies: proposed, approved by somebody else, in force one at a time for each base model."""

from pathlib import Path
from typing import Any

import django.db.models.deletion
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


def _reference(to: str, related_name: str, **options: Any) -> models.ForeignKey:  # noqa: ANN401  Django's options
    return models.ForeignKey(to=to, on_delete=django.db.models.deletion.PROTECT, related_name=related_name, **options)


class Migration(migrations.Migration):
    dependencies = [("cachecontrol", "0004_demand"), ("registry", "0002_rules_in_the_database")]

    operations = [
        migrations.CreateModel(
            name="CachePolicy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("state", models.CharField(default="proposed", max_length=10)),
                ("text", models.TextField()),
                ("document", models.JSONField()),
                ("digest", models.CharField(max_length=64)),
                ("comment", models.TextField(blank=True, default="")),
                ("proposed_at", models.DateTimeField()),
                ("decided_at", models.DateTimeField(null=True)),
                ("reason", models.TextField(blank=True, default="")),
                ("activated_at", models.DateTimeField(null=True)),
                ("base_model", _reference("registry.basemodel", "cache_policies")),
                ("decided_by", _reference("registry.person", "decided_cache_policies", null=True)),
                ("proposed_by", _reference("registry.person", "proposed_cache_policies")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("base_model", "number"), name="cache_policy_number_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "active")), fields=("base_model",), name="cache_policy_one_active"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["proposed", "active", "superseded", "declined"])),
                        name="cache_policy_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("decided_at__isnull", True), ("decided_by__isnull", True), ("state", "proposed")),
                            models.Q(
                                models.Q(("state", "proposed"), _negated=True),
                                ("decided_at__isnull", False),
                                ("decided_by__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="cache_policy_decided_by_somebody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state", "declined"),
                            ("decided_by__isnull", True),
                            models.Q(("decided_by", models.F("proposed_by")), _negated=True),
                            _connector="OR",
                        ),
                        name="cache_policy_four_eyes",
                    ),
                ],
            },
        ),
        migrations.RunSQL((SQL / "policies.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
