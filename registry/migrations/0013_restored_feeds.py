"""A feed of changes that came with another database's dump is put right by the sweep."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("registry", "0012_routing_changes")]

    operations = [
        migrations.RunSQL((SQL / "routing_forget.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
