"""Writing: after anything that happens, the index is what its snippets give."""

import random
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from models_app import index
from models_app.index import AlreadyIndexed, SnippetText
from models_app.index.connection import rows, write
from models_app.index.keywords import prefix_of
from models_app.models import MLModel, TrainingSnippet
from tenants.store import connection, tenant_atomic
from tests.models_app.index.teaching import SPACE, bm25, found, put, question, random_text, teach, unit

DIMENSIONS = 8192  # so many that a chunk holds 16 vectors: they are merged and rewritten all the time


def test_adding_what_is_there_is_refused_and_changes_nothing(support):
    snippets = teach(support, {1: "alpha"})
    with pytest.raises(AlreadyIndexed):
        index.add_snippets(support.pk, snippets)
    assert index.check_model(support.pk) == []


def test_a_snippet_named_twice_or_of_another_model_is_removed_once_or_not_at_all(support, sales):
    snippets = teach(support, {1: "alpha", 2: "alpha beta"})
    index.remove_snippets(sales.pk, snippets)
    assert found(support, "alpha") == [1, 2]
    index.remove_snippets(support.pk, [snippets[0], snippets[0]])
    TrainingSnippet.objects.filter(pk=1).delete()
    assert found(support, "alpha") == [2]
    assert index.check_model(support.pk) == []


def test_a_rolled_back_transaction_leaves_the_index_as_it_was(support):
    teach(support, {1: "alpha"})
    put(support, {1: unit(1, 0)})
    with pytest.raises(ZeroDivisionError), tenant_atomic():
        teach(support, {2: "alpha"})
        index.remove_snippets(support.pk, [SnippetText(1, "", "alpha")])
        assert found(support, "alpha") == [2]
        raise ZeroDivisionError
    assert found(support, "alpha") == [1]
    assert index.check_model(support.pk) == []


def test_a_snippet_whose_text_changed_past_the_index_is_removed_all_the_same(support):
    teach(support, {1: "alpha beta", 2: "alpha gamma"})
    TrainingSnippet.objects.filter(pk=1).update(completion="delta")
    assert any("another text" in problem for problem in index.check_model(support.pk))
    index.remove_snippets(support.pk, [SnippetText(1, "", "delta")])
    TrainingSnippet.objects.filter(pk=1).delete()
    assert (found(support, "beta"), found(support, "alpha")) == ([], [2])
    assert index.check_model(support.pk) == []


def test_long_id_lists_work_where_sqlite_allows_999_parameters(support, sales):
    snippets = teach(support, {key: f"word{key} common" for key in range(1, 2501)})
    connection().connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)
    vectors = np.tile(unit(1, 1), (2500, 1))
    index.put_vectors(support.pk, SPACE, range(1, 2501), vectors)
    index.drop_vectors(support.pk, SPACE, range(1, 1201))
    assert index.ids_with_vectors(support.pk, SPACE).tolist() == list(range(1201, 2501))
    index.rebuild_store([support.pk])
    assert found(support, "common", limit=2500) == list(range(1, 2501))
    index.remove_snippets(support.pk, snippets)
    assert found(support, "common") == []
    index.add_snippets(support.pk, snippets)
    index.remove_model(support.pk)
    assert rows("SELECT count(*) FROM ret_term") == [(0,)]


def test_check_names_what_is_wrong_and_a_rebuild_mends_it(support, sales):
    snippets = teach(support, {key: f"word{key} common" for key in range(1, 20)})
    other = teach(sales, {100: "common"})
    put(support, {key: unit(1, key) for key in range(1, 20)})
    TrainingSnippet.objects.filter(pk=3).update(completion="changed")
    TrainingSnippet.objects.filter(pk=4).update(embedded_in="elsewhere")
    TrainingSnippet.objects.filter(pk=5).delete()
    write("INSERT INTO ret_fts (rowid, prompt, completion) VALUES (77, '', '000001stray')")
    write("UPDATE ret_model SET terms_version = '0', snippets = 3 WHERE model_id = 1")
    problems = "\n".join(index.check_model(support.pk))
    for part in ("version 0", "1 snippets in the index are no", "another text", "counts", "terms have", "elsewhere"):
        assert part in problems
    assert "1 vectors in test-space belong to no snippet" in problems
    index.rebuild_store([support.pk])
    left = index.check_model(support.pk)
    assert len(left) == 1
    assert "elsewhere" in left[0]
    assert index.check_model(sales.pk) == []
    assert found(sales, "common") == [other[0].id]
    assert len(found(support, "common")) == len(snippets) - 2


def test_check_finds_a_broken_chunk(support):
    teach(support, {1: "a"})
    put(support, {1: unit(1, 0)})
    write("UPDATE ret_vectors SET vectors = zeroblob(8)")
    assert any("is broken" in problem for problem in index.check_model(support.pk))


def damage() -> None:
    """Overwrite the postings in the full-text table's own storage."""
    write("UPDATE ret_fts_data SET block = x'00ff00ff' WHERE id > 10")


def test_a_damaged_table_is_noticed_and_the_store_can_be_rebuilt(support, sales):
    teach(support, {1: "alpha"})
    teach(sales, {2: "alpha"})
    gone = MLModel.objects.create(slug="gone", name="Gone")
    teach(gone, {3: "alpha"})
    put(support, {1: unit(1, 0)})
    put(gone, {3: unit(1, 0)})
    gone.delete()  # past the index
    damage()
    assert "damaged" in index.check_model(support.pk)[0]
    index.rebuild_store([support.pk, sales.pk])
    assert index.check_model(support.pk) == index.check_model(sales.pk) == []
    assert (found(support, "alpha"), found(sales, "alpha")) == ([1], [2])
    assert found(support, mode="semantic", vector=unit(1, 0)) == [1]
    assert rows("SELECT id FROM ret_snippet") == [(1,), (2,)]
    assert rows("SELECT DISTINCT space_id FROM ret_chunk JOIN ret_space AS space ON space.id = space_id") == [(1,)]


def test_models_with_terms_of_another_version_are_rebuilt(support, sales):
    teach(support, {1: "alpha"})
    teach(sales, {2: "alpha"})
    old = "INSERT INTO ret_fts (rowid, prompt, completion) VALUES (1, '', %(term)s)"
    write(old, term=f"{prefix_of(support.pk)}formerly")
    write("UPDATE ret_model SET terms_version = 'older' WHERE model_id = %(model)s", model=support.pk)
    assert index.rebuild_outdated() == [support.pk]
    assert index.rebuild_outdated() == []
    assert index.check_model(support.pk) == []
    assert found(support, "formerly") == []


def test_an_emptied_model_starts_again_with_todays_terms(support):
    snippets = teach(support, {1: "alpha"})
    write("UPDATE ret_model SET terms_version = 'older'")
    index.remove_snippets(support.pk, snippets)
    index.add_snippets(support.pk, snippets)
    assert index.check_model(support.pk) == []


@dataclass
class Mirror:
    """What the index should hold, in plain Python."""

    texts: dict[int, tuple[str, str]] = field(default_factory=dict)
    vectors: dict[int, np.ndarray] = field(default_factory=dict)  # the rows of each snippet

    def nearest(self, vector: np.ndarray, limit: int) -> list[tuple[int, float]]:
        cosines = {key: float(np.vecdot(mine, vector).max()) for key, mine in self.vectors.items()}
        return sorted(cosines.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]


def random_vector(random_: random.Random) -> np.ndarray:
    """Return one of nine vectors, so that equal ones are frequent."""
    return unit(*np.random.default_rng(random_.randrange(9)).normal(size=DIMENSIONS))


def step(random_: random.Random, model: MLModel, mirror: Mirror, fresh_ids: Iterator[int]) -> None:
    """Do one random thing to the index and to its mirror."""
    known = sorted(mirror.texts)
    some = random_.sample(known, min(len(known), random_.randint(1, 8)))
    kind = random_.choice(["add", "add", "remove", "edit", "vectors", "vectors", "drop", "rebuild"])
    if kind == "add":
        added = {
            next(fresh_ids): (random_text(random_, 3), random_text(random_, 12)) for _ in range(random_.randint(1, 6))
        }
        teach(model, added)
        mirror.texts |= added
    elif kind == "vectors" and some:
        made = {key: np.stack([random_vector(random_) for _ in range(random_.randint(1, 4))]) for key in some}
        put(model, made)
        mirror.vectors |= made
    elif kind == "drop" and some:
        index.drop_vectors(model.pk, SPACE, some)
        mirror.vectors = {key: vector for key, vector in mirror.vectors.items() if key not in some}
    elif kind == "rebuild" and random_.random() < 0.2:
        index.rebuild_store([model.pk])
    elif kind in ("remove", "edit") and some:
        index.remove_snippets(model.pk, [SnippetText(key, *mirror.texts.pop(key)) for key in some])
        TrainingSnippet.objects.filter(pk__in=some).delete()
        mirror.vectors = {key: vector for key, vector in mirror.vectors.items() if key not in some}
        if kind == "edit":
            edited = {key: (random_text(random_, 3), random_text(random_, 12)) for key in some}
            teach(model, edited)
            mirror.texts |= edited


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_after_any_operations_the_index_is_what_its_snippets_give(support, sales, seed):
    random_, fresh_ids = random.Random(seed), iter(range(1, 10_000))
    mirrors = {support: Mirror(), sales: Mirror()}
    for number in range(120):
        model = random_.choice([support, sales])
        step(random_, model, mirrors[model], fresh_ids)
        if number % 10 == 9:
            for each, mirror in mirrors.items():
                assert_same(random_, each, mirror)


def assert_same(random_: random.Random, model: MLModel, mirror: Mirror) -> None:
    assert index.check_model(model.pk) == []
    assert index.ids_with_vectors(model.pk, SPACE).tolist() == sorted(mirror.vectors)
    asked = question(model, random_text(random_, 5), limit=1000)
    assert {hit.id: hit.bm25 for hit in index.search(asked)} == pytest.approx(bm25(mirror.texts, asked.terms), abs=1e-9)
    vector = random_vector(random_)
    limit = random_.randint(1, 20)
    hits = index.search(question(model, mode="semantic", vector=vector, limit=limit))
    expected = mirror.nearest(vector, limit)
    assert [hit.cosine for hit in hits] == pytest.approx([cosine for _, cosine in expected], abs=1e-6)
    assert [hit.id for hit in hits] == [key for key, _ in expected]
