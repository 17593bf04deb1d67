"""Gives snippets other texts, in the caller's transaction: rows, versions and both legs of the index go together."""

from collections.abc import Iterable, Iterator, Sequence

from django.db.models import CASCADE, Count

from models_app import index
from models_app.index import SnippetText
from models_app.models import MLModel, SnippetVersion, TrainingSnippet
from models_app.sections import Section, hash_of

Source, Conflict, Cause = TrainingSnippet.Source, TrainingSnippet.Conflict, SnippetVersion.Cause
ROWS_AT_ONCE = 500
MOST_VERSIONS = 20  # of one snippet: a page may change every day


def rewrite(changed: Sequence[tuple[TrainingSnippet, Section]], cause: Cause, author: str = "") -> None:
    """Give the rows, all of one model, their new texts; the old ones become versions.

    A text that is the same keeps its place in the index and its vector.
    """
    if not changed:
        return
    _note_versions([row for row, _ in changed], cause, author)
    others = [(row, section) for row, section in changed if not section.says_the_same_as(row)]
    if others:
        index.remove_snippets(others[0][0].model_id, [text_of(row) for row, _ in others])
    for row, section in changed:
        row.embedded_in = row.embedded_in if section.says_the_same_as(row) else ""
        row.prompt, row.completion, row.token_count = section.prompt, section.completion, section.token_count
        if cause == Cause.IMPORTED:
            row.source_hash = section.text_hash
        settle_edit(row)
        row.save()
    if others:
        index_rows(others)


def settle_edit(row: TrainingSnippet) -> None:
    """Say whether the row is edited: it says something else than its page did, or the owner has yet to decide."""
    is_of_page = hash_of(row.prompt, row.completion) == row.source_hash
    row.is_edited = row.source != Source.MANUAL and (bool(row.conflict) or not is_of_page)
    if not row.is_edited:
        row.source_prompt, row.source_completion = "", ""
    if not row.conflict:
        row.new_prompt, row.new_completion = "", ""


def take_as_source(row: TrainingSnippet) -> None:
    """End the row's conflict: what its page says now is what the owner's text is compared with from here on."""
    row.source_prompt, row.source_completion = row.new_prompt, row.new_completion
    row.source_hash, row.conflict = hash_of(row.new_prompt, row.new_completion), Conflict.NONE


def index_rows(pairs: Sequence[tuple[TrainingSnippet, Section]]) -> None:
    """Let the keyword leg find the rows, all of one model."""
    index.add_terms(pairs[0][0].model_id, [(row.pk, section.terms) for row, section in pairs])


def text_of(snippet: TrainingSnippet) -> SnippetText:
    """Return the row as the index knows it."""
    return SnippetText(id=snippet.pk, prompt=snippet.prompt, completion=snippet.completion)


def _note_versions(rows: Sequence[TrainingSnippet], cause: Cause, author: str) -> None:
    SnippetVersion.objects.bulk_create(
        SnippetVersion(snippet=row, prompt=row.prompt, completion=row.completion, cause=cause, author=author)
        for row in rows
    )
    for some in _parts([row.pk for row in rows]):
        counted = SnippetVersion.objects.filter(snippet__in=some).order_by().values("snippet")
        for each in counted.annotate(count=Count("pk")).filter(count__gt=MOST_VERSIONS):
            versions = SnippetVersion.objects.filter(snippet=each["snippet"])
            versions.filter(pk__in=list(versions.values_list("pk", flat=True)[MOST_VERSIONS:])).delete()


def _parts(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the keys in parts: some builds of SQLite bind no more than 999 values to a statement."""
    for start in range(0, len(keys), ROWS_AT_ONCE):
        yield keys[start : start + ROWS_AT_ONCE]


def mark_gone(edited: Iterable[TrainingSnippet]) -> int:
    """Ask about edited rows whose section is gone; returns about how many it was not yet asked."""
    keys = [row.pk for row in edited if row.conflict != Conflict.GONE]
    for some in _parts(keys):
        TrainingSnippet.objects.filter(pk__in=some).update(conflict=Conflict.GONE, new_prompt="", new_completion="")
    return len(keys)


def delete_related(model: MLModel) -> None:
    """Delete all rows that go with the model, some at a time: Django would bind the keys of all to one statement."""
    for relation in MLModel._meta.related_objects:
        if relation.on_delete is CASCADE:
            rows = relation.related_model.objects.filter(**{relation.field.name: model}).order_by()
            while keys := list(rows.values_list("pk", flat=True)[:ROWS_AT_ONCE]):
                relation.related_model.objects.filter(pk__in=keys).delete()
