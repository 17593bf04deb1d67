"""Compares a model's index with its snippets, as if it were made from scratch, and says what differs."""

from collections import Counter
from collections.abc import Iterator

from django.db import DatabaseError

from models_app.index.chunks import REMOVED, Chunk, VectorsRefused, checked
from models_app.index.connection import rows, write
from models_app.index.keywords import Postings, postings_of, stored_texts, term_range, terms_version
from models_app.terms import TERMS_VERSION
from tenants.store import tenant_atomic

INDEXED = "SELECT id, terms, digest FROM ret_snippet WHERE model_id = %(model)s"
STATISTICS = "SELECT snippets, terms FROM ret_model WHERE model_id = %(model)s"
TERMS = "SELECT term, doc, cnt FROM ret_term WHERE term >= %(first)s AND term < %(last)s"
VECTORS = """
SELECT space.name, space.dimensions, chunk.ids, packed.vectors
FROM ret_space AS space
JOIN ret_chunk AS chunk ON chunk.space_id = space.id
LEFT JOIN ret_vectors AS packed ON packed.chunk_id = chunk.id
WHERE space.model_id = %(model)s
AND chunk.id = %(chunk)s
"""
CHUNKS = """
SELECT chunk.id
FROM ret_space AS space
JOIN ret_chunk AS chunk ON chunk.space_id = space.id
WHERE space.model_id = %(model)s
ORDER BY chunk.id
"""
EMBEDDED = """
SELECT id, embedded_in
FROM models_app_trainingsnippet
WHERE model_id = %(model)s
AND embedded_in <> ''
"""


def check_model(model_id: int) -> list[str]:
    """Return what is wrong with the model's index, in sentences; empty when it is what a rebuild would make."""
    with tenant_atomic():  # one snapshot for all reads; the integrity check is a write to SQLite
        damage = _damage()
        if damage:
            return [damage]
        postings = [postings_of(model_id, text) for text in stored_texts(model_id)]
        return [*_keyword_problems(model_id, postings), *_vector_problems(model_id, {one.id for one in postings})]


def _damage() -> str:
    """Return what SQLite finds wrong with the full-text table itself; empty if nothing."""
    try:
        with tenant_atomic():
            write("INSERT INTO ret_fts (ret_fts) VALUES ('integrity-check')")
    except DatabaseError as error:
        return f"The full-text table of the store is damaged ({error}): rebuild the tenant's whole index."
    return ""


def _keyword_problems(model_id: int, postings: list[Postings]) -> Iterator[str]:
    indexed = {key: (terms, digest) for key, terms, digest in rows(INDEXED, model=model_id)}
    version = terms_version(model_id)
    if version not in ("", TERMS_VERSION):
        yield f"The terms were made by version {version}, today's is {TERMS_VERSION}."
    if missing := sum(one.id not in indexed for one in postings):
        yield f"{missing} snippets are not in the index."
    if strays := indexed.keys() - {one.id for one in postings}:
        yield f"{len(strays)} snippets in the index are no snippets of this model."
    if changed := sum(one.id in indexed and one.digest != indexed[one.id][1] for one in postings):
        yield f"{changed} snippets were indexed with another text or other terms."
    counted = (len(indexed), sum(terms for terms, _ in indexed.values()))
    if (rows(STATISTICS, model=model_id) or [(0, 0)])[0] != counted:
        yield "The model's counts of snippets and terms are wrong."
    if different := _different_terms(model_id, postings):
        yield f"{different} terms have other postings than the snippets give."


def _different_terms(model_id: int, postings: list[Postings]) -> int:
    """Return for how many terms the number of snippets or occurrences is not what the texts give."""
    snippets, occurrences = Counter(), Counter()
    for one in postings:
        terms = [*one.prompt.split(" "), *one.completion.split(" ")]
        occurrences.update(filter(None, terms))
        snippets.update(filter(None, set(terms)))
    first, last = term_range(model_id)
    standing = {term: (count, total) for term, count, total in rows(TERMS, first=first, last=last)}
    expected = {term: (snippets[term], total) for term, total in occurrences.items()}
    return sum(standing.get(term) != expected.get(term) for term in standing.keys() | expected.keys())


def _vector_problems(model_id: int, snippets: set[int]) -> Iterator[str]:
    ids_by_space: dict[str, list[int]] = {}  # a snippet may have several vectors
    for (chunk_id,) in rows(CHUNKS, model=model_id):
        name, dimensions, packed_ids, packed = rows(VECTORS, model=model_id, chunk=chunk_id)[0]
        try:
            chunk = Chunk.unpack(packed_ids, packed or b"")
            if chunk.vectors.shape[1] != dimensions:
                raise VectorsRefused(f"they have {chunk.vectors.shape[1]} numbers instead of {dimensions}")
            checked(chunk.living().vectors, len(chunk.living().ids))
        except VectorsRefused as error:
            yield f"Chunk {chunk_id} of {name} is broken. {error}"
            continue
        ids_by_space.setdefault(name, []).extend(chunk.ids[chunk.ids != REMOVED].tolist())
    flags = rows(EMBEDDED, model=model_id)
    for name in sorted(ids_by_space.keys() | {flag for _, flag in flags}):
        ids = ids_by_space.get(name, [])
        if strays := sum(key not in snippets for key in ids):
            yield f"{strays} vectors in {name} belong to no snippet of this model."
        if missing := {key for key, flag in flags if flag == name}.difference(ids):
            yield f"{len(missing)} snippets count as embedded in {name} and have no vector there: vectorise them anew."
