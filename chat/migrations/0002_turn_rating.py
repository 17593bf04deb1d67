"""Gives each turn an id for clients, its visitor, and what the visitor thought of the answer."""

import uuid

from django.db import migrations, models


def name_earlier_turns(apps, schema_editor):
    turns = apps.get_model("chat", "Turn").objects.using(schema_editor.connection.alias)
    for turn in turns.filter(public_id=None).only("pk").order_by("pk").iterator(chunk_size=1000):
        turns.filter(pk=turn.pk).update(public_id=uuid.uuid4())


class Migration(migrations.Migration):
    dependencies = [("chat", "0001_initial")]

    operations = [
        migrations.AddField(
            "turn",
            "public_id",
            models.UUIDField(help_text="What clients know the answer by.", null=True),
        ),
        migrations.RunPython(name_earlier_turns, migrations.RunPython.noop),
        migrations.AlterField(
            "turn",
            "public_id",
            models.UUIDField(default=uuid.uuid4, help_text="What clients know the answer by.", unique=True),
        ),
        migrations.AddField(
            "turn",
            "rating",
            models.SmallIntegerField(choices=[(-1, "Thumb down"), (0, "Not rated"), (1, "Thumb up")], default=0),
        ),
        migrations.AddField("turn", "rating_reason", models.CharField(blank=True, max_length=300)),
        migrations.AddField(
            "turn",
            "visitor",
            models.CharField(blank=True, help_text="A hash of the visitor, salted anew each day.", max_length=64),
        ),
    ]
