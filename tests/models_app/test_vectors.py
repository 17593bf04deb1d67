"""Vectorising: what is missing is made, in batches that can be stopped, and never mixed up."""

import pytest

from models_app import index, snippets, vectors
from models_app.embedder import space_of
from models_app.retrieval import retrieve
from models_app.tasks import start_vectorising, vectorise
from tests.conftest import needs_local_embedder

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def local_embedder():
    needs_local_embedder()


def fill(model, count: int) -> None:
    for number in range(count):
        snippets.add(model, f"Part {number}", f"Part number {number} is made of steel.")


def test_missing_vectors_are_made_once(support):
    fill(support, 3)
    assert vectors.vectorise_missing(support) == 3
    assert vectors.vectorise_missing(support) == 0
    assert snippets.vector_counts(support) == (3, 3)
    assert index.check_model(support.pk) == []


def test_a_stop_between_batches_keeps_what_was_made(support):
    fill(support, vectors.BATCH + 5)
    calls = []

    def stop_at_the_second():
        calls.append(1)
        if len(calls) == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        vectors.vectorise_missing(support, check=stop_at_the_second)
    assert snippets.vector_counts(support) == (vectors.BATCH, vectors.BATCH + 5)
    assert vectors.vectorise_missing(support) == 5


def test_an_edit_makes_its_vector_missing_again(support):
    fill(support, 2)
    vectors.vectorise_missing(support)
    snippets.edit(support.snippets.first(), "Lamp", "It shines.", uri="")
    assert snippets.vector_counts(support) == (1, 2)
    assert vectors.vectorise_missing(support) == 1
    assert retrieve(support, "something that gives light", mode="semantic").hits[0].title == "Lamp"


def test_a_text_that_changes_while_it_is_embedded_gets_no_stale_vector(support):
    fill(support, 1)

    def edit_meanwhile():
        snippet = support.snippets.first()
        if not snippet.is_edited and snippet.prompt != "Lamp":
            snippets.edit(snippet, "Lamp", "It shines.", uri="")

    batch = list(support.snippets.all())
    edit_meanwhile()
    assert vectors._embed(support, batch) == 0
    assert snippets.vector_counts(support) == (0, 1)


def test_the_job_ends_with_its_message_and_counts(support, acme):
    fill(support, 2)
    job = start_vectorising(support)
    assert start_vectorising(support).pk == job.pk
    vectorise(acme.pk, job.pk)
    job.refresh_from_db()
    assert (job.state, job.done_count, job.total_count) == ("done", 2, 2)
    assert "2 vectors" in job.message
    assert space_of(support).name == support.snippets.first().embedded_in
