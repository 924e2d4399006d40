"""What may be wanted on a node, what the gateway sees of nodes and residencies, and least privilege."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


def _run(name: str) -> migrations.RunSQL:
    return migrations.RunSQL((SQL / name).read_text(), reverse_sql=migrations.RunSQL.noop)


class Migration(migrations.Migration):
    dependencies = [("cachecontrol", "0001_initial"), ("registry", "0002_rules_in_the_database")]

    operations = [_run("invariants.sql"), _run("routing.sql"), _run("grants.sql")]
