"""Why a load failed in the agent's own word, when a node's newest report was sent, and since when its engine is sick."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("cachecontrol", "0009_serving_rules")]

    operations = [
        migrations.AddField(
            "residency", "error_code", models.CharField(max_length=40, blank=True, default="", db_default="")
        ),
        migrations.AddField("node", "reported_at", models.DateTimeField(null=True)),
        migrations.AddField("node", "engine_sick_since", models.DateTimeField(null=True)),
    ]
