"""The default of an adapter is split between its own versions alone."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("releases", "0007_step_courses")]

    operations = [
        migrations.RunSQL((SQL / "default_splits.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
