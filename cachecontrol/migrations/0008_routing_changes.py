"""What nodes and residencies add to the feed of changes from which gateways keep in step."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("cachecontrol", "0007_request_records"),
        ("registry", "0012_routing_changes"),
        ("releases", "0004_alias_splits"),
    ]

    operations = [
        migrations.RunSQL((SQL / "routing_changes.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
