"""Tokens for whoever collects metrics, good for nothing else."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("registry", "0010_idempotency")]

    operations = [
        migrations.RemoveConstraint(model_name="apitoken", name="token_kind_known"),
        migrations.AddConstraint(
            model_name="apitoken",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["person", "application", "gateway", "node", "monitor"])),
                name="token_kind_known",
            ),
        ),
    ]
