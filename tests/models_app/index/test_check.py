"""What the check of an index finds, that it stands in nobody's way, and that a rebuild mends what can be mended."""

import threading

import numpy as np
import pytest
from django.db import OperationalError

from models_app import index, snippets
from models_app.index.connection import rows, write
from models_app.models import MLModel
from tenants.store import activated, store_of, tenant_atomic
from tests.damage import damage_table
from tests.models_app.index.teaching import SPACE, found, put, question, teach, unit

DAMAGES = {
    "no content": ["DELETE FROM ret_fts_data"],
    "no look-up of terms": ["DELETE FROM ret_fts_idx"],
    "garbage": ["UPDATE ret_fts_data SET block = x'00ff00ff'"],
    "other garbage": ["UPDATE ret_fts_data SET block = x'deadbeefdeadbeefdeadbeefdeadbeef'"],
    "no numbers": ["UPDATE ret_fts_data SET block = NULL"],
    "no version": ["DELETE FROM ret_fts_config"],
    "another version": ["UPDATE ret_fts_config SET v = 99"],
    "a table of its own gone": ["DROP TABLE ret_fts_config"],
    "all tables of its own gone": ["DROP TABLE ret_fts_data", "DROP TABLE ret_fts_idx", "DROP TABLE ret_fts_config"],
    "its name gone": [
        "PRAGMA writable_schema = ON",
        "DELETE FROM sqlite_master WHERE name = 'ret_fts'",
        "PRAGMA writable_schema = RESET",
    ],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_full_text_table_damaged_in_any_way_is_noticed_and_made_anew(acme, damage):
    with activated(acme):
        model = MLModel.objects.create(slug="support", name="Support")
        teach(model, {key: f"alpha beta{key} gamma{key}" for key in range(1, 500)})
        for sql in DAMAGES[damage]:
            write(sql)
    with activated(acme):
        assert_noticed_and_mended(model)


def assert_noticed_and_mended(model: MLModel) -> None:
    assert index.check_model(model.pk)
    compared = index.compare_model(model.pk)
    assert compared.problems
    assert compared.terms.agreeing < compared.terms.count
    index.rebuild_store([model.pk])
    assert index.check_store() == index.check_model(model.pk) == []
    assert index.compare_model(model.pk).terms.agreeing == compared.terms.count
    assert found(model, "beta7") == [7]
    snippets.delete(model, [7])
    assert found(model, "beta7") == []
    assert index.check_model(model.pk) == []


@pytest.mark.parametrize("table", ["ret_fts_data", "ret_fts_idx", "ret_fts_config"])
def test_a_full_text_table_whose_pages_cannot_be_read_is_made_anew(acme, table):
    with activated(acme):
        model = MLModel.objects.create(slug="support", name="Support")
        teach(model, {key: f"alpha beta{key}" for key in range(1, 50)})
    damage_table(store_of(acme), table)
    with activated(acme):
        assert_noticed_and_mended(model)
    with activated(acme):
        assert found(model, "beta8") == [8]


def test_a_term_in_another_place_than_the_snippet_has_it_is_found(support):
    teach(support, {1: "alpha beta", 2: "beta alpha"})
    terms = rows("SELECT term, doc FROM ret_term")
    texts = dict(rows("SELECT doc, group_concat(term, ' ') FROM ret_posting GROUP BY doc"))
    for key, text in texts.items():
        reversed_text = " ".join(reversed(text.split()))
        remove = "INSERT INTO ret_fts (ret_fts, rowid, prompt, completion) VALUES ('delete', %(id)s, '', %(text)s)"
        write(remove, id=key, text=text)
        add = "INSERT INTO ret_fts (rowid, prompt, completion) VALUES (%(id)s, %(text)s, '')"
        write(add, id=key, text=reversed_text)
    assert rows("SELECT term, doc FROM ret_term") == terms
    compared = index.compare_model(support.pk)
    assert compared.snippets.agreeing == 2
    assert compared.terms.agreeing == 0
    assert compared.problems == [f"{compared.terms.count} terms have other postings than the snippets give."]


@pytest.mark.django_db(transaction=True)
def test_comparing_waits_for_no_writer(support, acme):
    teach(support, {1: "alpha"})
    is_writing, may_end = threading.Event(), threading.Event()

    def hold_the_lock() -> None:
        with activated(acme), tenant_atomic():
            write("DELETE FROM ret_snippet")
            is_writing.set()
            may_end.wait(30)

    writer = threading.Thread(target=hold_the_lock)
    writer.start()
    try:
        assert is_writing.wait(30)
        write("PRAGMA busy_timeout = 10")
        assert index.compare_model(support.pk).problems == []
        with pytest.raises(OperationalError, match="locked"):  # and not: damaged
            index.check_store()
    finally:
        may_end.set()
        writer.join()
    assert index.compare_model(support.pk).problems


def test_of_a_snippet_with_one_broken_vector_all_are_dropped_and_the_others_stay(support):
    teach(support, {key: f"word{key}" for key in range(1, 5)})
    put(support, {1: np.stack([unit(1, 0), unit(0, 1)]), 2: unit(1, 1)})
    put(support, {3: unit(1, 2), 4: unit(1, 3)})
    write("UPDATE ret_chunk SET ids = %(ids)s WHERE id = 2", ids=np.array([1, 4], "<i8").tobytes())
    broken = np.array([[1, 0], [0, 1], [np.inf, 1]], np.float32)
    write("UPDATE ret_vectors SET vectors = %(rows)s WHERE chunk_id = 1", rows=np.roll(broken, 1, axis=0).tobytes())
    assert any("is broken: of 1 of its snippets" in problem for problem in index.check_model(support.pk))
    index.rebuild_store([support.pk])
    assert index.check_model(support.pk) == []
    assert index.ids_with_vectors(support.pk, SPACE).tolist() == [2, 4]
    assert {hit.id for hit in index.search(question(support, mode="semantic", vector=unit(1, 1)))} == {2, 4}


@pytest.mark.parametrize(
    ("damage", "left"),
    [
        ("DELETE FROM ret_vectors WHERE chunk_id = 1", [2]),
        ("UPDATE ret_vectors SET vectors = zeroblob(3) WHERE chunk_id = 1", [2]),
        ("UPDATE ret_vectors SET vectors = zeroblob(12) WHERE chunk_id = 1", [2]),
        ("UPDATE ret_chunk SET ids = zeroblob(3) WHERE id = 1", []),
        ("UPDATE ret_chunk SET ids = zeroblob(0) WHERE id = 1", []),
        ("UPDATE ret_chunk SET size = 77 WHERE id = 1", [1, 2]),
        ("UPDATE ret_space SET dimensions = 3", []),
    ],
)
def test_a_broken_chunk_is_dropped_and_all_of_a_space_where_it_does_not_tell_whose_it_was(support, damage, left):
    teach(support, {1: "alpha", 2: "beta"})
    put(support, {1: unit(1, 0)})
    put(support, {2: unit(0, 1)})
    write(damage)
    assert any("is broken" in problem for problem in index.check_model(support.pk))
    index.rebuild_store([support.pk])
    assert index.check_model(support.pk) == []
    assert index.ids_with_vectors(support.pk, SPACE).tolist() == left


def test_vectors_that_belong_to_nothing_are_found_and_removed(support):
    teach(support, {1: "alpha"})
    put(support, {1: unit(1, 0)})
    write("INSERT INTO ret_vectors (chunk_id, vectors) VALUES (99, zeroblob(8))")
    write("INSERT INTO ret_chunk (id, space_id, size, ids) VALUES (98, 97, 1, zeroblob(8))")
    write("INSERT INTO ret_space (model_id, name, dimensions) VALUES (96, 'gone', 2)")
    assert index.check_store() == ["3 sets of vectors belong to no model."]
    index.rebuild_store([support.pk])
    assert index.check_store() == []
    assert index.ids_with_vectors(support.pk, SPACE).tolist() == [1]
