"""Rights of the application's role on the tables that sign-in needs."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    initial = True
    dependencies = [
        ("registry", "0014_webhooks"),
        ("sessions", "0001_initial"),
        ("account", "0009_emailaddress_unique_primary_email"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("socialaccount", "0006_alter_socialaccount_extra_data"),
        ("usersessions", "0001_initial"),
    ]

    operations = [
        migrations.RunSQL((SQL / "sign_in_grants.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
