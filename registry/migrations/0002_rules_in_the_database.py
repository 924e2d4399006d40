"""Rules that no bug above may break: immutability, allowed moves, the audit chain, and least privilege."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


def _run(name: str) -> migrations.RunSQL:
    return migrations.RunSQL((SQL / name).read_text(), reverse_sql=migrations.RunSQL.noop)


class Migration(migrations.Migration):
    dependencies = [("registry", "0001_initial"), ("contenttypes", "0002_remove_content_type_name")]

    operations = [_run("audit.sql"), _run("invariants.sql"), _run("routing.sql"), _run("grants.sql")]
