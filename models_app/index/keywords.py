"""Writes the keyword leg: a snippet's terms into the full-text table, and the statistics of its model.

The full-text table keeps no texts, so a delete has to name exactly what was indexed. A digest of each snippet's terms
tells whether its text still does; if not, what stands in the table is read back and deleted.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice

from models_app.index.connection import id_list, rows, write, write_each
from models_app.terms import ENDING_MARK, TERMS_VERSION, index_terms
from tenants.store import tenant_atomic

logger = logging.getLogger(__name__)

PREFIX_LENGTH = 6
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
BATCH = 500

COUNT = """
INSERT INTO ret_model (model_id, snippets, terms, terms_version)
VALUES (%(model)s, %(snippets)s, %(terms)s, %(version)s)
ON CONFLICT (model_id) DO UPDATE SET
    terms_version = CASE snippets WHEN 0 THEN excluded.terms_version ELSE terms_version END,
    snippets = snippets + excluded.snippets,
    terms = terms + excluded.terms
"""
ADD_POSTINGS = "INSERT INTO ret_fts (rowid, prompt, completion) VALUES (%(id)s, %(prompt)s, %(completion)s)"
DELETE_POSTINGS = """
INSERT INTO ret_fts (ret_fts, rowid, prompt, completion)
VALUES ('delete', %(id)s, %(prompt)s, %(completion)s)
"""
ADD_SNIPPET = """
INSERT INTO ret_snippet (id, model_id, terms, digest)
VALUES (%(id)s, %(model_id)s, %(terms)s, %(digest)s)
"""
KNOWN = "SELECT id, model_id, terms, digest FROM ret_snippet WHERE id IN (SELECT value FROM json_each(%(ids)s))"
DELETE_SNIPPETS = "DELETE FROM ret_snippet WHERE id IN (SELECT value FROM json_each(%(ids)s))"
TEXTS = """
SELECT id, prompt, completion
FROM models_app_trainingsnippet
WHERE model_id = %(model)s
AND id > %(after)s
ORDER BY id
LIMIT %(limit)s
"""
# What stands in the table for some snippets of a model, whatever their texts are now.
STANDING = """
SELECT
    doc,
    coalesce(group_concat(CASE col WHEN 'prompt' THEN term END, ' '), ''),
    coalesce(group_concat(CASE col WHEN 'completion' THEN term END, ' '), '')
FROM ret_posting
WHERE term >= %(first)s
AND term < %(last)s
AND doc IN (SELECT value FROM json_each(%(ids)s))
GROUP BY doc
"""
STANDING_IDS = "SELECT DISTINCT doc FROM ret_posting WHERE term >= %(first)s AND term < %(last)s LIMIT %(limit)s"


class AlreadyIndexed(ValueError):
    """Snippets were to be added that are in the index."""

    def __init__(self, ids: Sequence[int]):
        super().__init__(f"In the index already: {len(ids)} of these snippets, the first is {ids[0]}.")


@dataclass(frozen=True)
class SnippetText:
    """What of a snippet is indexed: its title and its text."""

    id: int
    prompt: str
    completion: str


@dataclass(frozen=True)
class SnippetTerms:
    """The terms of a title and a text: what takes time to make, so that it can be made before a transaction."""

    prompt: Sequence[str]
    completion: Sequence[str]


@dataclass(frozen=True)
class Postings:
    """A snippet's terms with its model's prefix, blank between them, as the full-text table takes them."""

    id: int
    prompt: str
    completion: str

    @property
    def terms(self) -> int:
        """How many terms make the snippet long: what a word may end with does not."""
        own = (*self.prompt.split(), *self.completion.split())
        return len(own) - sum([term.startswith(ENDING_MARK, PREFIX_LENGTH) for term in own])

    @property
    def digest(self) -> bytes:
        return blake2b(f"{self.prompt}\n{self.completion}".encode(), digest_size=8).digest()


@dataclass(frozen=True)
class Indexed:
    """What the index remembers of a snippet: how many terms it has, and their digest."""

    id: int
    model_id: int
    terms: int
    digest: bytes


def prefix_of(model_id: int) -> str:
    """Return what stands in front of the model's terms: its id in base 36, so that prefixes sort as the ids do."""
    prefix = ""
    while model_id or len(prefix) < PREFIX_LENGTH:
        model_id, digit = divmod(model_id, len(DIGITS))
        prefix = DIGITS[digit] + prefix
    return prefix


def postings_of(model_id: int, row: SnippetText) -> Postings:
    """Return what is indexed for a snippet's texts."""
    return _postings(model_id, row.id, terms_of(row.prompt, row.completion))


def terms_of(prompt: str, completion: str) -> SnippetTerms:
    """Return the terms of a snippet's title and text."""
    return SnippetTerms(index_terms(prompt), index_terms(completion))


def add_snippets(model_id: int, texts: Iterable[SnippetText]) -> None:
    """Index new snippets of the model; raises AlreadyIndexed."""
    with tenant_atomic():
        for batch in batches(texts):
            add_terms(model_id, [(text.id, terms_of(text.prompt, text.completion)) for text in batch])


def add_terms(model_id: int, snippets: Sequence[tuple[int, SnippetTerms]]) -> None:
    """Index new snippets, given their ids and terms, in the caller's transaction; raises AlreadyIndexed."""
    if known := rows(KNOWN, ids=id_list(key for key, _ in snippets)):
        raise AlreadyIndexed([row[0] for row in known])
    added = [_postings(model_id, key, terms) for key, terms in snippets]
    write_each(ADD_POSTINGS, [vars(one) for one in added])
    indexed = [Indexed(one.id, model_id, one.terms, one.digest) for one in added]
    write_each(ADD_SNIPPET, [vars(snippet) for snippet in indexed])
    _count(model_id, len(indexed), sum(snippet.terms for snippet in indexed))


def snippet_count() -> int:
    """Return how many snippets the store has in its index: what counting its rows would take long to say."""
    return rows("SELECT coalesce(sum(snippets), 0) FROM ret_model")[0][0]


def delete_texts(model_id: int, texts: Sequence[SnippetText]) -> None:
    """Take snippets out of the keyword leg, given the texts they were indexed with."""
    if changed := _delete_unchanged(model_id, texts):
        logger.warning(
            "Model %s: %d texts are not those that were indexed; their postings are read back", model_id, len(changed)
        )
        _delete_standing(model_id, changed)


def clear(model_id: int) -> None:
    """Take the whole model out of the keyword leg, also what no snippet of it accounts for."""
    if terms_version(model_id) == TERMS_VERSION:
        for batch in batches(stored_texts(model_id)):
            _delete_unchanged(model_id, batch)  # the fast way; what it leaves is found below
    first, last = term_range(model_id)
    while ids := [row[0] for row in rows(STANDING_IDS, first=first, last=last, limit=BATCH)]:
        _delete_standing(model_id, ids)
    write("DELETE FROM ret_snippet WHERE model_id = %(model)s", model=model_id)
    write("DELETE FROM ret_model WHERE model_id = %(model)s", model=model_id)


def stored_texts(model_id: int) -> Iterator[SnippetText]:
    """Yield the model's snippets as its rows have them, by id."""
    after = 0
    while batch := [SnippetText(*row) for row in rows(TEXTS, model=model_id, after=after, limit=BATCH)]:
        yield from batch
        after = batch[-1].id


def terms_version(model_id: int) -> str:
    """Return the version of terms.py that the model was indexed with; empty if it never was."""
    found = rows("SELECT terms_version FROM ret_model WHERE model_id = %(model)s", model=model_id)
    return found[0][0] if found else ""


def outdated_models() -> list[int]:
    """Return the models that were indexed with another version of terms.py."""
    sql = "SELECT model_id FROM ret_model WHERE terms_version <> %(version)s AND snippets > 0 ORDER BY model_id"
    return [row[0] for row in rows(sql, version=TERMS_VERSION)]


def term_range(model_id: int) -> tuple[str, str]:
    """Return the first term that can be the model's, and the first that no longer can."""
    return prefix_of(model_id), prefix_of(model_id + 1)


def batches(texts: Iterable[SnippetText]) -> Iterator[list[SnippetText]]:
    """Yield the texts in lists of a size to keep in memory."""
    iterator = iter(texts)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def _postings(model_id: int, key: int, terms: SnippetTerms) -> Postings:
    prefix = prefix_of(model_id)
    prompt, completion = (" ".join([prefix + term for term in some]) for some in (terms.prompt, terms.completion))
    return Postings(key, prompt, completion)


def _delete_unchanged(model_id: int, texts: Sequence[SnippetText]) -> list[int]:
    """Delete those snippets whose text is the one that was indexed; returns the ids of the others."""
    by_id = {text.id: text for text in texts}  # deleted twice, a snippet would corrupt the table
    known = _known(model_id, by_id)
    postings = [postings_of(model_id, text) for key, text in by_id.items() if key in known]
    unchanged = [one for one in postings if one.digest == known[one.id].digest]
    _delete(model_id, unchanged, [known[one.id] for one in unchanged])
    return [one.id for one in postings if one.digest != known[one.id].digest]


def _delete_standing(model_id: int, ids: Sequence[int]) -> None:
    """Delete what the table holds for these snippets of the model; reads all of the model's postings."""
    first, last = term_range(model_id)
    standing = [Postings(*row) for row in rows(STANDING, first=first, last=last, ids=id_list(ids))]
    _delete(model_id, standing, list(_known(model_id, ids).values()))


def _delete(model_id: int, postings: Sequence[Postings], snippets: Sequence[Indexed]) -> None:
    write_each(DELETE_POSTINGS, [vars(one) for one in postings])
    write(DELETE_SNIPPETS, ids=id_list(snippet.id for snippet in snippets))
    _count(model_id, -len(snippets), -sum(snippet.terms for snippet in snippets))


def _count(model_id: int, snippets: int, terms: int) -> None:
    """Bring the model's statistics up to date by what was added, or taken away."""
    if snippets:
        write(COUNT, model=model_id, snippets=snippets, terms=terms, version=TERMS_VERSION)


def _known(model_id: int, ids: Iterable[int]) -> dict[int, Indexed]:
    """Return those of the snippets that the model has in the index."""
    known = [Indexed(*row) for row in rows(KNOWN, ids=id_list(ids))]
    return {one.id: one for one in known if one.model_id == model_id}
