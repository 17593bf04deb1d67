"""Sections of pages and files that the owner deleted: imports leave them out, until they say something else.

A section is recognised by its words, whatever the owner has since switched on or off for the model.
"""

from collections import Counter
from collections.abc import Iterable

from models_app.models import DroppedSection, MLModel, TrainingSnippet
from models_app.sections import Draft, hash_but_for_options, page_texts

Source = TrainingSnippet.Source


def note_dropped(rows: Iterable[TrainingSnippet]) -> None:
    """Note that the owner deletes these snippets, in the caller's transaction: an import must not bring them again."""
    said = [(row, page_texts(row)[-1]) for row in rows if row.source != Source.MANUAL]
    DroppedSection.objects.bulk_create(
        (
            DroppedSection(
                model_id=row.model_id, uri=row.uri, source_hash=hash_but_for_options(text), prompt=text.prompt
            )
            for row, text in said
        ),
        ignore_conflicts=True,
    )


def without_dropped(model: MLModel, uri: str, drafts: Iterable[Draft]) -> list:
    """Return the page's drafts without those that were dropped.

    What the page says more than once and was not dropped as often stays as often as it stands.
    """
    drafts = list(drafts)
    dropped = set(model.dropped_sections.filter(uri=uri).values_list("source_hash", flat=True))
    if not dropped:
        return drafts
    standing = model.snippets.filter(uri=uri).exclude(source=Source.MANUAL)
    left = Counter(hash_but_for_options(text) for row in standing for text in page_texts(row))
    kept = []
    for draft in drafts:
        text_hash = hash_but_for_options(draft)
        if text_hash not in dropped or left[text_hash] > 0:
            kept.append(draft)
        left[text_hash] -= 1
    return kept


def without_dropped_rows(model: MLModel, rows: Iterable[TrainingSnippet]) -> list[TrainingSnippet]:
    """Return those of the rows, each with an address of its own, that were not dropped there."""
    dropped = set(model.dropped_sections.values_list("uri", "source_hash"))
    return [row for row in rows if not dropped or (row.uri, hash_but_for_options(row)) not in dropped]


def has_dropped(model: MLModel, uri: str) -> bool:
    """Return whether some of the page's sections were dropped."""
    return model.dropped_sections.filter(uri=uri).exists()


def dropped_count(model: MLModel, uri: str) -> int:
    """Return how many sections of the page were dropped."""
    return model.dropped_sections.filter(uri=uri).count()


def move_dropped(model: MLModel, old_uri: str, new_uri: str) -> None:
    """Note of a page that has moved what the owner deleted of it under its old address."""
    known = model.dropped_sections.filter(uri=new_uri).values_list("source_hash", flat=True)
    model.dropped_sections.filter(uri=old_uri).exclude(source_hash__in=list(known)).update(uri=new_uri)


def forget_dropped(model: MLModel, uri: str) -> int:
    """Let the next import bring the page's dropped sections again; returns how many there were."""
    return model.dropped_sections.filter(uri=uri).delete()[0]
