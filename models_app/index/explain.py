"""Takes a snippet's score apart: what each term of a question is worth, and how much of it the snippet has."""

from dataclasses import dataclass

from models_app.index.chunks import unpack_ids
from models_app.index.connection import rows
from models_app.index.keywords import PREFIX_LENGTH
from models_app.index.statement import POINTS, WEIGHED_TERMS, WHOLE_WEIGHT, IndexQuestion, parameters_of

TERMS = f"""
WITH
{WEIGHED_TERMS},
counted (term, in_title, in_text) AS MATERIALIZED (
    SELECT asked.term, sum(posting.col = 'prompt'), sum(posting.col = 'completion')
    FROM asked
    CROSS JOIN ret_posting AS posting
    WHERE posting.term = asked.term
    AND posting.doc = %(id)s
    GROUP BY asked.term
),
found (term, weight, frequency) AS (
    SELECT counted.term, weighed.weight, counted.in_title * %(title_weight)s + counted.in_text
    FROM counted
    JOIN weighed ON weighed.term = counted.term
),
share (term, points) AS (
    SELECT found.term, {POINTS}
    FROM found
    CROSS JOIN model
    JOIN ret_snippet AS snippet ON snippet.id = %(id)s AND snippet.model_id = %(model)s
)
SELECT
    asked.term,
    asked.snippets,
    weighed.weight,
    coalesce(counted.in_title, 0),
    coalesce(counted.in_text, 0),
    coalesce(share.points, 0.0)
FROM asked
LEFT JOIN weighed ON weighed.term = asked.term
LEFT JOIN counted ON counted.term = asked.term
LEFT JOIN share ON share.term = asked.term
"""  # noqa: S608 (made of constants)
MATCHED = f"""
WITH
{WEIGHED_TERMS},
{WHOLE_WEIGHT}
SELECT sum(weighed.weight) / whole.weight
FROM whole
CROSS JOIN weighed
WHERE EXISTS (SELECT 1 FROM ret_posting AS posting WHERE posting.term = weighed.term AND posting.doc = %(id)s)
"""  # noqa: S608 (made of constants)
CHUNK_IDS = """
SELECT chunk.ids
FROM ret_space AS space
JOIN ret_chunk AS chunk ON chunk.space_id = space.id
WHERE space.model_id = %(model)s
AND space.name = %(name)s
"""


@dataclass(frozen=True)
class TermShare:
    """A question's term, and its part in one snippet's BM25."""

    term: str
    snippets: int = 0  # how many of the model have it
    weight: float | None = None  # None: it was not read, as it is not there, or too common for so long a question
    in_title: int = 0
    in_text: int = 0
    points: float = 0.0


def term_shares(question: IndexQuestion, snippet_id: int) -> list[TermShare]:
    """Return each term of the question, in its order; the points add up to the BM25 of the snippet."""
    found = {
        term[PREFIX_LENGTH:]: TermShare(term[PREFIX_LENGTH:], *shares)
        for term, *shares in rows(TERMS, id=snippet_id, **parameters_of(question))
    }
    return [found.get(term) or TermShare(term) for term in question.terms]


def matched_share(question: IndexQuestion, snippet_id: int) -> float:
    """Return how much of the question's weight the snippet has words of, from 0 to 1: what least_matched cuts by."""
    [(share,)] = rows(MATCHED, id=snippet_id, **parameters_of(question))
    return share or 0.0


def vector_count(model_id: int, space: str, snippet_id: int) -> int:
    """Return how many vectors stand for the snippet in the space: one for each window of its text."""
    chunks = rows(CHUNK_IDS, model=model_id, name=space)
    return sum(int((unpack_ids(ids) == snippet_id).sum()) for (ids,) in chunks)
