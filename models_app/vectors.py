"""Makes the embeddings that are missing: in batches, resumable at any point, never under a transaction."""

from collections.abc import Callable

from models_app import index
from models_app.embedder import embed_passages, space_of
from models_app.models import MLModel, TrainingSnippet
from models_app.snippets import embedded_text, missing_vectors, vector_counts
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
