"""Makes the embeddings that are missing: in batches, resumable at any point, never under a transaction.

A snippet has a vector for each of its windows, mostly one; it counts as embedded once it has them all. While the
embedding model changes, what the old vectors lack is made first, so that nothing is missed until the switch.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from math import inf

import numpy as np
from django.db.models import QuerySet

from models_app import index
from models_app.calibration import refresh as refresh_calibration
from models_app.dropped import without_dropped
from models_app.embedder import (
    EmbeddingError,
    EmbeddingSpace,
    TextRefused,
    answering_space,
    embed_passages,
    fits_window,
    passage_tokens,
    space_of,
)
from models_app.llm import Reason
from models_app.llm_chunks import Usage
from models_app.models import MLModel, TrainingSnippet
from models_app.sections import Draft, embedded_text, page_texts
from models_app.snippets import missing_vectors, vector_counts
from models_app.switching import begin_answering, refresh, settle, switch_if_complete, without_vector
from models_app.windows import windows_of
from tenants.store import tenant_atomic

logger = logging.getLogger(__name__)

# What replaces its snippets as a whole: a page, or a file.
PAGE_SOURCES = (TrainingSnippet.Source.CRAWL, TrainingSnippet.Source.UPLOAD)
ROWS_AT_ONCE = 500
BATCH = 32  # windows: some seconds of work for the local model
# A text that a service refuses is cut in halves until they are so short that their length is not to blame.
SHORTEST_REFUSED_TOKENS = 64
OTHER_MODEL = (
    "The vectors that came cannot stand beside those that are stored: {1}. If the service has another model under its "
    "name now, make all vectors anew: `manage.py vectorise TENANT/MODEL --anew`."
)
MOST_REFUSED = 5  # texts of a run, until the service, and not they, must be to blame


@dataclass
class Spent(Usage):
    """What a run took: what an API was sent, and how many snippets have their vectors of it."""

    snippets: int = 0


@dataclass(frozen=True)
class VectorsAhead:
    """The vectors of texts that are not stored yet, by text, and the space they lie in."""

    space: EmbeddingSpace
    by_text: dict[str, np.ndarray]


class SnippetRefused(EmbeddingError):
    """The embedding service does not take the text of a snippet, however short its windows."""

    def __init__(self, text: str, error: EmbeddingError):
        super().__init__(error.reason, error.message)
        self.text = text


def vectorise_missing(
    model: MLModel,
    check: Callable[[], None] = lambda: None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    spent: Spent | None = None,
) -> int:
    """Embed every snippet of the model that lacks its vectors in the wanted space, and let that one answer then.

    Returns of how many snippets vectors were made. `check` is called between batches and may raise to end the work;
    `progress` gets how many of the model's snippets have their vectors, and how many there are; `spent` is kept up to
    date. The owner may choose another embedding model meanwhile: then its vectors are made. Raises EmbeddingError;
    what was made until then stays.
    """
    refused, space, has_old_service = {}, None, True
    spent = spent or Spent()
    progress(*vector_counts(model))
    while True:
        check()
        if space != (space := refresh(model)):
            settle(model)
        if has_old_service:
            has_old_service = _keep_up(model, spent)
        batch = list(missing_vectors(model).exclude(pk__in=list(refused)).order_by("id")[:BATCH])
        if not batch:
            refresh_calibration(model, space)  # before the space begins to answer
            if refused or switch_if_complete(model):
                break
            continue
        try:
            spent.snippets += _embed(model, space, batch, spent)
        except SnippetRefused as error:
            refused |= {row.pk: row.prompt for row in batch if embedded_text(row) == error.text}
            if len(refused) > MOST_REFUSED:
                raise
        progress(*vector_counts(model))
    if refused:
        raise EmbeddingError(Reason.REFUSED_REQUEST, _told_refused(list(refused.values())))
    return spent.snippets


def _told_refused(titles: list[str]) -> str:
    named = " and ".join(f"“{title}”" for title in titles[:3])
    more = f" and {len(titles) - 3} more" if len(titles) > 3 else ""
    return f"The embedding service refuses the text of {named}{more}: change or delete it, then vectorise again."


def _keep_up(model: MLModel, usage: Usage) -> bool:
    """Give what is new or changed since the embedding model did its vectors among those that still answer, too.

    Returns whether that could be done: where the old service is away, the new vectors are all there will be.
    """
    space = answering_space(model)
    if space == space_of(model):
        return True
    try:
        while batch := list(without_vector(model).order_by("id")[:BATCH]):
            _embed(model, space, batch, usage)
    except EmbeddingError as error:
        logger.warning("New snippets are found by meaning once the new vectors are complete: %s", error)
        return False
    return True


def vectors_ahead(model: MLModel, uri: str, drafts: Iterable[Draft]) -> VectorsAhead:
    """Return the vectors of the drafts that are about to replace snippets which have theirs, as they answer now.

    A page that is found by meaning stays so while it is replaced: `store_vectors` puts them in place in the same
    transaction. None for a page that is new. Raises EmbeddingError, and then nothing has changed; but a service that
    the owner is about to leave holds up no page.
    """
    space, wanted = answering_space(model), space_of(model)
    if not model.needs_vectors:
        return VectorsAhead(space, {})
    spaces = {space.name, wanted.name}
    standing = model.snippets.filter(uri=uri, source__in=PAGE_SOURCES, embedded_in__in=spaces)
    # What the page says of an edited snippet takes no vector: the owner's text is what answers.
    known = {embedded_text(text) for snippet in standing for text in (snippet, *page_texts(snippet))}
    fresh = [draft for draft in drafts if embedded_text(draft) not in known] if known else []
    new = without_dropped(model, uri, fresh) if fresh else []
    try:
        return VectorsAhead(space, _vectors_by_text(space, new) if new else {})
    except EmbeddingError as error:
        if space == wanted:
            raise
        logger.warning("%s is found by meaning once the new vectors are complete: %s", uri, error)
        return VectorsAhead(space, {})


def store_vectors(model: MLModel, uri: str, ahead: VectorsAhead) -> None:
    """Give the page's snippets the vectors that were made of their texts ahead, unless other ones answer by now."""
    if ahead.by_text and answering_space(model) == ahead.space:
        with_others = {ahead.space.name, space_of(model).name}
        missing = model.snippets.filter(uri=uri, source__in=PAGE_SOURCES).exclude(embedded_in__in=with_others)
        _store(model, ahead.space, missing, ahead.by_text)


def forget_vectors(model: MLModel) -> None:
    """Drop all vectors of the wanted space, to be made anew: when the service has another model under its name."""
    space = space_of(model).name
    with tenant_atomic():
        model.snippets.filter(embedded_in=space).update(embedded_in="")
        index.drop_space(model.pk, space)


def forget_lost_vectors(model: MLModel) -> int:
    """Mark snippets whose vector is not in the index as not embedded, so that it is made again; returns how many."""
    lost = []
    for space in model.snippets.exclude(embedded_in="").order_by().values_list("embedded_in", flat=True).distinct():
        flagged = model.snippets.filter(embedded_in=space).values_list("pk", flat=True)
        lost += sorted(set(flagged).difference(index.ids_with_vectors(model.pk, space).tolist()))
    for start in range(0, len(lost), ROWS_AT_ONCE):
        model.snippets.filter(pk__in=lost[start : start + ROWS_AT_ONCE]).update(embedded_in="")
    return len(lost)


def _embed(model: MLModel, space: EmbeddingSpace, batch: list[TrainingSnippet], usage: Usage | None = None) -> int:
    """Embed the first snippets of the batch and store the vectors of those whose text is still the same afterwards."""
    vectors = _vectors_by_text(space, batch, BATCH, usage)
    return _store(model, space, TrainingSnippet.objects.filter(pk__in=[snippet.pk for snippet in batch]), vectors)


def _vectors_by_text(
    space: EmbeddingSpace, snippets: Iterable[Draft], enough: float = inf, usage: Usage | None = None
) -> dict[str, np.ndarray]:
    """Return, for each text, the unit rows of its windows: of all texts, or of as many as give `enough` windows."""
    drafts: dict[str, Draft] = {}
    windows: dict[str, list[str]] = {}
    for snippet in snippets:
        text = embedded_text(snippet)
        drafts[text], windows[text] = snippet, windows_of(snippet, partial(fits_window, space))
        if sum(map(len, windows.values())) >= enough:
            break
    while True:
        texts = [text for text, own in windows.items() for _ in own]
        sent = [window for own in windows.values() for window in own]
        try:
            rows = embed_passages(space, sent, usage)
        except TextRefused as error:
            text = texts[error.position]
            windows[text] = _smaller_windows(space, drafts[text], sent[error.position], error)
            continue
        ends = list(accumulate(map(len, windows.values())))
        return dict(zip(windows, np.split(rows, ends[:-1]), strict=True))


def _smaller_windows(space: EmbeddingSpace, draft: Draft, refused: str, error: EmbeddingError) -> list[str]:
    """Return windows of half the one that the service refused; raises SnippetRefused where that is of no use."""
    tokens = passage_tokens(space, refused)
    if tokens <= SHORTEST_REFUSED_TOKENS:
        raise SnippetRefused(embedded_text(draft), error)
    return windows_of(draft, partial(fits_window, space, most_tokens=tokens // 2))


def _store(
    model: MLModel, space: EmbeddingSpace, snippets: QuerySet[TrainingSnippet], vectors: dict[str, np.ndarray]
) -> int:
    """Put in place the vectors of those snippets whose text they were made of; returns how many these are."""
    with tenant_atomic():
        texts = {snippet.pk: embedded_text(snippet) for snippet in snippets}
        made = {pk: vectors[text] for pk, text in texts.items() if text in vectors}
        if made:
            ids = np.repeat(list(made), [len(rows) for rows in made.values()])
            try:
                index.put_vectors(model.pk, space.name, ids, np.concatenate(list(made.values())))
            except index.VectorsRefused as error:
                raise EmbeddingError(Reason.BROKEN_ANSWER, OTHER_MODEL.format(space.name, error.reason)) from error
            TrainingSnippet.objects.filter(pk__in=list(made)).update(embedded_in=space.name)
            begin_answering(model, space)
    return len(made)
