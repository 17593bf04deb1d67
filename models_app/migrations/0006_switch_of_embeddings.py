"""Which vectors answer while others are made; what a run of vectorising has done, and spent."""

from hashlib import sha256
from urllib.parse import urlsplit

import django.core.validators
from django.conf import settings
from django.db import migrations, models

LOCAL = "multilingual-e5-small"
LONGEST_NAME = 100


def name_spaces_by_provider(apps, schema_editor):
    """Give each model's vectors the name that says of which provider they are: until now the model's name alone."""
    for model in apps.get_model("models_app", "MLModel").objects.using(schema_editor.connection.alias):
        own = bool(model.embedding_model and model.provider_base_url)
        asked = model.embedding_model if own or model.embedding_model == LOCAL else settings.SITEWISE_EMBEDDING_MODEL
        url = model.provider_base_url if own else settings.SITEWISE_EMBEDDING_URL
        if not url or asked == LOCAL:
            asked, name = LOCAL, LOCAL
        else:
            name = space_name(asked, url)
        if not rename(schema_editor, model.pk, asked, name):
            asked, name = LOCAL, LOCAL
            if not rename(schema_editor, model.pk, asked, name):
                continue
        model.answering_space, model.answering_model = name, asked
        model.save(update_fields=["answering_space", "answering_model"])


def rename(schema_editor, model_id, old, new):
    """Return whether the model has vectors that bore the old name; they bear the new one now."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("UPDATE ret_space SET name = %s WHERE model_id = %s AND name = %s", [new, model_id, old])
        cursor.execute(
            "UPDATE models_app_trainingsnippet SET embedded_in = %s WHERE model_id = %s AND embedded_in = %s",
            [new, model_id, old],
        )
        return cursor.rowcount > 0


def space_name(asked, url):
    parts = urlsplit(url)
    name = f"{asked} at {parts.netloc.rpartition('@')[2].lower()}{parts.path.rstrip('/')}"
    return name if len(name) <= LONGEST_NAME else f"{asked[:60]} at {sha256(name.encode()).hexdigest()[:16]}"


def name_spaces_by_model(apps, schema_editor):
    for model in apps.get_model("models_app", "MLModel").objects.using(schema_editor.connection.alias):
        if model.answering_space:
            rename(schema_editor, model.pk, model.answering_space, model.answering_model)


class Migration(migrations.Migration):
    dependencies = [("models_app", "0005_calibration")]

    operations = [
        migrations.AddField("mlmodel", "answering_space", models.CharField(blank=True, editable=False, max_length=100)),
        migrations.AddField("mlmodel", "answering_model", models.CharField(blank=True, editable=False, max_length=100)),
        migrations.AddField(
            "mlmodel", "answering_base_url", models.CharField(blank=True, editable=False, max_length=300)
        ),
        migrations.AddField("mlmodel", "answering_key_encrypted", models.TextField(blank=True, editable=False)),
        migrations.AddField(
            "mlmodel",
            "embedding_price",
            models.DecimalField(
                blank=True,
                decimal_places=4,
                max_digits=10,
                null=True,
                validators=[django.core.validators.MinValueValidator(0)],
            ),
        ),
        migrations.AddField(
            "vectorising",
            "space",
            models.CharField(blank=True, help_text="The embedding space of the vectors it makes.", max_length=100),
        ),
        migrations.AddField(
            "vectorising",
            "made_count",
            models.PositiveIntegerField(default=0, help_text="Snippets that it gave their vectors."),
        ),
        migrations.AddField(
            "vectorising",
            "token_count",
            models.PositiveBigIntegerField(default=0, help_text="What it sent to the embedding service."),
        ),
        migrations.AddField(
            "vectorising",
            "worked_seconds",
            models.FloatField(default=0, help_text="Without what passed while nobody worked on it."),
        ),
        migrations.RunPython(name_spaces_by_provider, name_spaces_by_model),
    ]
