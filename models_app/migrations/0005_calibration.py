"""What a cosine is worth in each embedding space of a model, as its own snippets tell."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("models_app", "0004_dropped_sections")]

    operations = [
        # JSON, made when vectors are; empty: not yet.
        migrations.RunSQL(
            "ALTER TABLE ret_space ADD COLUMN calibration TEXT NOT NULL DEFAULT ''",
            "ALTER TABLE ret_space DROP COLUMN calibration",
        ),
    ]
