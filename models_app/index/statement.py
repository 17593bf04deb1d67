"""Searches one model: both legs and their fusion in one statement, so in one snapshot of the store.

A term carries its model's prefix and BM25 takes the model's own statistics: one model's content never moves another's
scores. SQLite's own bm25() would count the whole table, and gives a word that half the snippets have no weight at all.
"""

import json
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from models_app.index.chunks import ROUNDING, checked
from models_app.index.connection import rows
from models_app.index.keywords import PREFIX_LENGTH, prefix_of
from models_app.index.relevance import UNCALIBRATED, Calibration
from models_app.terms import ENDING_MARK, EXACT_MARK

SEMANTIC, KEYWORD, HYBRID = "semantic", "keyword", "hybrid"

# Chosen by bench_retrieval (nDCG@10). A title word counts as three: stackfaq .778, as one .746. An exact spelling
# counts half beside its root: awsdocs .785, without .750. Numbers, identifiers and names with symbols have no root and
# count as both: scifact .701, as a root alone .696; of 60 questions that wrap an error's code in words of other errors,
# hybrid answers 56, and 19.
TITLE_WEIGHT = 3.0
EXACT_WEIGHT = 0.5
EXACT_FORM = "*[0-9+#.&]*"
# What longer words end with: at .15 the reciprocal rank on xquad de is .948, at .25 .949, at .5 .945.
ENDING_WEIGHT = 0.25
BM25_K1, BM25_B = 1.2, 0.75  # the defaults of Lucene, whose idf is used too: it never falls to 0
# Hybrid adds up two shares, not reciprocal ranks, which know nothing of how far a hit stands before the next: the
# BM25 of a snippet as a share of the best hit's, and how far its cosine rises above the last of the pool, as a share of
# how far the nearest does. So the leg that tells its hits apart decides, and a cutoff moves no score of what it keeps.
# bench_retrieval --sweep: .903 and .894 on the halves (plain RRF .888, .886). The best of 129 ways on the one, other
# pools and weights, is no better on the other (.904, .891): so no weight is tuned.
POOL = 100
# How much of the keyword leg's share counts when its best hit has hardly a word of the question: all of it counts from
# .6 of the question's weight on. Held-out halves .894, always all .893; paraphrases on sites of 20 pages need it.
LEAST_TRUST = 0.4
LEAST_SPAN = 0.005  # what the last of the pool rises, so that hardly different cosines do not decide
# The rarest terms whose postings sum up to this are read, and at least two: it bounds the time of a long question. Of
# 100,000 snippets, for questions of common words alone, the best ten are .85 the exact ones (126 ms; without a budget
# 992 ms), with a budget of 40,000 only .41, with 10,000 .17.
POSTINGS_BUDGET = 100_000

# What a term counts by its kind, whether a snippet has it or none does.
KIND_WEIGHT = """\
CASE
            WHEN substr({term}, %(mark_place)s, 2) = %(ending_mark)s THEN %(ending_weight)s
            WHEN substr({term}, %(mark_place)s, 1) = %(exact_mark)s THEN %(exact_weight)s
            WHEN substr({term}, %(mark_place)s) GLOB %(exact_form)s THEN 1 + %(exact_weight)s
            ELSE 1.0
        END"""
# The parts of the statement that an explanation of its scores shares with it.
WEIGHED_TERMS = f"""\
model (snippets, average_terms) AS MATERIALIZED (
    SELECT snippets, terms * 1.0 / snippets
    FROM ret_model
    WHERE model_id = %(model)s
    AND snippets > 0
),
asked (term, snippets) AS MATERIALIZED (
    SELECT ret_term.term, ret_term.doc
    FROM json_each(%(terms)s) AS question
    CROSS JOIN ret_term
    WHERE ret_term.term = question.value
),
rarest_first (term, snippets, place, postings) AS (
    SELECT term, snippets, row_number() OVER rarest, sum(snippets) OVER rarest
    FROM asked
    WINDOW rarest AS (ORDER BY snippets, term ROWS UNBOUNDED PRECEDING)
),
weighed (term, weight) AS MATERIALIZED (
    SELECT
        term,
        ln(1 + (model.snippets - rarest_first.snippets + 0.5) / (rarest_first.snippets + 0.5))
        * {KIND_WEIGHT.format(term="term")}
    FROM rarest_first
    CROSS JOIN model
    WHERE place <= 2
    OR postings <= %(postings_budget)s
)"""  # noqa: S608 (made of constants)
WHOLE_WEIGHT = f"""\
unknown (weight) AS MATERIALIZED (
    SELECT
        ln(2 + 2 * model.snippets)
        * sum({KIND_WEIGHT.format(term="question.value")})
    FROM json_each(%(terms)s) AS question
    CROSS JOIN model
    WHERE question.value NOT IN (SELECT term FROM asked)
    AND substr(question.value, %(mark_place)s, 2) <> %(ending_mark)s
),
whole (weight) AS MATERIALIZED (
    SELECT coalesce((SELECT sum(weight) FROM weighed), 0) + coalesce((SELECT weight FROM unknown), 0)
)"""  # noqa: S608 (made of constants)
POINTS = """\
weight * frequency * (%(k1)s + 1)
/ (frequency + %(k1)s * (1 - %(b)s + %(b)s * snippet.terms / model.average_terms))"""
SEARCH = f"""
WITH
semantic (id, cosine, relevance, position) AS MATERIALIZED (
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), key + 1
    FROM json_each((
        SELECT topk(%(vector)s, %(pool)s, %(scale)s, chunk.ids, packed.vectors)
        FROM ret_space AS space
        CROSS JOIN ret_chunk AS chunk ON chunk.space_id = space.id
        CROSS JOIN ret_vectors AS packed ON packed.chunk_id = chunk.id
        WHERE space.model_id = %(model)s
        AND space.name = %(space)s
        AND space.dimensions = %(dimensions)s
    ))
),
{WEIGHED_TERMS},
found (id, weight, frequency) AS MATERIALIZED (
    SELECT posting.doc, weighed.weight, sum(CASE posting.col WHEN 'prompt' THEN %(title_weight)s ELSE 1.0 END)
    FROM weighed
    CROSS JOIN ret_posting AS posting
    WHERE posting.term = weighed.term
    GROUP BY weighed.term, posting.doc
),
scored (id, matched, bm25) AS MATERIALIZED (
    SELECT
        found.id,
        sum(weight),
        round(sum(
            {POINTS}
        ), 10)
    FROM found
    CROSS JOIN model
    JOIN ret_snippet AS snippet ON snippet.id = found.id AND snippet.model_id = %(model)s
    GROUP BY found.id
),
{WHOLE_WEIGHT},
enough (matched) AS MATERIALIZED (
    SELECT %(least_matched)s * weight
    FROM whole
    WHERE NOT EXISTS (SELECT 1 FROM semantic WHERE relevance >= %(min_relevance)s)
),
trust (share) AS MATERIALIZED (
    SELECT min(1.0, %(least_trust)s + scored.matched / whole.weight)
    FROM scored
    CROSS JOIN whole
    ORDER BY scored.bm25 DESC, scored.id
    LIMIT 1
),
keyword (id, bm25, position) AS MATERIALIZED (
    SELECT id, bm25, row_number() OVER (ORDER BY bm25 DESC, id)
    FROM scored
    WHERE bm25 >= %(keyword_share)s * (SELECT max(bm25) FROM scored)
    AND matched >= coalesce((SELECT matched FROM enough), 0)
    ORDER BY bm25 DESC, id
    LIMIT %(pool)s
),
pool (farthest, nearest) AS MATERIALIZED (
    SELECT min(cosine) - %(least_span)s, max(cosine) FROM semantic
),
leg (id, score, keyword_rank, bm25, semantic_rank, cosine, relevance) AS (
    SELECT id, trust.share * bm25 / (SELECT max(bm25) FROM keyword), position, bm25, NULL, NULL, NULL
    FROM keyword
    CROSS JOIN trust
    UNION ALL
    SELECT id, (cosine - pool.farthest) / (pool.nearest - pool.farthest), NULL, NULL, position, cosine, relevance
    FROM semantic
    CROSS JOIN pool
    WHERE relevance >= %(min_relevance)s
)
SELECT
    leg.id,
    sum(leg.score) AS fused_score,
    max(leg.keyword_rank),
    max(leg.bm25),
    max(leg.semantic_rank),
    max(leg.cosine),
    max(leg.relevance)
FROM leg
JOIN models_app_trainingsnippet AS snippet ON snippet.id = leg.id AND snippet.model_id = %(model)s
GROUP BY leg.id
ORDER BY fused_score DESC, leg.id
LIMIT %(limit)s
"""  # noqa: S608 (made of constants)


@dataclass(frozen=True)
class IndexQuestion:
    """A question as the index takes it.

    The semantic leg keeps what is at least min_relevance, the cosine as `calibration` reads it (the cosine itself if
    none is given). In hybrid mode the keyword leg keeps what reaches keyword_share of the best hit's score (0: all),
    and each leg hands at most `pool` hits to the fusion. If the semantic leg keeps nothing there, the keyword leg keeps
    only what has words of at least least_matched of the question's weight.
    """

    model_id: int
    mode: str
    terms: tuple[str, ...]
    vector: np.ndarray | None
    space: str
    min_relevance: float = -inf
    keyword_share: float = 0.0
    limit: int = POOL
    least_matched: float = 0.0
    calibration: Calibration = UNCALIBRATED
    pool: int = POOL
    postings_budget: int = POSTINGS_BUDGET


@dataclass(frozen=True)
class IndexHit:
    """A snippet found, with its rank (from 1) and score in each leg that found it; fused in hybrid mode only."""

    id: int
    fused_score: float | None
    keyword_rank: int | None
    bm25: float | None
    semantic_rank: int | None
    cosine: float | None
    relevance: float | None


def search(question: IndexQuestion) -> list[IndexHit]:
    """Return the hits of one model, best first, equal ones by id.

    Without a vector, or with one of another space or size than the stored ones, the semantic leg finds nothing.
    Raises VectorsRefused for what is no unit vector.
    """
    if question.limit < 1:
        return []
    found = rows(SEARCH, **parameters_of(question))
    return [IndexHit(key, fused if question.mode == HYBRID else None, *legs) for key, fused, *legs in found]


def parameters_of(question: IndexQuestion) -> dict[str, Any]:
    """Return what stands in the statement for a question; raises VectorsRefused."""
    is_hybrid = question.mode == HYBRID
    terms = () if question.mode == SEMANTIC else question.terms
    vector = None if question.mode == KEYWORD or question.vector is None else checked([question.vector], 1)
    return {
        "model": question.model_id,
        "terms": json.dumps([prefix_of(question.model_id) + term for term in terms]),
        "vector": b"" if vector is None else vector.tobytes(),
        "space": question.space,
        "dimensions": 0 if vector is None else vector.shape[1],
        "scale": b"" if vector is None else question.calibration.for_question(vector[0]).pack(),
        "min_relevance": max(question.min_relevance - ROUNDING, -1e9),
        "least_trust": LEAST_TRUST,
        "keyword_share": question.keyword_share if is_hybrid else 0.0,
        "least_matched": question.least_matched if is_hybrid and vector is not None else 0.0,
        "pool": question.pool if is_hybrid else question.limit,  # one leg feeds no fusion: its pool is the answer
        "limit": question.limit,
        "mark_place": PREFIX_LENGTH + 1,
        "exact_mark": EXACT_MARK,
        "exact_weight": EXACT_WEIGHT,
        "ending_mark": ENDING_MARK,
        "ending_weight": ENDING_WEIGHT,
        "exact_form": EXACT_FORM,
        "title_weight": TITLE_WEIGHT,
        "postings_budget": question.postings_budget,
        "k1": BM25_K1,
        "b": BM25_B,
        "least_span": LEAST_SPAN,
    }
