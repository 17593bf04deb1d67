"""The index of the active store: postings and vectors of its models, and the one statement that searches both.

The only raw SQL of retrieval lies in this package. Writers join the caller's transaction, so that rows and index change
together. What a store on PostgreSQL needs otherwise is decided in here, too.
"""

from collections.abc import Iterable

from models_app.index import keywords, vectors
from models_app.index.check import Agreement, ModelCheck, check_model, check_store, compare_model
from models_app.index.chunks import VectorsRefused
from models_app.index.keywords import (
    AlreadyIndexed,
    SnippetTerms,
    SnippetText,
    add_snippets,
    add_terms,
    snippet_count,
    terms_of,
)
from models_app.index.relevance import Calibration
from models_app.index.renewal import RebuildSuperseded, renew
from models_app.index.scales import calibration_of, mean_vector, put_calibration, vector_count
from models_app.index.statement import HYBRID, KEYWORD, SEMANTIC, IndexHit, IndexQuestion, search
from models_app.index.vectors import (
    NotIndexed,
    dimensions_of,
    drop_space,
    drop_vectors,
    ids_with_vectors,
    put_vectors,
    space_names,
)
from tenants.store import tenant_atomic

__all__ = [
    "HYBRID",
    "KEYWORD",
    "SEMANTIC",
    "Agreement",
    "AlreadyIndexed",
    "Calibration",
    "IndexHit",
    "IndexQuestion",
    "ModelCheck",
    "NotIndexed",
    "RebuildSuperseded",
    "SnippetTerms",
    "SnippetText",
    "VectorsRefused",
    "add_snippets",
    "add_terms",
    "calibration_of",
    "check_model",
    "check_store",
    "compare_model",
    "dimensions_of",
    "drop_space",
    "drop_vectors",
    "ids_with_vectors",
    "mean_vector",
    "put_calibration",
    "put_vectors",
    "rebuild_outdated",
    "rebuild_store",
    "remove_model",
    "remove_snippets",
    "search",
    "snippet_count",
    "space_names",
    "terms_of",
    "vector_count",
]


def remove_snippets(model_id: int, texts: Iterable[SnippetText]) -> None:
    """Take snippets of the model out of both legs, given the texts they were indexed with. Others are passed over."""
    with tenant_atomic():
        for batch in keywords.batches(texts):
            keywords.delete_texts(model_id, batch)
            vectors.drop_from_all_spaces(model_id, (text.id for text in batch))


def remove_model(model_id: int) -> None:
    """Take everything of the model out of both legs."""
    with tenant_atomic():
        keywords.clear(model_id)
        vectors.drop_all_spaces(model_id)


def rebuild_outdated() -> list[int]:
    """Rebuild the index of the store if an older terms.py made terms of it; returns the ids of the models concerned."""
    outdated = keywords.outdated_models()
    if outdated:
        try:
            renew()
        except RebuildSuperseded:  # another worker does it
            return []
    return outdated


def rebuild_store(model_ids: Iterable[int]) -> None:
    """Make the keyword leg of the store anew and mend the vectors of these models; mends a damaged table, too.

    The keyword leg is one table for all models: all of it is made. In parts: a writer waits for one of them, and the
    old index answers until the new one takes over. A vector that cannot be used is dropped with all of its snippet's.
    Raises RebuildSuperseded, and StoreDamaged where the snippets' own rows cannot be read.
    """
    renew()
    for model_id in model_ids:
        vectors.mend(model_id)
    vectors.drop_all_strays()
