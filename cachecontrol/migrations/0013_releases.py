"""What the judge of releases counts, and versions that leave their nodes because they were rolled back."""

from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"
REASONS = ["room", "quota", "ttl", "idle", "drain", "pressure", "withdrawn", "manual", "plan", "rollback"]


class Migration(migrations.Migration):
    dependencies = [("cachecontrol", "0012_feedback"), ("releases", "0005_releases")]

    operations = [
        migrations.RemoveConstraint(model_name="eviction", name="eviction_reason_known"),
        migrations.AddConstraint(
            model_name="eviction",
            constraint=models.CheckConstraint(condition=models.Q(reason__in=REASONS), name="eviction_reason_known"),
        ),
        migrations.RunSQL((SQL / "windows.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
