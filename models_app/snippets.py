"""The only writer of training snippets: every change reaches the rows and both legs of the index in one transaction."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from django.db.models import QuerySet

from models_app import index
from models_app.embedder import space_of
from models_app.index import SnippetText
from models_app.models import MLModel, TrainingSnippet
from models_app.tokens import count_tokens
from tenants.models import Tenant
from tenants.store import active_store, tenant_atomic

Source = TrainingSnippet.Source
TITLE_LENGTH = TrainingSnippet._meta.get_field("prompt").max_length
BATCH = 500  # rows a transaction: short enough that a visitor's question never waits for the write lock


class SnippetQuotaReached(Exception):
    """The tenant may not store more snippets."""

    def __init__(self, quota: int):
        super().__init__(f"This workspace holds its {quota:,} snippets; delete some, or ask the operator for more.")


class Draft(Protocol):
    """What becomes a snippet: a title and a text."""

    prompt: str
    completion: str


@dataclass(frozen=True)
class Replaced:
    """What a page's new text did to its snippets."""

    added: int = 0
    kept: int = 0
    removed: int = 0
    protected: int = 0  # edited by hand, and no longer on the page


def add(model: MLModel, prompt: str, completion: str, uri: str = "", source: str = Source.MANUAL) -> TrainingSnippet:
    """Return a new snippet, found by keyword at once; raises SnippetQuotaReached."""
    new = _new(model, prompt, completion, uri=uri, source=source)
    with tenant_atomic():
        _refuse_over_quota(1)
        return _insert([new])[0]


def edit(snippet: TrainingSnippet, prompt: str, completion: str, uri: str) -> TrainingSnippet:
    """Change a snippet's texts; its vector is missing until it is made again. The source it came from is kept."""
    fresh = _new(snippet.model, prompt, completion)
    with tenant_atomic():
        old = TrainingSnippet.objects.get(pk=snippet.pk)
        if (old.prompt, old.completion) == (prompt, completion):
            TrainingSnippet.objects.filter(pk=old.pk).update(uri=uri)
        else:
            index.remove_snippets(old.model_id, [_text_of(old)])
            old.prompt, old.completion, old.uri = fresh.prompt, fresh.completion, uri
            old.token_count = fresh.token_count
            old.embedded_in = ""
            old.is_edited = old.source != Source.MANUAL
            old.save()
            index.add_snippets(old.model_id, [_text_of(old)])
    snippet.refresh_from_db()
    return snippet


def delete(model: MLModel, ids: Iterable[int]) -> int:
    """Delete these snippets of the model; returns how many there were."""
    wanted, deleted = list(ids), 0
    for start in range(0, len(wanted), BATCH):
        with tenant_atomic():
            deleted += _remove(model.snippets.filter(pk__in=wanted[start : start + BATCH]))
    return deleted


def replace_page_snippets(model: MLModel, uri: str, drafts: Sequence[Draft], source: str = Source.CRAWL) -> Replaced:
    """Make the page's snippets those of the drafts, in one transaction.

    A section that did not change keeps its row, its vector and the owner's edits; what the owner edited survives also
    when its section is gone. Raises SnippetQuotaReached, and then nothing has changed.
    """
    fresh = [
        _new(model, draft.prompt, draft.completion, uri=uri, source=source, position=position)
        for position, draft in enumerate(drafts)
    ]
    with tenant_atomic():
        standing = defaultdict(list)
        for snippet in model.snippets.filter(uri=uri, source=source).order_by("position", "id"):
            standing[snippet.source_hash].append(snippet)
        added, kept = [], 0
        for new in fresh:
            if standing[new.source_hash]:
                _keep(standing[new.source_hash].pop(0), new.position)
                kept += 1
            else:
                added.append(new)
        left = [snippet for rest in standing.values() for snippet in rest]
        gone = [snippet for snippet in left if not snippet.is_edited]
        _refuse_over_quota(len(added) - len(gone))
        _remove(gone)
        _insert(added)
    return Replaced(added=len(added), kept=kept, removed=len(gone), protected=len(left) - len(gone))


def retire_pages(model: MLModel, uris: Iterable[str], source: str = Source.CRAWL) -> int:
    """Delete the snippets of pages that are gone, except those the owner edited; returns how many."""
    retired = 0
    for uri in uris:
        with tenant_atomic():
            retired += _remove(model.snippets.filter(uri=uri, source=source, is_edited=False))
    return retired


def delete_model(model: MLModel) -> None:
    """Delete the model with everything it knows. A running import or vectorising ends at its next step."""
    with tenant_atomic():
        index.remove_model(model.pk)
        model.delete()


def missing_vectors(model: MLModel) -> QuerySet[TrainingSnippet]:
    """Return the snippets without a vector in the space the model searches."""
    return model.snippets.exclude(embedded_in=space_of(model).name)


def vector_counts(model: MLModel) -> tuple[int, int]:
    """Return how many of the model's snippets have their vector, and how many there are."""
    return model.snippets.filter(embedded_in=space_of(model).name).count(), model.snippets.count()


def forget_lost_vectors(model: MLModel) -> int:
    """Mark snippets whose vector is not in the index as not embedded, so that it is made again; returns how many."""
    lost = []
    for space in model.snippets.exclude(embedded_in="").order_by().values_list("embedded_in", flat=True).distinct():
        flagged = model.snippets.filter(embedded_in=space).values_list("pk", flat=True)
        lost += sorted(set(flagged).difference(index.ids_with_vectors(model.pk, space).tolist()))
    for start in range(0, len(lost), BATCH):
        model.snippets.filter(pk__in=lost[start : start + BATCH]).update(embedded_in="")
    return len(lost)


def embedded_text(snippet: TrainingSnippet) -> str:
    """Return what is embedded and counted: title and text together, as the title is half of the signal."""
    return f"{snippet.prompt}\n\n{snippet.completion}"


def _new(model: MLModel, prompt: str, completion: str, **fields) -> TrainingSnippet:
    snippet = TrainingSnippet(model=model, prompt=prompt[:TITLE_LENGTH], completion=completion, **fields)
    snippet.token_count = count_tokens(embedded_text(snippet))
    snippet.source_hash = sha256(f"{prompt}\0{completion}".encode()).hexdigest()
    return snippet


def _insert(snippets: list[TrainingSnippet]) -> list[TrainingSnippet]:
    TrainingSnippet.objects.bulk_create(snippets, batch_size=BATCH)
    if snippets:
        index.add_snippets(snippets[0].model_id, [_text_of(snippet) for snippet in snippets])
    return snippets


def _remove(snippets: Iterable[TrainingSnippet]) -> int:
    rows = list(snippets)
    if rows:
        index.remove_snippets(rows[0].model_id, [_text_of(row) for row in rows])
        for start in range(0, len(rows), BATCH):
            TrainingSnippet.objects.filter(pk__in=[row.pk for row in rows[start : start + BATCH]]).delete()
    return len(rows)


def _keep(snippet: TrainingSnippet, position: int) -> None:
    if snippet.position != position:
        TrainingSnippet.objects.filter(pk=snippet.pk).update(position=position)


def _text_of(snippet: TrainingSnippet) -> SnippetText:
    return SnippetText(id=snippet.pk, prompt=snippet.prompt, completion=snippet.completion)


def _refuse_over_quota(more: int) -> None:
    if more <= 0:
        return
    quota = Tenant.objects.values_list("snippet_quota", flat=True).get(pk=active_store().tenant_id)
    if TrainingSnippet.objects.count() + more > quota:
        raise SnippetQuotaReached(quota)
