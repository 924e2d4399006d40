from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("registry", "0003_version_validation_sent_at")]

    operations = [
        migrations.CreateModel(
            name="UploadInParts",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("store_id", models.TextField()),
                ("part_bytes", models.BigIntegerField()),
                ("digests", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "artifact",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="uploads_in_parts",
                        to="registry.artifact",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="uploads_in_parts",
                        to="registry.version",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("version", "artifact"), name="upload_in_parts_once"),
                    models.CheckConstraint(
                        condition=models.Q(("part_bytes__gt", 0)), name="upload_in_parts_of_some_size"
                    ),
                ],
            },
        ),
        migrations.RunSQL((SQL / "uploads.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
