"""Splits of an alias's requests between its version, a candidate and a shadow."""

from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0012_routing_changes"),
        ("releases", "0003_purged_targets"),
    ]

    operations = [
        migrations.CreateModel(
            name="AliasSplit",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("basis_points", models.PositiveIntegerField(default=0)),
                ("salt", models.CharField(max_length=64)),
                (
                    "allow",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=63), default=list, size=None
                    ),
                ),
                (
                    "deny",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=63), default=list, size=None
                    ),
                ),
                ("shadow_basis_points", models.PositiveIntegerField(default=0)),
                ("changed_at", models.DateTimeField()),
                (
                    "alias",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="split", to="releases.alias"
                    ),
                ),
                (
                    "candidate",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="registry.version"
                    ),
                ),
                (
                    "shadow",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="registry.version"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("basis_points__lte", 10000), ("shadow_basis_points__lte", 10000)),
                        name="alias_split_shares",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("shadow__isnull", False), ("shadow_basis_points", 0), _connector="OR"),
                        name="alias_split_shadow_known",
                    ),
                ],
            },
        ),
        migrations.RunSQL((SQL / "splits.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
