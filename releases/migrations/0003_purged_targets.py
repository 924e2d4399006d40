"""An alias does not point to a version whose files retention has removed."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("releases", "0002_rules_in_the_database"),
        ("registry", "0003_version_validation_sent_at"),
    ]

    operations = [
        migrations.RunSQL((SQL / "purged_targets.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
