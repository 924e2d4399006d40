"""What aliases stood for when, defaults of adapters, protected and shared aliases."""

from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


def _run(name: str) -> migrations.RunSQL:
    return migrations.RunSQL((SQL / name).read_text(), reverse_sql=migrations.RunSQL.noop)


class Migration(migrations.Migration):
    dependencies = [("releases", "0005_releases")]

    operations = [
        # Made anew below, with the longer names in it.
        migrations.RunSQL("DROP VIEW routing_aliases", reverse_sql=migrations.RunSQL.noop),
        migrations.AlterField(model_name="alias", name="name", field=models.CharField(max_length=71)),
        migrations.CreateModel(
            name="AliasInterval",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("valid_from", models.DateTimeField()),
                ("valid_to", models.DateTimeField(null=True)),
                ("basis_points", models.PositiveIntegerField(default=0)),
                ("salt", models.CharField(blank=True, default="", max_length=64)),
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
                (
                    "alias",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="intervals", to="releases.alias"
                    ),
                ),
                (
                    "candidate",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="registry.version"
                    ),
                ),
                (
                    "release",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="releases.release"
                    ),
                ),
                (
                    "revision",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="intervals",
                        to="releases.aliasrevision",
                    ),
                ),
                (
                    "shadow",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="registry.version"
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="registry.version"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("alias", "valid_from"), name="alias_interval_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("valid_to__isnull", True)),
                        fields=("alias",),
                        name="alias_interval_one_open",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("valid_to__isnull", True), ("valid_to__gt", models.F("valid_from")), _connector="OR"
                        ),
                        name="alias_interval_lasts",
                    ),
                ],
            },
        ),
        _run("intervals.sql"),
        _run("default_aliases.sql"),
        _run("protection.sql"),
        _run("sharing.sql"),
        _run("intervals_from_before.sql"),
        _run("defaults_from_before.sql"),
    ]
