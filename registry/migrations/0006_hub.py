"""What is pushed over the hub-compatible API before a version is cut of it."""

import uuid
from pathlib import Path

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql" / "hub.sql"


class Migration(migrations.Migration):
    dependencies = [("registry", "0005_evaluation")]

    operations = [
        migrations.CreateModel(
            name="HubDraft",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("adapter_name", models.CharField(max_length=63)),
                ("branch", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("changed_at", models.DateTimeField()),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="hub_drafts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="hub_drafts", to="registry.tenant"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="HubCommit",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("parent", models.CharField(blank=True, default="", max_length=40)),
                ("title", models.TextField(blank=True, default="")),
                ("description", models.TextField(blank=True, default="")),
                ("tree_digest", models.CharField(blank=True, default="", max_length=64)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("sealed_at", models.DateTimeField(null=True)),
                (
                    "draft",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="commits", to="registry.hubdraft"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="HubFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("path", models.CharField(max_length=255)),
                (
                    "artifact",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="hub_files", to="registry.artifact"
                    ),
                ),
                (
                    "commit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="files", to="registry.hubcommit"
                    ),
                ),
            ],
            options={"ordering": ["path"]},
        ),
        migrations.AddField(
            model_name="hubdraft",
            name="head",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="registry.hubcommit"
            ),
        ),
        migrations.AddConstraint(
            model_name="hubdraft",
            constraint=models.UniqueConstraint(
                fields=("tenant", "adapter_name", "branch", "owner"), name="hub_draft_once"
            ),
        ),
        migrations.AddIndex(model_name="hubdraft", index=models.Index(fields=["changed_at"], name="hub_draft_since")),
        migrations.AddConstraint(
            model_name="hubcommit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("sealed_at__isnull", True), models.Q(("tree_digest", ""), _negated=True), _connector="OR"
                ),
                name="hub_commit_sealed_whole",
            ),
        ),
        migrations.AddIndex(model_name="hubcommit", index=models.Index(fields=["created_at"], name="hub_commit_since")),
        migrations.AddConstraint(
            model_name="hubfile",
            constraint=models.UniqueConstraint(fields=("commit", "path"), name="hub_path_once"),
        ),
        migrations.RunSQL(SQL.read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
