"""Metrics read the newest request records, whatever version they are of."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("cachecontrol", "0005_policies")]

    operations = [
        migrations.AddIndex(
            model_name="gatewayrequest",
            index=models.Index(fields=["at"], name="gateway_request_recent"),
        ),
    ]
