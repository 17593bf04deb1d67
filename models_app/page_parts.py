"""A page of which very much has changed, replaced part by part, so that nothing waits long for the write lock.

What a part leaves is a page between two texts: only the caller's last step, with all of the page, says that it is done.
"""

from collections.abc import Callable, Iterable, Iterator
from time import sleep

from models_app.dropped import without_dropped
from models_app.models import MLModel, TrainingSnippet
from models_app.sections import Draft, Matching, match_sections, sections_of
from models_app.snippets import Replaced, asked_texts, follow_matching, refuse_over_quota
from tenants.store import tenant_atomic

Source = TrainingSnippet.Source

PART = 200  # sections of a transaction: with as many to add and to delete about 0.3 s
# Between parts. SQLite keeps no queue: who waits for the lock looks for it every 0.1 s in the end.
PAUSE_SECONDS = 0.12


def replace_in_parts(
    model: MLModel,
    uri: str,
    drafts: Iterable[Draft],
    source: str = Source.CRAWL,
    within: Callable[[], None] = lambda: None,
) -> Replaced:
    """Do of replace_page_snippets, to be called next, all that would hold the write lock for long.

    That is nothing where at most PART sections have changed. Each part is a transaction, in which `within` is called:
    if it raises, the part is undone. Raises SnippetQuotaReached before anything has changed.
    """
    standing = model.snippets.filter(uri=uri, source=source).order_by("position", "id")
    matching = match_sections(without_dropped(model, uri, sections_of(drafts)), standing)
    matching.pairs = [(section, row) for section, row in matching.pairs if _differs(section, row)]
    matching.gone = [row for row in matching.gone if not row.is_edited]
    replaced, parts = Replaced(), list(_parts_of(matching))
    if len(parts) <= 1:
        return replaced
    refuse_over_quota(len(matching.added) - len(matching.gone))
    for part in parts:
        with tenant_atomic():
            done = follow_matching(model, uri, _as_stored(part), source)
            within()
        replaced = Replaced(
            replaced.added + done.added,
            replaced.changed + done.changed,
            removed=replaced.removed + done.removed,
            conflicts=replaced.conflicts + done.conflicts,
        )
        sleep(PAUSE_SECONDS)
    return replaced


def _differs(section, row: TrainingSnippet) -> bool:
    return row.source_hash != section.text_hash or row.position != section.position


def _parts_of(matching: Matching) -> Iterator[Matching]:
    """Yield the matching in parts; what is gone goes with what is added, so that the page stays about as full."""
    most = max(len(matching.added), len(matching.gone), len(matching.pairs))
    for start in range(0, most, PART):
        part = slice(start, start + PART)
        yield Matching(matching.added[part], matching.gone[part], matching.pairs[part])


def _as_stored(part: Matching) -> Matching:
    """Return the part with its rows as they are now, without those that somebody has changed or deleted meanwhile."""
    rows = TrainingSnippet.objects.in_bulk([row.pk for row in part.gone] + [row.pk for _, row in part.pairs])

    def stands(row: TrainingSnippet) -> bool:
        return row.pk in rows and _state_of(rows[row.pk]) == _state_of(row)

    pairs = [(section, rows[row.pk]) for section, row in part.pairs if stands(row)]
    return Matching(part.added, [rows[row.pk] for row in part.gone if stands(row)], pairs)


def _state_of(row: TrainingSnippet) -> tuple:
    return row.uri, row.source, row.source_hash, row.is_edited, asked_texts(row)
