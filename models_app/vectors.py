"""Makes the embeddings that are missing: in batches, resumable at any point, never under a transaction.

A snippet has a vector for each of its windows, mostly one; it counts as embedded once it has them all.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import accumulate
from math import inf

import numpy as np
from django.db.models import QuerySet

from models_app import index
from models_app.dropped import without_dropped
from models_app.embedder import embed_passages, fits_window, space_of
from models_app.models import MLModel, TrainingSnippet
from models_app.sections import Draft, embedded_text, page_texts
from models_app.snippets import missing_vectors, vector_counts
from models_app.windows import windows_of
from tenants.store import tenant_atomic

# What replaces its snippets as a whole: a page, or a file.
PAGE_SOURCES = (TrainingSnippet.Source.CRAWL, TrainingSnippet.Source.UPLOAD)
ROWS_AT_ONCE = 500
BATCH = 32  # windows: some seconds of work for the local model


def vectorise_missing(
    model: MLModel,
    check: Callable[[], None] = lambda: None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Embed every snippet of the model that lacks its vectors; returns of how many they were made.

    `check` is called between batches and may raise to end the work; `progress` gets how many of the model's snippets
    have their vectors, and how many there are. Raises EmbeddingError; what was made until then stays.
    """
    made = 0
    progress(*vector_counts(model))
    while batch := list(missing_vectors(model).order_by("id")[:BATCH]):
        check()
        made += _embed(model, batch)
        progress(*vector_counts(model))
    return made


def vectors_ahead(model: MLModel, uri: str, drafts: Iterable[Draft]) -> dict[str, np.ndarray]:
    """Return the vectors, by text, of the drafts that are about to replace snippets which have theirs.

    A page that is found by meaning stays so while it is replaced: `store_vectors` puts them in place in the same
    transaction. Empty for a page that is new. Raises EmbeddingError, and then nothing has changed.
    """
    if not model.needs_vectors:
        return {}
    standing = model.snippets.filter(uri=uri, source__in=PAGE_SOURCES, embedded_in=space_of(model).name)
    # What the page says of an edited snippet takes no vector: the owner's text is what answers.
    known = {embedded_text(text) for snippet in standing for text in (snippet, *page_texts(snippet))}
    fresh = [draft for draft in drafts if embedded_text(draft) not in known] if known else []
    wanted = without_dropped(model, uri, fresh) if fresh else []
    return _vectors_by_text(model, _windows_by_text(model, wanted)) if wanted else {}


def store_vectors(model: MLModel, uri: str, vectors: dict[str, np.ndarray]) -> None:
    """Give the page's snippets the vectors that were made of their texts ahead."""
    if vectors:
        missing = model.snippets.filter(uri=uri, source__in=PAGE_SOURCES)
        _store(model, missing.exclude(embedded_in=space_of(model).name), vectors)


def forget_lost_vectors(model: MLModel) -> int:
    """Mark snippets whose vector is not in the index as not embedded, so that it is made again; returns how many."""
    lost = []
    for space in model.snippets.exclude(embedded_in="").order_by().values_list("embedded_in", flat=True).distinct():
        flagged = model.snippets.filter(embedded_in=space).values_list("pk", flat=True)
        lost += sorted(set(flagged).difference(index.ids_with_vectors(model.pk, space).tolist()))
    for start in range(0, len(lost), ROWS_AT_ONCE):
        model.snippets.filter(pk__in=lost[start : start + ROWS_AT_ONCE]).update(embedded_in="")
    return len(lost)


def _embed(model: MLModel, batch: list[TrainingSnippet]) -> int:
    """Embed the first snippets of the batch and store the vectors of those whose text is still the same afterwards."""
    vectors = _vectors_by_text(model, _windows_by_text(model, batch, BATCH))
    return _store(model, TrainingSnippet.objects.filter(pk__in=[snippet.pk for snippet in batch]), vectors)


def _windows_by_text(model: MLModel, snippets: Iterable[Draft], enough: float = inf) -> dict[str, list[str]]:
    """Return the windows of the snippets' texts: of all, or of as many as it takes for `enough` windows."""
    windows, count = {}, 0
    for snippet in snippets:
        windows[embedded_text(snippet)] = own = windows_of(snippet, partial(fits_window, model))
        count += len(own)
        if count >= enough:
            break
    return windows


def _vectors_by_text(model: MLModel, windows: dict[str, list[str]]) -> dict[str, np.ndarray]:
    """Return, for each text, the unit rows of its windows."""
    rows = embed_passages(model, [window for own in windows.values() for window in own])
    ends = list(accumulate(map(len, windows.values())))
    return dict(zip(windows, np.split(rows, ends[:-1]), strict=True))


def _store(model: MLModel, snippets: QuerySet[TrainingSnippet], vectors: dict[str, np.ndarray]) -> int:
    """Put in place the vectors of those snippets whose text they were made of; returns how many these are."""
    space = space_of(model).name
    with tenant_atomic():
        texts = {snippet.pk: embedded_text(snippet) for snippet in snippets}
        made = {pk: vectors[text] for pk, text in texts.items() if text in vectors}
        if made:
            ids = np.repeat(list(made), [len(rows) for rows in made.values()])
            index.put_vectors(model.pk, space, ids, np.concatenate(list(made.values())))
            TrainingSnippet.objects.filter(pk__in=list(made)).update(embedded_in=space)
    return len(made)
