"""The feed of changes from which gateways keep in step, and what of it comes from versions and tokens."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("registry", "0011_monitor_tokens")]

    operations = [
        migrations.RunSQL((SQL / "routing_changes.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
