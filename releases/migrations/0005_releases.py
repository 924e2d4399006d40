"""Releases, their steps and approvals, templates, rollbacks, protection and sharing of aliases; and their rules."""

import uuid
from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0013_restored_feeds"),
        ("releases", "0004_alias_splits"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AliasProtection",
            fields=[
                (
                    "alias",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="protection",
                        serialize=False,
                        to="releases.alias",
                    ),
                ),
                (
                    "movers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=254), default=list, size=None
                    ),
                ),
                ("needs_release", models.BooleanField(default=True)),
                ("changed_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="ReleaseTemplate",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=63)),
                ("number", models.PositiveIntegerField()),
                ("text", models.TextField()),
                ("document", models.JSONField()),
                ("digest", models.CharField(max_length=64)),
                ("written_at", models.DateTimeField()),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="release_templates",
                        to="registry.tenant",
                    ),
                ),
                (
                    "written_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Release",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField()),
                ("stable_revision", models.PositiveIntegerField()),
                ("plan", models.JSONField()),
                ("digest", models.CharField(max_length=64)),
                ("reason", models.TextField(blank=True, default="")),
                ("state", models.CharField(default="pending", max_length=12)),
                ("step", models.PositiveIntegerField(default=0)),
                ("revision", models.PositiveIntegerField(default=1)),
                ("paused_state", models.CharField(blank=True, default="", max_length=12)),
                ("pause_kind", models.CharField(blank=True, default="", max_length=8)),
                ("sentence", models.TextField(blank=True, default="")),
                ("made_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("looked_at", models.DateTimeField(null=True)),
                (
                    "alias",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="releases", to="releases.alias"
                    ),
                ),
                (
                    "candidate",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="releases", to="registry.version"
                    ),
                ),
                (
                    "made_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="releases_made",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "stable",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="registry.version"
                    ),
                ),
                (
                    "template",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="releases.releasetemplate",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Rollback",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("revision", models.PositiveIntegerField()),
                ("asked_at", models.DateTimeField()),
                ("committed_at", models.DateTimeField()),
                ("last_answer_at", models.DateTimeField(null=True)),
                ("strays", models.PositiveIntegerField(default=0)),
                ("settled_at", models.DateTimeField(null=True)),
                (
                    "alias",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="rollbacks", to="releases.alias"
                    ),
                ),
                (
                    "left",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="registry.version"
                    ),
                ),
                (
                    "release",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rollbacks",
                        to="releases.release",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AliasGrant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=63)),
                ("granted_at", models.DateTimeField()),
                (
                    "alias",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="grants", to="releases.alias"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="registry.tenant"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("alias", "tenant"), name="alias_grant_once"),
                    models.UniqueConstraint(fields=("tenant", "name"), name="alias_grant_name_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReleaseApproval",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64)),
                ("comment", models.TextField(blank=True, default="")),
                ("at", models.DateTimeField()),
                (
                    "release",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="approvals", to="releases.release"
                    ),
                ),
                (
                    "reviewer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("release", "reviewer"), name="release_approval_once")],
            },
        ),
        migrations.CreateModel(
            name="ReleaseStep",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("index", models.PositiveIntegerField()),
                ("kind", models.CharField(max_length=8)),
                ("spec", models.JSONField()),
                ("state", models.CharField(default="waiting", max_length=8)),
                ("attempt", models.PositiveIntegerField(default=0)),
                ("started_at", models.DateTimeField(null=True)),
                ("resumed_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("sentence", models.TextField(blank=True, default="")),
                ("verdict", models.JSONField(null=True)),
                ("judged_at", models.DateTimeField(null=True)),
                (
                    "release",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="steps", to="releases.release"
                    ),
                ),
            ],
            options={
                "ordering": ["index"],
                "constraints": [
                    models.UniqueConstraint(fields=("release", "index"), name="release_step_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "running")), fields=("release",), name="release_step_one_runs"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["prewarm", "evaluate", "shadow", "canary", "promote"])),
                        name="release_step_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["waiting", "running", "passed", "skipped", "ended"])),
                        name="release_step_state_known",
                    ),
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="releasetemplate",
            constraint=models.UniqueConstraint(fields=("tenant", "name", "number"), name="release_template_once"),
        ),
        migrations.AddConstraint(
            model_name="release",
            constraint=models.UniqueConstraint(fields=("alias", "number"), name="release_number_once"),
        ),
        migrations.AddConstraint(
            model_name="release",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ["paused", "pending", "prewarming", "progressing", "shadowing"])),
                fields=("alias",),
                name="release_one_active",
            ),
        ),
        migrations.AddConstraint(
            model_name="release",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            "pending",
                            "prewarming",
                            "shadowing",
                            "progressing",
                            "paused",
                            "promoted",
                            "aborted",
                            "rolled_back",
                        ],
                    )
                ),
                name="release_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="release",
            constraint=models.CheckConstraint(
                condition=models.Q(("pause_kind__in", ["", "person", "gate", "held", "trouble"])),
                name="release_pause_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="release",
            constraint=models.CheckConstraint(
                condition=models.Q(("stable", models.F("candidate")), _negated=True), name="release_goes_somewhere"
            ),
        ),
        migrations.AddConstraint(
            model_name="rollback",
            constraint=models.UniqueConstraint(
                fields=("alias", "revision", "release"), name="rollback_once_per_revision", nulls_distinct=False
            ),
        ),
        migrations.RunSQL((SQL / "releases.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
