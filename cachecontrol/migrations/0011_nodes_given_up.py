"""When a version went on to another node for want of room."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("cachecontrol", "0010_what_nodes_say")]

    operations = [
        migrations.AddField("residency", "given_up_at", models.DateTimeField(null=True)),
    ]
