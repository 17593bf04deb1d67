"""The only writer of training snippets: every change reaches the rows and both legs of the index in one transaction."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from django.db.models import QuerySet

from models_app import index
from models_app.dropped import move_dropped, note_dropped, without_dropped
from models_app.embedder import space_of
from models_app.models import MLModel, SnippetVersion, TrainingSnippet
from models_app.page_texts import drop_page_text
from models_app.rewriting import delete_related, index_rows, mark_gone, rewrite, settle_edit, take_as_source, text_of
from models_app.sections import (
    TITLE_LENGTH,
    Draft,
    Matching,
    Section,
    embedded_text,
    hash_of,
    made_ahead,
    match_sections,
    page_texts,
    sections_of,
)
from models_app.standing import known_hashes
from tenants.models import Tenant
from tenants.store import active_store, tenant_atomic

__all__ = ["TITLE_LENGTH", "Draft", "embedded_text"]

Source, Conflict, Cause = TrainingSnippet.Source, TrainingSnippet.Conflict, SnippetVersion.Cause
BATCH = 500  # rows a transaction: some tenths of a second for which a visitor's question waits at most


class SnippetQuotaReached(Exception):
    """The tenant may not store more snippets."""

    def __init__(self, quota: int):
        super().__init__(f"This workspace holds its {quota:,} snippets; delete some, or ask the operator for more.")


class ConflictMoved(Exception):
    """The conflict is not the one that was decided: an import or another member was quicker."""

    def __init__(self):
        super().__init__("This snippet has changed since you opened it. Look at its texts again.")


class SnippetMoved(Exception):
    """The snippet is not the one that was shown: an import or another member was quicker."""

    def __init__(self, row: TrainingSnippet | None):
        super().__init__("This snippet has changed since you opened it." if row else "This snippet has been deleted.")
        self.row = row  # as it stands now; none: it was deleted


class Choice(StrEnum):
    """What the owner decides about an edited snippet whose page has changed."""

    MINE = "mine"
    THEIRS = "theirs"
    MERGED = "merged"


@dataclass(frozen=True)
class Replaced:
    """What a page's new text did to its snippets: each that stands now is added, changed, kept or protected."""

    added: int = 0
    changed: int = 0  # another text in the same row
    kept: int = 0  # their text is what it was; the owner may be asked about some
    removed: int = 0
    protected: int = 0  # edited by hand, and no longer on the page
    conflicts: int = 0  # of those kept and protected, about which the owner is asked anew

    @property
    def standing(self) -> int:
        """How many snippets the page has now."""
        return self.added + self.changed + self.kept + self.protected

    def after(self, earlier: "Replaced") -> "Replaced":
        """Return what both did together, where the earlier one left to this one what it did not do."""
        return Replaced(
            earlier.added + self.added,
            earlier.changed + self.changed,
            self.kept - earlier.added - earlier.changed,
            earlier.removed + self.removed,
            self.protected,
            earlier.conflicts + self.conflicts,
        )


def add(model: MLModel, prompt: str, completion: str, uri: str = "", source: str = Source.MANUAL) -> TrainingSnippet:
    """Return a new snippet, found by keyword at once; raises SnippetQuotaReached."""
    section = Section(prompt, completion).made_ahead()
    with tenant_atomic():
        refuse_over_quota(1)
        return _insert([_row_of(section, model, uri=uri, source=source)], [section])[0]


def add_many(model: MLModel, drafts: Iterable[Draft], source: str = Source.UPLOAD, uri: str = "") -> int:
    """Add many snippets, a batch in a transaction; returns how many.

    A draft that is an unsaved TrainingSnippet keeps its own fields: page, source, place, the owner's edit, a conflict.
    Raises SnippetQuotaReached; the batches before that one stand.
    """
    added, left = 0, iter(drafts)
    while batch := list(islice(left, BATCH)):
        sections = [
            Section(draft.prompt, draft.completion, added + place).made_ahead() for place, draft in enumerate(batch)
        ]
        rows = [
            _taken_over(draft, section, model)
            if isinstance(draft, TrainingSnippet)
            else _row_of(section, model, uri=uri, source=source)
            for draft, section in zip(batch, sections, strict=True)
        ]
        with tenant_atomic():
            refuse_over_quota(len(rows))
            added += len(_insert(rows, sections))
    return added


def edit(
    snippet: TrainingSnippet, prompt: str, completion: str, uri: str, author: str = "", *, seen: str = ""
) -> TrainingSnippet:
    """Change a snippet's texts; its vector is missing until it is made again.

    What its page said is kept, to be compared with what it says next; to say the same as the page ends the edit.
    Raises SnippetMoved where it has been deleted, or says neither what was `seen` (see `seen_hash`) nor this.
    """
    section = Section(prompt, completion).made_ahead()
    with tenant_atomic():
        row = _row_as_seen(snippet.pk, seen, section, uri)
        if row.uri != uri:
            row.uri = uri
            TrainingSnippet.objects.filter(pk=row.pk).update(uri=uri)
        _write_by_hand(row, section, Cause.EDITED, author)
    snippet.refresh_from_db()
    return snippet


def restore(version: SnippetVersion, author: str = "", seen: str = "") -> None:
    """Give the snippet the text again that it had in this version; that is an edit like another, and raises as one."""
    section = Section(version.prompt, version.completion).made_ahead()
    with tenant_atomic():
        _write_by_hand(_row_as_seen(version.snippet_id, seen, section), section, Cause.RESTORED, author)


def resolve(snippet: TrainingSnippet, choice: str, prompt: str = "", completion: str = "", author: str = "") -> None:
    """End the snippet's conflict: the owner's text stays, the page's is taken, or the one that is given.

    A snippet whose section is gone becomes the owner's own, or is deleted. Raises ConflictMoved where the snippet as it
    was read is no longer the one that is stored.
    """
    choice = Choice(choice)
    with tenant_atomic():
        row = TrainingSnippet.objects.filter(pk=snippet.pk).first()
        if row is None or not row.conflict or asked_texts(row) != asked_texts(snippet):
            raise ConflictMoved
        is_gone = row.conflict == Conflict.GONE
        if is_gone and choice == Choice.THEIRS:
            _remove([row])
            return
        text = {
            Choice.MINE: (row.prompt, row.completion),
            Choice.THEIRS: (row.new_prompt, row.new_completion),
            Choice.MERGED: (prompt, completion),
        }[choice]
        if is_gone:
            row.source, row.conflict = Source.MANUAL, Conflict.NONE
        else:
            take_as_source(row)
        rewrite([(row, Section(*text))], Cause.RESOLVED, author)


def delete(model: MLModel, ids: Iterable[int], is_by_hand: bool = True) -> int:
    """Delete these snippets of the model; returns how many there were. No import brings again what went by hand."""
    wanted, deleted = list(ids), 0
    for start in range(0, len(wanted), BATCH):
        with tenant_atomic():
            rows = list(model.snippets.filter(pk__in=wanted[start : start + BATCH]))
            if is_by_hand:
                note_dropped(rows)
            deleted += _remove(rows)
    return deleted


def prepare_sections(model: MLModel, uri: str, drafts: Iterable[Draft], source: str = Source.CRAWL) -> list[Section]:
    """Return the drafts for replace_page_snippets with all made that takes time, so that it is not made in there."""
    return made_ahead(drafts, known_hashes(model, uri, source))


def add_pages(model: MLModel, pages: Iterable[tuple[str, Sequence[Section], str]]) -> None:
    """Add the snippets of pages that have none: of each (address, sections, source). Raises SnippetQuotaReached."""
    placed = [(section, uri, source) for uri, sections, source in pages for section in sections]
    rows = [_row_of(section, model, uri=uri, source=source) for section, uri, source in placed]
    with tenant_atomic(savepoint=False):
        refuse_over_quota(len(rows))
        _insert(rows, [section for section, *_ in placed])


def replace_page_snippets(
    model: MLModel,
    uri: str,
    drafts: Iterable[Draft],
    source: str = Source.CRAWL,
    among: Sequence[int] | None = None,
) -> Replaced:
    """Make the page's snippets, or those of them `among` these ids, those of the drafts, in one transaction.

    A section that did not change keeps its row, its vector and the owner's edit; one that changed keeps its row and
    gets the new text, or, where the owner edited it, keeps the owner's and asks. What the owner edited survives also
    when its section is gone, and what the owner deleted stays away. Raises SnippetQuotaReached, and then nothing has
    changed.
    """
    sections = without_dropped(model, uri, sections_of(drafts))
    standing = model.snippets.filter(uri=uri, source=source).order_by("position", "id")
    with tenant_atomic():
        matching = match_sections(sections, standing if among is None else standing.filter(pk__in=among))
        return follow_matching(model, uri, matching, source)


def follow_matching(model: MLModel, uri: str, matching: Matching, source: str = Source.CRAWL) -> Replaced:
    """Do with the page's rows what the matching says, in the caller's transaction; raises SnippetQuotaReached."""
    gone = [row for row in matching.gone if not row.is_edited]
    protected = [row for row in matching.gone if row.is_edited]
    refuse_over_quota(len(matching.added) - len(gone))
    _remove(gone)
    _move(matching.pairs)
    changed = [(row, section) for section, row in matching.pairs if _is_rewritten(row, section)]
    rewrite(changed, Cause.IMPORTED)
    asked = sum(_follow_page(row, section) for section, row in matching.pairs) + mark_gone(protected)
    _insert([_row_of(section, model, uri=uri, source=source) for section in matching.added], matching.added)
    kept = len(matching.pairs) - len(changed)
    return Replaced(len(matching.added), len(changed), kept, len(gone), len(protected), asked)


def retire_pages(model: MLModel, uris: Iterable[str], source: str = Source.CRAWL) -> int:
    """Delete the snippets of pages that are gone, and ask about those the owner edited; returns how many it deleted."""
    retired = 0
    for uri in uris:
        with tenant_atomic():
            standing = model.snippets.filter(uri=uri, source=source)
            retired += _remove(standing.filter(is_edited=False))
            mark_gone(standing.filter(is_edited=True))
            drop_page_text(model, uri)
    return retired


def move_page(model: MLModel, old_uri: str, new_uri: str) -> int:
    """Give a page's snippets to its new address, where that has none; returns how many.

    Rows, vectors and the owner's edits stay, and what the owner deleted of the page stays away.
    """
    moved = 0
    with tenant_atomic():
        for source in (Source.CRAWL, Source.SITE):
            if not model.snippets.filter(uri=new_uri, source=source).exists():
                moved += model.snippets.filter(uri=old_uri, source=source).update(uri=new_uri)
        if moved:
            move_dropped(model, old_uri, new_uri)
        drop_page_text(model, old_uri)
    return moved


def delete_model(model: MLModel) -> None:
    """Delete the model with everything it knows. A running import or vectorising ends at its next step."""
    with tenant_atomic():
        index.remove_model(model.pk)
        delete_related(model)
        model.delete()


def missing_vectors(model: MLModel) -> QuerySet[TrainingSnippet]:
    """Return the snippets without a vector in the space that is wanted: those there is work for."""
    return model.snippets.exclude(embedded_in=space_of(model).name)


def vector_counts(model: MLModel) -> tuple[int, int]:
    """Return how many of the model's snippets have their vector in the space that is wanted, and how many there are."""
    return model.snippets.filter(embedded_in=space_of(model).name).count(), model.snippets.count()


def asked_texts(row: TrainingSnippet) -> tuple[str, ...]:
    """Return what the owner decides between."""
    return row.conflict, row.prompt, row.completion, row.new_prompt, row.new_completion


def seen_hash(text: Draft, uri: str) -> str:
    """Return what tells whether a snippet still is what a member was shown before they changed it."""
    return hash_of(text.prompt, f"{text.completion}\0{uri}")


def _row_as_seen(pk: int, seen: str, wanted: Section, uri: str | None = None) -> TrainingSnippet:
    """Return the row as it is stored; raises SnippetMoved where a text would be lost that nobody has seen."""
    row = TrainingSnippet.objects.filter(pk=pk).first()
    if row is None:
        raise SnippetMoved(row)
    known = seen, seen_hash(wanted, row.uri if uri is None else uri)
    if seen and seen_hash(row, row.uri) not in known:
        raise SnippetMoved(row)
    return row


def _row_of(section: Section, model: MLModel, **fields) -> TrainingSnippet:
    return TrainingSnippet(
        model=model,
        prompt=section.prompt,
        completion=section.completion,
        position=section.position,
        token_count=section.token_count,
        source_hash=section.text_hash,
        **fields,
    )


def _taken_over(row: TrainingSnippet, section: Section, model: MLModel) -> TrainingSnippet:
    """Return a row that comes from elsewhere with all set that belongs to its place here."""
    row.model, row.prompt, row.token_count, row.embedded_in = model, section.prompt, section.token_count, ""
    row.source_hash = hash_of(row.source_prompt, row.source_completion) if row.is_edited else section.text_hash
    return row


def _insert(rows: list[TrainingSnippet], sections: Sequence[Section]) -> list[TrainingSnippet]:
    if rows:
        TrainingSnippet.objects.bulk_create(rows, batch_size=BATCH)
        index_rows(list(zip(rows, sections, strict=True)))
    return rows


def _remove(snippets: Iterable[TrainingSnippet]) -> int:
    rows = list(snippets)
    if rows:
        index.remove_snippets(rows[0].model_id, [text_of(row) for row in rows])
        for start in range(0, len(rows), BATCH):
            TrainingSnippet.objects.filter(pk__in=[row.pk for row in rows[start : start + BATCH]]).delete()
    return len(rows)


def _write_by_hand(row: TrainingSnippet, section: Section, cause: Cause, author: str) -> None:
    """Give the row a member's text, and keep what its page said before the first edit."""
    if section.says_the_same_as(row):
        return
    if row.source != Source.MANUAL and not row.is_edited:
        row.source_prompt, row.source_completion = row.prompt, row.completion
    if row.conflict == Conflict.CHANGED and section.text_hash == hash_of(row.new_prompt, row.new_completion):
        take_as_source(row)  # the member has written what the page says now
    rewrite([(row, section)], cause, author)


def _move(pairs: Sequence[tuple[Section, TrainingSnippet]]) -> None:
    """Give the rows the places that their sections have on the page."""
    moved = [row for section, row in pairs if row.position != section.position]
    for section, row in pairs:
        row.position = section.position
    if moved:
        TrainingSnippet.objects.bulk_update(moved, ["position"], batch_size=BATCH)


def _is_rewritten(row: TrainingSnippet, section: Section) -> bool:
    return not row.is_edited and row.source_hash != section.text_hash


def _follow_page(row: TrainingSnippet, section: Section) -> bool:
    """Note what the page of an edited row says now; returns whether the owner is asked about it anew."""
    if not row.is_edited:
        return False
    before, known, is_asked_already = (row.source_hash, *asked_texts(row)), page_texts(row), False
    if section.text_hash == row.source_hash:
        row.conflict = Conflict.NONE
    elif section.says_the_same_as(row):
        row.source_hash, row.conflict = section.text_hash, Conflict.NONE
    elif section.is_but_for_options(known[0]):
        row.source_prompt, row.source_completion = section.prompt, section.completion
        row.source_hash, row.conflict = section.text_hash, Conflict.NONE
    else:
        is_asked_already = section.is_but_for_options(known[-1])
        row.conflict, row.new_prompt, row.new_completion = Conflict.CHANGED, section.prompt, section.completion
    settle_edit(row)
    if before == (row.source_hash, *asked_texts(row)):
        return False
    row.save()
    return bool(row.conflict) and not is_asked_already


def refuse_over_quota(more: int) -> None:
    """Raise SnippetQuotaReached unless the tenant may store so many more."""
    if more <= 0:
        return
    quota = Tenant.objects.values_list("snippet_quota", flat=True).get(pk=active_store().tenant_id)
    if index.snippet_count() + more > quota:
        raise SnippetQuotaReached(quota)
