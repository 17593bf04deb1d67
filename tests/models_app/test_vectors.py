"""Vectorising: what is missing is made, in batches that can be stopped, and never mixed up."""

import numpy as np
import pytest

from models_app import index, snippets, vectors
from models_app.embedder import embed_passages, embed_question, space_of
from models_app.index.chunks import REMOVED, unpack_ids
from models_app.index.connection import rows
from models_app.models import TrainingSnippet
from models_app.retrieval import retrieve
from models_app.tasks import start_vectorising, vectorise
from tests.conftest import needs_local_embedder
from tests.fakes.openai_server import OpenAIServer

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def local_embedder():
    needs_local_embedder()


LONG = "The garden has roses, tulips and an old oak that gives shade in July and August.\n\n" * 40
PETS = "Pets are welcome: guests may bring their dogs and cats. A dog costs five euros a day, a cat stays for free."
PAGE = "http://shop.test/page"


def stored_ids() -> list[int]:
    """Return the snippet's id of each vector in the store, ascending."""
    packed = rows("SELECT ids FROM ret_chunk")
    return sorted(key for (ids,) in packed for key in unpack_ids(ids).tolist() if key != REMOVED)


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
    assert vectors._embed(support, space_of(support), batch) == 0
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


def test_a_fact_behind_the_limit_of_the_embedder_is_found_by_meaning(support):
    long = snippets.add(support, "Our house", LONG + PETS)
    snippets.add(support, "Arrival", "The reception is open from nine to five.")
    snippets.add(support, "The forest", "Deer and foxes live in the hills behind the village.")
    question = "Are pets allowed?"
    vectors.vectorise_missing(support)
    support.threshold = 0.2
    best = retrieve(support, question, mode="semantic").hits[0]
    texts = [snippets.embedded_text(snippet) for snippet in support.snippets.order_by("pk")]
    whole = embed_passages(space_of(support), texts)
    cosines = whole @ embed_question(space_of(support), question)
    assert np.argmax(cosines) != 0  # as one vector, cut off at the limit, it was not found
    assert (best.id, best.semantic_rank) == (long.pk, 1)
    assert best.cosine > cosines.max()
    assert stored_ids().count(long.pk) > 1
    assert index.check_model(support.pk) == []
    assert snippets.vector_counts(support) == (3, 3)


def test_an_edit_or_a_deletion_takes_all_vectors_of_a_long_snippet(support):
    long, other = snippets.add(support, "Garden", LONG), snippets.add(support, "Garden", LONG + "The end.")
    vectors.vectorise_missing(support)
    snippets.edit(long, "Garden", "Closed.", uri="")
    snippets.delete(support, [other.pk])
    assert stored_ids() == []
    assert vectors.vectorise_missing(support) == 1
    assert stored_ids() == [long.pk]
    assert index.check_model(support.pk) == []


def test_a_long_page_that_is_replaced_is_found_by_meaning_without_a_gap(support):
    def draft(title: str, text: str) -> TrainingSnippet:
        return TrainingSnippet(prompt=title, completion=text)

    snippets.replace_page_snippets(support, PAGE, [draft("Garden", "Roses."), draft("Hours", "Nine to five.")])
    vectors.vectorise_missing(support)
    drafts = [draft("Garden", LONG), draft("Hours", "Nine to five."), draft("House", LONG + PETS)]
    ahead = vectors.vectors_ahead(support, PAGE, drafts)
    assert sorted(ahead.by_text) == sorted(map(snippets.embedded_text, drafts[::2]))
    snippets.replace_page_snippets(support, PAGE, drafts)
    vectors.store_vectors(support, PAGE, ahead)
    assert snippets.vector_counts(support) == (3, 3)
    assert len(stored_ids()) == 1 + sum(len(rows) for rows in ahead.by_text.values())
    support.threshold = 0  # it is the order that tells of the vectors
    hits = retrieve(support, "Are pets allowed?", mode="semantic").hits
    assert hits[0].title == "House"
    assert len(hits) == len({hit.id for hit in hits})
    assert index.check_model(support.pk) == []


def test_a_batch_is_measured_by_its_windows(support):
    """With an API whose model reads 256 tokens."""
    with OpenAIServer() as server:
        support.embedding_model, support.provider_base_url, support.provider_key = "all-minilm", server.url, "sk-own"
        support.save()
        for number in range(10):
            snippets.add(support, f"Garden {number}", LONG)
        checks = []
        assert vectors.vectorise_missing(support, check=lambda: checks.append(1)) == 10
        texts = [text for request in server.requests for text in request.body["input"]]
    sent = [text for text in texts if LONG[:50] in text]
    assert len(sent) == len(stored_ids()) >= 40
    assert len(checks) >= len(sent) / vectors.BATCH
    assert all(text.startswith("Garden ") for text in sent)
    assert snippets.vector_counts(support) == (10, 10)
    assert index.check_model(support.pk) == []


def test_what_the_page_says_of_an_edited_snippet_is_not_embedded(support):
    def draft(text: str) -> TrainingSnippet:
        return TrainingSnippet(prompt="Garden", completion=text)

    snippets.replace_page_snippets(support, PAGE, [draft("Roses.")])
    edited = snippets.edit(support.snippets.get(), "Garden", "Roses and tulips.", PAGE)
    vectors.vectorise_missing(support)
    assert vectors.vectors_ahead(support, PAGE, [draft("Roses.")]).by_text == {}
    snippets.replace_page_snippets(support, PAGE, [draft("Lilies.")])
    assert vectors.vectors_ahead(support, PAGE, [draft("Lilies.")]).by_text == {}
    edited.refresh_from_db()
    assert snippets.vector_counts(support) == (1, 1)
    ahead = vectors.vectors_ahead(support, PAGE, [draft("Ferns.")])
    snippets.resolve(edited, "theirs")
    snippets.replace_page_snippets(support, PAGE, [draft("Ferns.")])
    vectors.store_vectors(support, PAGE, ahead)
    assert snippets.vector_counts(support) == (1, 1)
