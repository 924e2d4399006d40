from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("registry", "0002_rules_in_the_database")]

    operations = [
        migrations.AddField(
            model_name="version",
            name="validation_sent_at",
            field=models.DateTimeField(null=True),
        ),
    ]
