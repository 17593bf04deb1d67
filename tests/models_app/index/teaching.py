"""Gives models knowledge, asks them, and computes in plain Python what they should answer."""

import math
import random
import re
from collections import Counter

import numpy as np

from models_app import index
from models_app.index import IndexQuestion, SnippetText
from models_app.models import MLModel, TrainingSnippet
from models_app.terms import index_terms, question_terms

SPACE = "test-space"


def question(model: MLModel, text: str = "", mode: str = "keyword", vector=None, **changes) -> IndexQuestion:
    values = {"space": SPACE, "min_relevance": -1.0, "keyword_share": 0.0, "limit": 50} | changes
    return IndexQuestion(model_id=model.pk, mode=mode, terms=tuple(question_terms(text)), vector=vector, **values)


def found(model: MLModel, text: str = "", **changes) -> list[int]:
    return [hit.id for hit in index.search(question(model, text, **changes))]


def teach(model: MLModel, texts: dict[int, str | tuple[str, str]]) -> list[SnippetText]:
    """Give the model snippets (id -> text, or title and text), rows and index alike."""
    pairs = {key: text if isinstance(text, tuple) else ("", text) for key, text in texts.items()}
    TrainingSnippet.objects.bulk_create(
        [TrainingSnippet(pk=key, model=model, prompt=title, completion=text) for key, (title, text) in pairs.items()],
        batch_size=100,
    )
    snippets = [SnippetText(key, title, text) for key, (title, text) in pairs.items()]
    index.add_snippets(model.pk, snippets)
    return snippets


def unit(*numbers: float) -> np.ndarray:
    vector = np.array(numbers, np.float32)
    return vector / np.linalg.norm(vector)


def near(cosine: float) -> np.ndarray:
    """Return a vector with this cosine to [1, 0]."""
    return unit(cosine, math.sqrt(1 - cosine**2))


def put(model: MLModel, vectors: dict[int, np.ndarray], space: str = SPACE) -> None:
    """Give snippets their vectors (id -> one vector, or the rows of several)."""
    matrices = {key: np.atleast_2d(rows) for key, rows in vectors.items()}
    ids = [key for key, rows in matrices.items() for _ in rows]
    index.put_vectors(model.pk, space, ids, np.concatenate(list(matrices.values())))


def bm25(texts: dict[int, tuple[str, str]], asked: tuple[str, ...]) -> dict[int, float]:
    """BM25 as Lucene counts it: k1 1.2, b 0.75, idf ln(1 + (N - n + .5) / (n + .5)); titles three times.

    An exact spelling counts half beside its root; a term with a digit or symbol, which has no root, counts as both.
    """
    titles = {key: Counter(index_terms(title)) for key, (title, _) in texts.items()}
    bodies = {key: Counter(index_terms(text)) for key, (_, text) in texts.items()}
    lengths = {key: titles[key].total() + bodies[key].total() for key in texts}
    average = sum(lengths.values()) / max(len(texts), 1)
    scores: dict[int, float] = {}
    for term in asked:
        holders = [key for key in texts if titles[key][term] or bodies[key][term]]
        idf = math.log(1 + (len(texts) - len(holders) + 0.5) / (len(holders) + 0.5))
        for key in holders:
            frequency = 3 * titles[key][term] + bodies[key][term]
            saturated = frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * lengths[key] / average))
            scores[key] = scores.get(key, 0) + idf * saturated * _weight(term)
    return scores


def _weight(term: str) -> float:
    if term.startswith("="):
        return 0.5
    return 1.5 if re.search(r"[0-9+#.&]", term) else 1


def fused(keyword: dict[int, float], semantic: dict[int, float]) -> dict[int, float]:
    """Hybrid scores of a pool of each leg: BM25 and the rise of the cosine above the last, as shares of the best."""
    best = max(keyword.values(), default=0)
    last = min(semantic.values(), default=0) - 0.005
    span = max(semantic.values(), default=0) - last
    return {
        key: keyword.get(key, 0) / (best or 1) + (semantic.get(key, last) - last) / span
        for key in keyword.keys() | semantic.keys()
    }


WORDS = ("refund", "price", "order", "parcel", "the", "is", "return", "returning", "returns")
ODD_WORDS = ("ship_date", "ERR-1234", "C++", "2.10.3", "Rückgabe", "退款")


def random_text(random_: random.Random, longest: int) -> str:
    return " ".join(random_.choices(WORDS + ODD_WORDS, k=random_.randint(0, longest)))
