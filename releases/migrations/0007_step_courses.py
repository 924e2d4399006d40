"""What was judged of a step, as points over time, and lists of releases by their newest."""

from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("releases", "0006_alias_intervals")]

    operations = [
        migrations.AddField(model_name="releasestep", name="course", field=models.JSONField(null=True)),
        migrations.AddIndex(
            model_name="release",
            index=models.Index(fields=["-made_at", "-id"], name="release_newest_first"),
        ),
        migrations.RunSQL((SQL / "step_courses.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
