"""The semantic leg: what is stored, what is refused, what is near."""

import numpy as np
import pytest

from models_app import index
from models_app.index import NotIndexed, VectorsRefused
from models_app.index.connection import rows
from tests.models_app.index.teaching import SPACE, found, near, put, question, teach, unit


def test_the_filter_comes_before_the_nearest_are_taken(support, sales, case):
    teach(support, dict.fromkeys(range(1, 201), "near"))
    teach(sales, dict.fromkeys(range(301, 304), "far"))
    put(support, {key: near(0.99) for key in range(1, 201)})
    put(sales, {key: near(0.5) for key in range(301, 304)})
    expected = case("V08")["expected"]["result_count"]
    hits = index.search(question(sales, mode="semantic", vector=unit(1, 0), limit=5))
    assert [hit.id for hit in hits] == [301, 302, 303]
    assert len(hits) == expected
    assert [hit.cosine for hit in hits] == pytest.approx([0.5] * 3)
    assert found(sales, "near", mode="hybrid", vector=unit(1, 0)) == [301, 302, 303]


def test_vectors_of_another_model_or_size_are_left_out(support):
    teach(support, {1: "old words", 2: "new", 3: "same size"})
    put(support, {1: unit(*[1] * 8)}, space="m1")
    put(support, {3: unit(1, 0)}, space="m3")
    put(support, {2: unit(1, 0)}, space="m2")
    hits = index.search(question(support, "words", mode="hybrid", vector=unit(1, 0), space="m2"))
    assert {hit.id: hit.semantic_rank for hit in hits} == {1: None, 2: 1}
    assert found(support, mode="semantic", vector=unit(1, 0), space="m1") == []
    assert found(support, mode="semantic", vector=unit(1, 0), space="unknown") == []


def test_the_cutoff_is_on_the_cosine(support):
    teach(support, {1: "a", 2: "b", 3: "c"})
    put(support, {1: near(0.9), 2: near(0.8), 3: near(0.7)})
    assert found(support, mode="semantic", vector=unit(1, 0), min_relevance=0.8) == [1, 2]
    assert found(support, mode="semantic", vector=unit(1, 0), min_relevance=0.95) == []


def test_rounding_does_not_cut_off_an_equal_vector(support):
    candidates = (unit(*np.random.default_rng(seed).normal(size=384)) for seed in range(100))
    vector = next(candidate for candidate in candidates if np.vecdot(candidate, candidate) < 1)
    teach(support, {1: "a"})
    put(support, {1: vector})
    assert found(support, mode="semantic", vector=vector, min_relevance=1.0) == [1]


def test_vectors_that_come_one_by_one_end_up_in_few_chunks(support):
    teach(support, dict.fromkeys(range(1, 101), "a"))
    for key in range(1, 101):
        put(support, {key: unit(1, key)})
    assert rows("SELECT count(*) FROM ret_chunk")[0][0] < 16
    assert index.ids_with_vectors(support.pk, SPACE).tolist() == list(range(1, 101))


@pytest.mark.parametrize(
    "vectors",
    [
        np.array([[np.nan, 1.0]]),
        np.array([[np.inf, 0.0]]),
        np.array([[3.0, 4.0]]),
        np.array([[0.0, 0.0]]),
        np.array([1.0, 0.0]),
        np.ones((2, 1)),
        np.empty((1, 0)),
        np.array([["1", "0"]]),
    ],
)
def test_what_is_no_unit_vector_is_refused(support, vectors):
    teach(support, {1: "a"})
    with pytest.raises(VectorsRefused):
        index.put_vectors(support.pk, SPACE, [1], vectors)
    assert index.ids_with_vectors(support.pk, SPACE).tolist() == []


def test_a_question_that_is_no_unit_vector_is_refused(support):
    with pytest.raises(VectorsRefused):
        found(support, mode="semantic", vector=np.array([np.nan, 1.0]))


def test_vectors_of_another_size_are_refused_while_the_space_holds_some(support):
    teach(support, {1: "a", 2: "b"})
    put(support, {1: unit(1, 0)})
    with pytest.raises(VectorsRefused, match="2 numbers here, these have 3"):
        put(support, {2: unit(1, 0, 0)})
    index.drop_vectors(support.pk, SPACE, [1])
    put(support, {2: unit(1, 0, 0)})
    assert found(support, mode="semantic", vector=unit(1, 0, 0)) == [2]


def test_vectors_of_unknown_snippets_are_refused(support, sales):
    teach(support, {1: "a"})
    with pytest.raises(NotIndexed, match="does not have 1 of these"):
        put(sales, {1: np.stack([unit(1, 0), unit(0, 1)])})


def test_a_vector_put_again_takes_the_place_of_the_old_one(support):
    teach(support, {1: "a", 2: "b"})
    put(support, {1: unit(1, 0), 2: unit(0, 1)})
    put(support, {1: unit(0, 1)})
    [hit] = index.search(question(support, mode="semantic", vector=unit(1, 0), min_relevance=-0.5, limit=1))
    assert (hit.id, hit.cosine) == (1, 0.0)
    assert index.ids_with_vectors(support.pk, SPACE).tolist() == [1, 2]


def test_a_snippet_of_several_vectors_comes_once_with_the_nearest_wherever_they_stand(support):
    teach(support, {1: "a", 2: "b", 3: "c"})
    index.put_vectors(support.pk, SPACE, [3, 1, 2, 1, 3], np.stack([near(c) for c in (0.1, 0.5, 0.8, 0.9, 0.7)]))
    hits = index.search(question(support, mode="semantic", vector=unit(1, 0)))
    assert [(hit.id, hit.semantic_rank) for hit in hits] == [(1, 1), (2, 2), (3, 3)]
    assert [hit.cosine for hit in hits] == pytest.approx([0.9, 0.8, 0.7])
    assert found(support, mode="semantic", vector=unit(1, 0), min_relevance=0.75) == [1, 2]
    assert index.ids_with_vectors(support.pk, SPACE).tolist() == [1, 2, 3]
    assert index.check_model(support.pk) == []


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_the_pool_counts_snippets_not_vectors(support, mode):
    teach(support, dict.fromkeys(range(1, 7), "a"))
    windows = np.stack([near(0.99 - place / 10_000) for place in range(100)])
    put(support, dict.fromkeys(range(1, 4), windows) | {4: near(0.3), 5: near(0.3), 6: near(0.2)})
    changes = {"limit": 5} if mode == "semantic" else {"pool": 5}
    hits = index.search(question(support, mode=mode, vector=unit(1, 0), **changes))
    assert {hit.id: hit.semantic_rank for hit in hits} == {1: 1, 2: 2, 3: 3, 4: 4, 5: 5}


def test_a_snippet_that_fell_out_of_the_pool_comes_back_with_a_nearer_vector(support):
    dimensions = 8192  # 16 vectors make a chunk, and each chunk is scanned for itself
    ids = [1, *range(2, 40), 1]
    cosines = [0.1, *[0.5] * 38, 0.9]
    teach(support, dict.fromkeys(range(1, 40), "a"))
    index.put_vectors(support.pk, SPACE, ids, np.stack([np.pad(near(each), (0, dimensions - 2)) for each in cosines]))
    assert found(support, mode="semantic", vector=np.eye(1, dimensions)[0], limit=3) == [1, 2, 3]


def test_the_vectors_of_a_snippet_go_together(support):
    teach(support, {1: "a", 2: "b"})
    windows = np.stack([unit(1, 0), unit(1, 1), unit(1, 0)])
    put(support, {1: windows, 2: unit(1, 0)})
    put(support, {1: unit(0, 1)})
    assert found(support, mode="semantic", vector=unit(1, 0), min_relevance=0.1) == [2]
    put(support, {1: windows})
    index.drop_vectors(support.pk, SPACE, [1])
    assert index.ids_with_vectors(support.pk, SPACE).tolist() == [2]
    assert found(support, mode="semantic", vector=unit(1, 0)) == [2]
    assert index.check_model(support.pk) == []
