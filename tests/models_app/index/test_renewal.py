"""The keyword leg is made anew beside the one that answers: nobody waits for it, or meets half of it."""

import threading
from collections.abc import Callable
from contextlib import contextmanager

import pytest

from models_app import index, snippets
from models_app.index import renewal
from models_app.index.connection import rows, write
from models_app.models import MLModel
from models_app.retrieval import retrieve
from tenants.store import activated
from tests.models_app.index.teaching import found, teach

pytestmark = pytest.mark.django_db(transaction=True)

COUNT = 1_200  # two whole parts and a rest


@pytest.fixture
def taught(support):
    teach(support, {number: f"refund of parcel{number}" for number in range(1, COUNT + 1)})
    return support


@contextmanager
def beside(tenant, work: Callable[[MLModel, int], None], threads: int = 1):
    """Do the work over and over in threads of their own, each with connections of its own; no error is forgiven."""
    over, errors = threading.Event(), []

    def run() -> None:
        number = 0
        with activated(tenant):
            model = MLModel.objects.get(slug="support")
            while not over.is_set():
                number += 1
                try:
                    work(model, number)
                except Exception as error:
                    errors.append(error)
                    return

    running = [threading.Thread(target=run) for _ in range(threads)]
    for each in running:
        each.start()
    try:
        yield
    finally:
        over.set()
        for each in running:
            each.join()
    assert errors == []


def test_questions_are_answered_in_full_while_the_index_is_made_anew(taught, acme):
    answers = []

    def ask(model, number):
        answers.append([hit.id for hit in retrieve(model, "parcel77", mode="keyword").hits])

    with beside(acme, ask, threads=2):
        for _ in range(3):
            index.rebuild_store([taught.pk])
    assert answers
    assert all(answer == [77] for answer in answers)


def test_what_is_written_meanwhile_is_in_the_new_index(taught, acme):
    def change(model, number):
        kept = snippets.add(model, f"New {number}", "fresh voucher")
        snippets.edit(kept, kept.prompt, "changed voucher", uri="")
        snippets.delete(model, [number])

    with beside(acme, change):
        for _ in range(3):
            index.rebuild_store([taught.pk])
    assert index.check_model(taught.pk) == []
    added = taught.snippets.filter(prompt__startswith="New").count()
    assert added
    assert len(found(taught, "voucher", limit=COUNT)) == added
    assert found(taught, "fresh") == []
    assert len(found(taught, "changed", limit=COUNT)) == added
    assert 1 not in found(taught, "refund", limit=COUNT)


def test_of_two_that_rebuild_at_once_one_goes_on_to_the_end(taught, acme):
    ends = []

    def rebuild() -> None:
        with activated(acme):
            try:
                index.rebuild_store([taught.pk])
                ends.append("done")
            except index.RebuildSuperseded:
                ends.append("superseded")

    both = [threading.Thread(target=rebuild) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert len(ends) == 2
    assert "done" in ends
    assert index.check_model(taught.pk) == []
    assert len(found(taught, "refund", limit=COUNT)) == COUNT


def test_what_a_stopped_rebuild_left_harms_nobody_and_is_gone_after_the_next(taught):
    for sql in renewal.BEGIN:
        write(sql)
    write("INSERT INTO ret_new_run (token) VALUES ('stopped')")
    snippets.add(taught, "Voucher", "Sold here")
    assert found(taught, "parcel77") == [77]
    index.rebuild_store([taught.pk])
    assert rows("SELECT name FROM sqlite_master WHERE name LIKE 'ret_new%%'") == []
    assert index.check_model(taught.pk) == []
    assert len(found(taught, "voucher")) == 1
