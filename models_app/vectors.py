"""Makes the embeddings that are missing: in batches, resumable at any point, never under a transaction."""

from collections.abc import Callable, Iterable

import numpy as np

from models_app import index
from models_app.embedder import embed_passages, space_of
from models_app.models import MLModel, TrainingSnippet
from models_app.snippets import Draft, embedded_text, missing_vectors, vector_counts
from tenants.store import tenant_atomic

BATCH = 32


def vectorise_missing(
    model: MLModel,
    check: Callable[[], None] = lambda: None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Embed every snippet of the model that lacks its vector; returns how many were made.

    `check` is called between batches and may raise to end the work; `progress` gets how many of the model's snippets
    have their vector, and how many there are. Raises EmbeddingError; what was made until then stays.
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
    standing = model.snippets.filter(uri=uri, source=TrainingSnippet.Source.CRAWL, embedded_in=space_of(model).name)
    known = {embedded_text(snippet) for snippet in standing}
    texts = [text for text in map(embedded_text, drafts) if text not in known]
    return dict(zip(texts, embed_passages(model, texts), strict=True)) if known and texts else {}


def store_vectors(model: MLModel, uri: str, vectors: dict[str, np.ndarray]) -> None:
    """Give the page's snippets the vectors that were made of their texts ahead."""
    space = space_of(model).name
    missing = model.snippets.filter(uri=uri, source=TrainingSnippet.Source.CRAWL).exclude(embedded_in=space)
    texts = {snippet.pk: embedded_text(snippet) for snippet in missing} if vectors else {}
    ids = [pk for pk, text in texts.items() if text in vectors]
    if ids:
        with tenant_atomic():
            index.put_vectors(model.pk, space, ids, np.stack([vectors[texts[pk]] for pk in ids]))
            TrainingSnippet.objects.filter(pk__in=ids).update(embedded_in=space)


def _embed(model: MLModel, batch: list[TrainingSnippet]) -> int:
    """Embed a batch and store the vectors of those whose text is still the same afterwards."""
    space = space_of(model).name
    vectors = embed_passages(model, [embedded_text(snippet) for snippet in batch])
    with tenant_atomic():
        current = TrainingSnippet.objects.in_bulk([snippet.pk for snippet in batch])
        rows = [
            row
            for row, snippet in enumerate(batch)
            if snippet.pk in current and embedded_text(current[snippet.pk]) == embedded_text(snippet)
        ]
        ids = [batch[row].pk for row in rows]
        if ids:
            index.put_vectors(model.pk, space, ids, vectors[rows])
            TrainingSnippet.objects.filter(pk__in=ids).update(embedded_in=space)
    return len(ids)
