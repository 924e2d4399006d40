"""Indexes for long lists: versions by age, by state, by how a name or a digest begins; audit records by their object."""

from django.db import migrations, models
from django.db.models.fields.json import KeyTextTransform

_BEGINS = ["varchar_pattern_ops"]


class Migration(migrations.Migration):
    dependencies = [("registry", "0015_audit_search")]

    operations = [
        migrations.AddIndex("adapter", models.Index(fields=["name"], name="adapter_name_begins", opclasses=_BEGINS)),
        migrations.AddIndex("version", models.Index(fields=["-created_at", "-id"], name="version_by_age")),
        migrations.AddIndex(
            "version", models.Index(fields=["state", "-created_at", "-id"], name="version_in_state_by_age")
        ),
        migrations.AddIndex("version", models.Index(fields=["name"], name="version_name_begins", opclasses=_BEGINS)),
        migrations.AddIndex(
            "version", models.Index(fields=["root_digest"], name="version_digest_begins", opclasses=_BEGINS)
        ),
        migrations.AddIndex(
            "auditrecord", models.Index(KeyTextTransform("id", "object"), "chain", "seq", name="audit_of_object")
        ),
    ]
