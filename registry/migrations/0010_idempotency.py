from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("registry", "0009_audit_checkpoints")]

    operations = [
        migrations.CreateModel(
            name="IdempotentAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("owner", models.CharField(max_length=16)),
                ("key", models.CharField(max_length=255)),
                ("fingerprint", models.CharField(max_length=64)),
                ("sealed", models.BinaryField()),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["created_at"], name="idempotency_by_age")],
                "constraints": [models.UniqueConstraint(fields=("owner", "key"), name="idempotency_key_once")],
            },
        ),
        migrations.RunSQL((SQL / "idempotency_grants.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
