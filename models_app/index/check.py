"""Compares a model's index with its snippets, as if it were made from scratch, and says what differs."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter

import numpy as np
from django.db import DatabaseError

from models_app.index.chunks import REMOVED
from models_app.index.connection import each_row, rows, snapshot
from models_app.index.damage import damage, is_damage
from models_app.index.keywords import Postings, postings_of, stored_texts, term_range, terms_version
from models_app.index.vectors import stored_chunks, stray_count
from models_app.terms import TERMS_VERSION

INDEXED = "SELECT id, terms, digest FROM ret_snippet WHERE model_id = %(model)s"
STATISTICS = "SELECT snippets, terms FROM ret_model WHERE model_id = %(model)s"
POSTINGS = """
SELECT term, doc, col = 'prompt', "offset"
FROM ret_posting
WHERE term >= %(first)s
AND term < %(last)s
"""
# As a question looks for terms: by their names, not one after the other.
NAMED_TERMS = """
SELECT ret_term.term
FROM json_each(%(terms)s) AS question
CROSS JOIN ret_term
WHERE ret_term.term = question.value
"""
EMBEDDED = """
SELECT id, embedded_in
FROM models_app_trainingsnippet
WHERE model_id = %(model)s
AND embedded_in <> ''
"""
TERMS_AT_ONCE = 5_000


@dataclass(frozen=True)
class Agreement:
    """How many of a kind there have to be, and how many of these are in the index as they have to be."""

    count: int
    agreeing: int


@dataclass(frozen=True)
class ModelCheck:
    """How far a model's index is what one made from scratch would be, and what is wrong with it, in sentences."""

    snippets: Agreement  # the length of each, and the digest of its terms
    terms: Agreement  # each place where it occurs, and that it is found by its name
    vectors: Agreement  # that each can be compared, and belongs to a snippet
    problems: list[str]


def check_store() -> list[str]:
    """Return what is wrong with the store's index apart from what its models have in it, in sentences."""
    problems = [damage()]
    if strays := stray_count():
        problems.append(f"{strays} sets of vectors belong to no model.")
    return [problem for problem in problems if problem]


def check_model(model_id: int) -> list[str]:
    """Return what is wrong with the model's index, in sentences; empty when it is what a rebuild would make."""
    return [damaged] if (damaged := damage()) else compare_model(model_id).problems


def compare_model(model_id: int) -> ModelCheck:
    """Compare the model's index with what its snippets give, all as of one moment; no writer waits for it.

    Raises StoreDamaged where the snippets' own rows cannot be read.
    """
    with snapshot():
        made, places = {}, defaultdict(int)
        for text in stored_texts(model_id):
            postings = postings_of(model_id, text)
            made[text.id] = (postings.terms, postings.digest)
            for term, place in _places(postings):
                places[term] += place
        problems: list[str] = []
        snippets = _compare_snippets(model_id, made, problems)
        terms = _compare_terms(model_id, places, problems)
        vectors = _compare_vectors(model_id, set(made), problems)
    return ModelCheck(snippets, terms, vectors, problems)


def _places(postings: Postings) -> Iterator[tuple[str, int]]:
    """Yield each term with a number that stands for the place where it occurs; sums of them tell places apart."""
    for is_title, terms in ((1, postings.prompt), (0, postings.completion)):
        for offset, term in enumerate(terms.split()):
            yield term, hash((postings.id, is_title, offset))


def _compare_snippets(model_id: int, made: dict[int, tuple[int, bytes]], problems: list[str]) -> Agreement:
    indexed = {key: (terms, digest) for key, terms, digest in rows(INDEXED, model=model_id)}
    version = terms_version(model_id)
    if version not in ("", TERMS_VERSION):
        problems.append(f"The terms were made by version {version}, today's is {TERMS_VERSION}.")
    if missing := len(made.keys() - indexed.keys()):
        problems.append(f"{missing} snippets are not in the index.")
    if strays := len(indexed.keys() - made.keys()):
        problems.append(f"{strays} snippets in the index are no snippets of this model.")
    agreeing = sum(indexed.get(key) == one for key, one in made.items())
    if changed := len(made) - missing - agreeing:
        problems.append(f"{changed} snippets were indexed with another text or other terms.")
    counted = (len(indexed), sum(terms for terms, _ in indexed.values()))
    if (rows(STATISTICS, model=model_id) or [(0, 0)])[0] != counted:
        problems.append("The model's counts of snippets and terms are wrong.")
    return Agreement(len(made), agreeing)


def _compare_terms(model_id: int, places: dict[str, int], problems: list[str]) -> Agreement:
    try:
        agreeing, strays = _agreeing_terms(model_id, places)
        hidden = len(agreeing) - _count_named(agreeing)
    except DatabaseError as error:
        if not is_damage(error):
            raise
        problems.append(f"The terms cannot be read ({error.__cause__ or error}).")
        return Agreement(len(places), 0)
    if different := len(places) - len(agreeing) + strays:
        problems.append(f"{different} terms have other postings than the snippets give.")
    if hidden:
        problems.append(f"{hidden} terms are in the index and not found by their names.")
    return Agreement(len(places), len(agreeing) - hidden)


def _agreeing_terms(model_id: int, places: dict[str, int]) -> tuple[list[str], int]:
    """Return the terms that stand in the index just where the snippets have them, and how many no snippet has."""
    agreeing, strays = [], 0
    first, last = term_range(model_id)
    for term, postings in groupby(each_row(POSTINGS, first=first, last=last), key=itemgetter(0)):
        if sum(hash(posting[1:]) for posting in postings) == places.get(term):
            agreeing.append(term)
        strays += term not in places
    return agreeing, strays


def _count_named(terms: Iterable[str]) -> int:
    """Return how many of the terms are found by their names."""
    remaining, count = iter(terms), 0
    while some := list(islice(remaining, TERMS_AT_ONCE)):
        count += len(rows(NAMED_TERMS, terms=json.dumps(some)))
    return count


def _compare_vectors(model_id: int, snippets: set[int], problems: list[str]) -> Agreement:
    ids_by_space: dict[str, list[int]] = defaultdict(list)  # a snippet may have several vectors
    count = agreeing = 0
    for chunk in stored_chunks(model_id):
        if chunk.fault:
            problems.append(f"Chunk {chunk.id} of {chunk.space} is broken: {chunk.fault}.")
        usable = chunk.ids[chunk.is_usable & (chunk.ids != REMOVED)].tolist()
        count += int(np.count_nonzero(chunk.ids)) if chunk.tells_ids else chunk.size  # REMOVED is 0
        agreeing += sum(key in snippets for key in usable)
        ids_by_space[chunk.space] += usable
    flags = rows(EMBEDDED, model=model_id)
    for name in sorted(ids_by_space.keys() | {flag for _, flag in flags}):
        ids = ids_by_space[name]
        if strays := sum(key not in snippets for key in ids):
            problems.append(f"{strays} vectors in {name} belong to no snippet of this model.")
        if missing := {key for key, flag in flags if flag == name}.difference(ids):
            problems.append(f"{len(missing)} snippets count as embedded in {name} and have no vector there.")
    return Agreement(count, agreeing)
