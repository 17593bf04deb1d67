"""Whatever is written in whatever order: the index answers as brute force does, and as one made from scratch."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models_app import index, snippets
from models_app.index import Calibration, IndexHit, IndexQuestion, SnippetText
from models_app.index.connection import rows
from models_app.index.relevance import UNCALIBRATED
from models_app.models import MLModel, TrainingSnippet
from models_app.retrieval import LIMIT, cutoffs, retrieve
from models_app.terms import question_terms
from tenants.store import activated, delete_store, store_of, tenant_atomic
from tenants.texts import storable
from tests.models_app.index.brute_force import Knowledge
from tests.models_app.index.teaching import unit

MODELS = ("support", "sales")
# Of 8,192 numbers 16 vectors make a chunk, so that chunks are merged and rewritten.
SPACES = {"small": 8, "large": 8_192}
PROTOTYPES = 9  # so few that equal vectors are frequent
PIECES = (
    *(
        "refund",
        "Refunds",
        "the",
        "price",
        "returning",
        "log in",
        "login",
        "A AND B NOT (C",
        'NEAR("x", 2)*',
        "prompt:a",
    ),
    *("Rückgabebedingungen", "Bedingung", "Donaudampfschifffahrtsgesellschaft", "ERR-1234", "C++", ".NET", "2.10.3"),
    *("退款政策", "退", "東京都の天気", "การคืนเงิน", "คืน", "환불정책을", "שלום החזר", "استرداد والمبلغ", "возвратъ"),
    *(
        "🎉👩‍👩‍👧",
        "\u202eevil\u202c",
        "\x00",
        "\x07\x1b[0m",
        "\ufeff\ufffe",
        "e\u0301te\u0301",
        "ＦＵＬＬ１２",
        "x" * 300,
        "=-x",
    ),
)
# All that a rebuild makes of the texts.
KEYWORD_TABLES = (
    "SELECT term, doc, col, offset FROM ret_posting ORDER BY term, doc, col, offset",
    "SELECT id, model_id, terms, digest FROM ret_snippet ORDER BY id",
    "SELECT model_id, snippets, terms, terms_version FROM ret_model WHERE snippets > 0 ORDER BY model_id",
)


@cache
def vector_of(number: int, space: str) -> np.ndarray:
    return unit(*np.random.default_rng(number).normal(size=SPACES[space]))


def calibration_of(space: str) -> Calibration:
    """Return the scale of a space in which two languages lie apart."""
    unrelated = np.stack([vector_of(100, space), vector_of(101, space)]) * np.float32(0.4)
    return Calibration(0.1, 0.3, 30, unrelated, (0.1, 0.05))


@dataclass(frozen=True)
class Step:
    """One thing that is done to a model: to those of its snippets that the picks choose."""

    kind: str
    model: int
    picks: tuple[int, ...]
    texts: tuple[tuple[str, str], ...]
    prototypes: tuple[int, ...]
    space: str


# The first pieces are frequent, so that snippets and questions have words in common.
pieces = st.sampled_from(PIECES[:12]) | st.sampled_from(PIECES) | st.text(max_size=12)
texts = st.lists(pieces, max_size=8).map(" ".join).map(storable)
picks = st.lists(st.integers(0, 100), min_size=1, max_size=4).map(tuple)
prototypes = st.lists(st.integers(0, PROTOTYPES - 1), min_size=2, max_size=5).map(tuple)
spaces = st.sampled_from(sorted(SPACES))
KINDS = ("add", "add", "edit", "edit", "delete", "move", "vectors", "vectors", "drop", "change space", "rebuild")
steps = st.builds(
    Step,
    kind=st.sampled_from(KINDS),
    model=st.sampled_from(range(len(MODELS))),
    picks=picks,
    texts=st.lists(st.tuples(texts, texts), min_size=2, max_size=4).map(tuple),
    prototypes=prototypes,
    space=spaces,
)


@st.composite
def beginnings(draw) -> list[Step]:
    """Draw how the two models come to their first snippets and vectors."""
    space, taught = draw(spaces), []
    for model in range(len(MODELS)):
        first = draw(st.lists(st.tuples(texts, texts), min_size=6, max_size=12))
        common = {"model": model, "picks": tuple(range(draw(st.integers(3, 12)))), "space": space}
        taught.append(Step(kind="add", texts=tuple(first), prototypes=(), **common))
        taught.append(Step(kind="vectors", texts=(), prototypes=draw(prototypes), **common))
    return taught


@st.composite
def questions(draw) -> tuple[str, IndexQuestion]:
    """Draw a question's text, and the question without its model and retrieval."""
    text, space = draw(st.lists(pieces, min_size=1, max_size=6).map(" ".join)), draw(spaces)
    asked = IndexQuestion(
        model_id=0,
        mode="",
        terms=tuple(question_terms(text)),
        vector=draw(st.sampled_from([None, *(vector_of(number, space) for number in range(PROTOTYPES + 3))])),
        space=space,
        limit=draw(st.sampled_from([1, 3, 50])),
        calibration=draw(st.sampled_from([UNCALIBRATED, calibration_of(space)])),
        pool=draw(st.sampled_from([2, 100])),
        postings_budget=draw(st.sampled_from([3, 100_000])),
        **draw(st.sampled_from([{}, *map(cutoffs, (0.0, 0.3, 0.6))])),
    )
    return text, asked


class Taught:
    """Two models of the active store, and what they should know."""

    def __init__(self):
        self.models = [MLModel.objects.create(slug=slug, name=slug) for slug in MODELS]
        self.known = [Knowledge(vectors={space: {} for space in SPACES}) for _ in MODELS]

    def follow(self, step: Step) -> None:
        model, known = self.models[step.model], self.known[step.model]
        ids = sorted(known.texts)
        some = sorted({ids[pick % len(ids)] for pick in step.picks}) if ids else []
        match step.kind:
            case "add":
                for text in step.texts:
                    known.texts[snippets.add(model, *text).pk] = text
            case "edit":
                for key, text in zip(some, step.texts, strict=False):
                    self._edit(step.model, key, text)
            case "delete":
                snippets.delete(model, some)
                self._forget(step.model, some)
            case "move":
                self._move(step.model, some)
            case "vectors":
                self._give_vectors(step, some)
            case "drop":
                index.drop_vectors(model.pk, step.space, some)
                known.vectors[step.space] = {
                    key: mine for key, mine in known.vectors[step.space].items() if key not in some
                }
            case "change space":
                self._give_vectors(step, ids)
                for other in SPACES.keys() - {step.space}:
                    index.drop_space(model.pk, other)
                    known.vectors[other] = {}
            case "rebuild":
                index.rebuild_store([model.pk for model in self.models])

    def _edit(self, number: int, key: int, text: tuple[str, str]) -> None:
        snippets.edit(TrainingSnippet.objects.get(pk=key), *text, uri="")
        if self.known[number].texts[key] != text:  # else it keeps its vectors
            self._forget(number, [key])
        self.known[number].texts[key] = text

    def _forget(self, number: int, ids: list[int]) -> None:
        for held in (self.known[number].texts, *self.known[number].vectors.values()):
            for key in ids:
                held.pop(key, None)

    def _move(self, number: int, ids: list[int]) -> None:
        """Give snippets to the other model, with their ids."""
        other = 1 - number
        moved = {key: self.known[number].texts[key] for key in ids}
        texts = [SnippetText(key, *text) for key, text in moved.items()]
        with tenant_atomic():
            index.remove_snippets(self.models[number].pk, texts)
            TrainingSnippet.objects.filter(pk__in=ids).update(model=self.models[other])
            index.add_snippets(self.models[other].pk, texts)
        self._forget(number, ids)
        self.known[other].texts |= moved

    def _give_vectors(self, step: Step, ids: list[int]) -> None:
        """Give each snippet one or two vectors."""
        made = {}
        for place, key in enumerate(ids):
            numbers = [step.prototypes[(place + window) % len(step.prototypes)] for window in range(1 + key % 2)]
            made[key] = np.stack([vector_of(number, step.space) for number in numbers])
        put(self.models[step.model], step.space, made)
        self.known[step.model].vectors[step.space] |= made


def put(model: MLModel, space: str, vectors: dict[int, np.ndarray]) -> None:
    if vectors:
        ids = np.repeat(list(vectors), [len(mine) for mine in vectors.values()])
        index.put_vectors(model.pk, space, ids, np.concatenate(list(vectors.values())))


def teach_anew(taught: Taught) -> None:
    """Give the active store, an empty one, all at once what the other one knows."""
    for model, known in zip(taught.models, taught.known, strict=True):
        twin = MLModel.objects.create(pk=model.pk, slug=model.slug, name=model.name)
        texts = [SnippetText(key, *text) for key, text in sorted(known.texts.items())]
        TrainingSnippet.objects.bulk_create([TrainingSnippet(model=twin, **vars(text)) for text in texts])
        index.add_snippets(twin.pk, texts)
        for space, vectors in known.vectors.items():
            put(twin, space, vectors)


def answers_of(taught: Taught, asked: list[tuple[str, IndexQuestion]]) -> Iterator[tuple[Knowledge, IndexQuestion]]:
    """Yield each question to each model under each retrieval, with what that model knows."""
    for model, known in zip(taught.models, taught.known, strict=True):
        for _, question in asked:
            for mode in (index.KEYWORD, index.SEMANTIC, index.HYBRID):
                given = {field.name: getattr(question, field.name) for field in fields(question)}
                yield known, IndexQuestion(**given | {"model_id": model.pk, "mode": mode})


def assert_alike(found: list[IndexHit], expected: list[IndexHit], question: IndexQuestion) -> None:
    """Hold hits to the expected ones: the same order and ranks, scores to 1e-6."""
    assert [hit.id for hit in found] == [hit.id for hit in expected], question
    for one, other in zip(found, expected, strict=True):
        assert (one.keyword_rank, one.semantic_rank) == (other.keyword_rank, other.semantic_rank), question
        scores = [[hit.fused_score, hit.bm25, hit.cosine, hit.relevance] for hit in (one, other)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-6), question


@pytest.fixture
def emptied(acme, globex, store_template):
    """Return the function that gives acme an empty store, and globex another."""

    @contextmanager
    def empty(tenant):
        delete_store(tenant)
        shutil.copyfile(store_template, store_of(tenant).path)
        with activated(tenant):
            yield

    return empty


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, print_blob=False)
@given(
    begun=beginnings(),
    written=st.lists(steps, min_size=3, max_size=12),
    asked=st.lists(questions(), min_size=2, max_size=4),
)
def test_after_any_writes_the_index_answers_as_brute_force_and_as_one_made_from_scratch(
    emptied, acme, globex, begun, written, asked
):
    with emptied(acme):
        taught = Taught()
        for step in (*begun, *written):
            taught.follow(step)
        assert [index.check_model(model.pk) for model in taught.models] == [[], []]
        found = []
        for known, question in answers_of(taught, asked):
            found.append(index.search(question))
            assert_alike(found[-1], known.answer(question), question)
        for text, question in asked:
            hits = retrieve(taught.models[0], text, mode=index.KEYWORD).hits
            wanted = IndexQuestion(taught.models[0].pk, index.KEYWORD, question.terms, None, "", limit=LIMIT)
            assert [hit.id for hit in hits] == [hit.id for hit in taught.known[0].answer(wanted)]
        tables = [rows(sql) for sql in KEYWORD_TABLES]
    with emptied(globex):
        teach_anew(taught)
        assert [rows(sql) for sql in KEYWORD_TABLES] == tables
        for hits, (_, question) in zip(found, answers_of(taught, asked), strict=True):
            assert_alike(index.search(question), hits, question)
