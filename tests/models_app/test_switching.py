"""A change of the embedding model: until the new vectors are complete the old ones answer, and then the new ones do."""

import json
import os
import signal
import sys
import threading
import time
import traceback

import numpy as np
import pytest

from models_app import index, snippets, vectors
from models_app.behaviour import BehaviourForm
from models_app.embedder import EmbeddingError, answering_space, space_of
from models_app.models import MLModel, TrainingSnippet
from models_app.retrieval import retrieve
from models_app.switching import begin_answering, is_switching, without_vector
from tenants.models import Role
from tenants.store import activated
from tests.fakes.embedding_server import CLASSES, EmbeddingServer, passages_of, vector_of
from tests.fakes.openai_server import refusal
from tests.fakes.openai_server import vectors as one_vector

pytestmark = pytest.mark.django_db
COUNT = 100  # one of each class
MANY = 5_000
PAUSE_SECONDS = 0.02  # between two questions: who asks must not starve who makes vectors


@pytest.fixture
def server():
    with EmbeddingServer() as running:
        yield running


@pytest.fixture
def taught(support, server) -> MLModel:
    """A model that answers in the space of "first", at the tenant's own provider."""
    choose(support, "first", provider_base_url=server.url, provider_key="sk-own")
    teach(support, COUNT)
    vectors.vectorise_missing(support)
    return support


def teach(model, count: int) -> None:
    snippets.add_many(model, [TrainingSnippet(prompt=f"Fact {n}", completion="It is so.") for n in range(count)])


def choose(model, embedding_model: str, **changes) -> None:
    """Save the Behaviour dialog with another embedding model."""
    form = BehaviourForm(Role.OWNER, instance=MLModel.objects.get(pk=model.pk))
    sent = {field.html_name: field.value() for field in form if field.value() not in (None, False)}
    form = BehaviourForm(
        Role.OWNER,
        {**sent, "embedding_model": embedding_model, **changes},
        instance=MLModel.objects.get(pk=model.pk),
    )
    assert form.is_valid(), form.errors
    form.save()
    model.refresh_from_db()


def found(model, question: int) -> set[int]:
    """Return the numbers of the facts that the question finds by meaning, where that leg is not left out."""
    retrieved = retrieve(model, f"Which is {question}?", mode="semantic")
    return set() if retrieved.degraded else {int(hit.title.split()[1]) for hit in retrieved.hits}


def answers(model) -> str:
    """Return the name of the embedding model in whose space all questions are answered, as all must be."""
    spaces = [
        {name for name in ("first", "second", "third") if found(model, question) == passages_of(name, question, COUNT)}
        for question in (0, 42)
    ]
    assert spaces[0] == spaces[1] != set()
    return spaces[0].pop()


class Killed(Exception):
    pass


def dies_after(batches: int):
    """Return a check that ends the work when this many batches are made."""
    left = batches

    def check():
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    return check


def make_some(model, batches: int = 1) -> None:
    with pytest.raises(Killed):
        vectors.vectorise_missing(model, check=dies_after(batches))


@pytest.mark.parametrize("other", ["second", "third"], ids=["of the same size", "of another size"])
def test_the_old_vectors_answer_until_the_new_ones_are_complete(taught, server, other):
    choose(taught, other)
    assert (answers(taught), is_switching(taught)) == ("first", True)
    make_some(taught, 2)
    assert snippets.vector_counts(taught) == (2 * vectors.BATCH, COUNT)
    assert answers(taught) == "first"
    assert vectors.vectorise_missing(taught) == COUNT - 2 * vectors.BATCH
    assert (answers(taught), is_switching(taught)) == (other, False)
    assert index.space_names(taught.pk) == [space_of(taught).name]
    assert len(server.passages(other)) == COUNT, "each was embedded once, however often the run was ended"
    assert index.check_model(taught.pk) == []


def test_a_worker_that_is_killed_loses_no_more_than_its_last_batch(acme, server):
    with activated(acme):
        model = MLModel.objects.create(slug="support", name="Support")
        choose(model, "first", provider_base_url=server.url, provider_key="sk-own")
        teach(model, COUNT)
        give_vectors(model, "first")
        choose(model, "second")
    child = os.fork() or die_making_vectors(acme, model)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with activated(acme):
        assert snippets.vector_counts(model) == (2 * vectors.BATCH, COUNT)
        assert answers(model) == "first"
        assert vectors.vectorise_missing(model) == COUNT - 2 * vectors.BATCH
        assert answers(model) == "second"
        assert index.check_model(model.pk) == []


def die_making_vectors(tenant, model) -> None:
    """In a process of its own: kill it when two batches are made."""
    looks = []

    def check():
        looks.append(1)
        if len(looks) == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        with activated(tenant):
            vectors.vectorise_missing(model, check=check)
    finally:
        os._exit(1)


def test_another_provider_is_another_space_and_the_old_one_is_asked_with_its_own_key_until_the_switch(taught, server):
    with EmbeddingServer() as elsewhere:
        choose(taught, "second", provider_base_url=elsewhere.url, provider_key="sk-new")
        make_some(taught)
        assert answers(taught) == "first"
        keys = {
            name: {r.headers["authorization"] for r in at.requests}
            for name, at in (("old", server), ("new", elsewhere))
        }
        assert keys == {"old": {"Bearer sk-own"}, "new": {"Bearer sk-new"}}
        vectors.vectorise_missing(taught)
        assert answers(taught) == "second"
    taught.refresh_from_db()
    assert (taught.answering_base_url, taught.answering_key_encrypted) == ("", "")


def test_a_model_of_the_same_name_at_another_provider_is_another_one(taught):
    with EmbeddingServer() as elsewhere:
        choose(taught, "first", provider_base_url=elsewhere.url, provider_key="sk-new")
        assert is_switching(taught)
        assert vectors.vectorise_missing(taught) == COUNT


def test_to_change_ones_mind_costs_nothing(taught, server):
    choose(taught, "second")
    make_some(taught)
    sent = len(server.passages("first"))
    choose(taught, "first")
    assert snippets.vector_counts(taught) == (COUNT, COUNT)
    assert vectors.vectorise_missing(taught) == 0
    assert (answers(taught), len(server.passages("first"))) == ("first", sent)
    assert index.space_names(taught.pk) == [space_of(taught).name]
    assert index.check_model(taught.pk) == []


def test_a_further_change_starts_again_and_the_first_answers_on(taught, server):
    choose(taught, "second")
    make_some(taught)
    choose(taught, "third")
    assert answers(taught) == "first"
    assert vectors.vectorise_missing(taught) == COUNT
    assert answers(taught) == "third"
    assert index.space_names(taught.pk) == [space_of(taught).name]


def test_a_change_while_vectors_are_made_is_followed_by_the_same_run(taught, server):
    choose(taught, "second")
    batches = []

    def change_at_the_second():
        batches.append(1)
        if len(batches) == 2:
            choose(MLModel.objects.get(pk=taught.pk), "third")

    vectors.vectorise_missing(taught, check=change_at_the_second)
    assert answers(taught) == "third"
    assert len(server.passages("second")) == vectors.BATCH


def test_what_is_new_or_edited_meanwhile_is_found_among_the_old_vectors_too(taught, server):
    choose(taught, "second")
    make_some(taught)
    snippets.edit(taught.snippets.get(prompt="Fact 42"), "Fact 42", "It is otherwise.", uri="")
    snippets.add(taught, "Fact 142", "It is new.")
    assert found(taught, 42) == set(), "nothing has embedded them yet"
    assert set(without_vector(taught).values_list("prompt", flat=True)) == {"Fact 42", "Fact 142"}
    make_some(taught)
    assert (found(taught, 42), is_switching(taught)) == ({42, 142}, True)
    vectors.vectorise_missing(taught)
    assert found(taught, 49) == {42, 142}


def test_a_page_that_is_replaced_meanwhile_stays_found_by_meaning(taught, server):
    page = "https://acme.test/page"
    choose(taught, "second")
    drafts = [
        TrainingSnippet(prompt="Fact 1042", completion="Old."),
        TrainingSnippet(prompt="Fact 1043", completion="x"),
    ]
    snippets.replace_page_snippets(taught, page, drafts)
    make_some(taught)
    drafts[0].completion = "New."
    ahead = vectors.vectors_ahead(taught, page, drafts)
    snippets.replace_page_snippets(taught, page, drafts)
    vectors.store_vectors(taught, page, ahead)
    assert 1042 in found(taught, 42)
    vectors.vectorise_missing(taught)
    assert 1042 in found(taught, 49)
    assert index.check_model(taught.pk) == []


def test_what_is_imported_again_or_moved_is_not_embedded_again(taught, server):
    page = "https://acme.test/page"
    drafts = [TrainingSnippet(prompt=f"Fact {number}", completion="On a page.") for number in (201, 202, 203)]
    snippets.replace_page_snippets(taught, page, drafts)
    assert vectors.vectorise_missing(taught) == 3
    sent = len(server.passages("first"))
    for again in (drafts, drafts[::-1], drafts[1:] + drafts[:1]):
        ahead = vectors.vectors_ahead(taught, page, again)
        snippets.replace_page_snippets(taught, page, again)
        vectors.store_vectors(taught, page, ahead)
    snippets.move_page(taught, page, "https://acme.test/moved")
    assert vectors.vectorise_missing(taught) == 0
    assert len(server.passages("first")) == sent
    assert 202 in found(taught, 2)


def test_texts_that_are_the_same_are_embedded_once_in_a_batch(taught, server):
    sent = len(server.passages("first"))
    snippets.add_many(taught, [TrainingSnippet(prompt="Fact 300", completion="Ten times.") for _ in range(10)])
    assert vectors.vectorise_missing(taught) == 10
    assert len(server.passages("first")) == sent + 1


def test_while_the_old_service_is_away_the_words_answer_and_the_new_vectors_are_made(taught, server):
    with EmbeddingServer() as elsewhere:
        choose(taught, "second", provider_base_url=elsewhere.url, provider_key="sk-new")
        snippets.add(taught, "Fact 142", "It is new.")
        server.will(*[refusal(500)] * 4)
        retrieved = retrieve(taught, "Fact 42?", mode="hybrid")
        assert "words alone" in retrieved.degraded
        assert retrieved.hits[0].title == "Fact 42"
        assert vectors.vectorise_missing(taught) == COUNT + 1
        assert found(taught, 49) == {42, 142}


def test_a_key_that_is_forgotten_is_forgotten_for_the_old_vectors_too(taught, server):
    choose(taught, "", provider_base_url="", forgets_provider_key="on")
    taught.refresh_from_db()
    assert taught.provider_key_encrypted == taught.answering_key_encrypted == ""


def test_the_key_of_a_provider_that_is_left_is_kept_for_no_longer_than_it_is_asked(taught, server):
    choose(taught, "", provider_base_url="")
    assert (taught.provider_key, answering_space(taught).own_url) == ("", server.url)
    assert answers(taught) == "first"
    choose(taught, "first", provider_base_url=server.url, provider_key="sk-own")
    assert (taught.answering_base_url, taught.answering_key_encrypted) == ("", "")
    assert answers(taught) == "first"


def test_the_operators_change_of_model_is_a_switch_like_any_other(support, server, settings):
    settings.SITEWISE_EMBEDDING_URL, settings.SITEWISE_EMBEDDING_MODEL = server.url, "first"
    settings.SITEWISE_EMBEDDING_KEY = "operators"
    teach(support, COUNT)
    vectors.vectorise_missing(support)
    settings.SITEWISE_EMBEDDING_MODEL = "second"
    assert answers(support) == "first"
    make_some(support)
    assert answers(support) == "first"
    vectors.vectorise_missing(support)
    assert answers(support) == "second"


def test_the_operators_key_goes_nowhere_but_to_the_operators_address(support, server, settings):
    settings.SITEWISE_EMBEDDING_URL, settings.SITEWISE_EMBEDDING_MODEL = server.url, "first"
    settings.SITEWISE_EMBEDDING_KEY = "operators"
    teach(support, COUNT)
    vectors.vectorise_missing(support)
    asked = len(server.requests)
    with EmbeddingServer() as elsewhere:
        settings.SITEWISE_EMBEDDING_URL, settings.SITEWISE_EMBEDDING_MODEL = elsewhere.url, "second"
        assert "not set any more" in retrieve(support, "Which is 1?", mode="semantic").degraded
        assert len(server.requests) == asked
        vectors.vectorise_missing(support)
        assert answers(support) == "second"


def test_a_model_whose_vectors_are_all_gone_has_nothing_to_wait_for(taught):
    snippets.delete(taught, taught.snippets.values_list("pk", flat=True))
    teach(taught, COUNT)
    choose(taught, "second")
    make_some(taught)
    assert answering_space(taught) == space_of(taught)


def test_another_model_under_the_same_name_is_refused_until_all_is_made_anew(taught, server):
    snippets.add(taught, "Fact 142", "It is new.")
    server.will(one_vector([1, 1, 1]))
    with pytest.raises(EmbeddingError, match="vectorise TENANT/MODEL --anew"):
        vectors.vectorise_missing(taught)
    server.will(one_vector([1, 1, 1]))
    assert "another model under its name" in retrieve(taught, "Fact 42?", mode="hybrid").degraded
    vectors.forget_vectors(taught)
    assert vectors.vectorise_missing(taught) == COUNT + 1


class TestUnderQuestions:
    """5,000 snippets change their embedding model twice, while threads and processes ask."""

    def test_no_answer_is_empty_or_mixed(self, acme, server, tmp_path):
        with activated(acme):
            model = MLModel.objects.create(slug="support", name="Support")
            choose(model, "first", provider_base_url=server.url, provider_key="sk-own")
            teach(model, MANY)
            give_vectors(model, "first")
        readers = [start_process(acme, model, tmp_path / f"process-{number}") for number in range(2)]
        thread = threading.Thread(target=ask_on, args=(acme, model, tmp_path / "thread"))
        thread.start()
        with activated(acme):
            for other in ("second", "third"):
                choose(model, other)
                vectors.vectorise_missing(model)
            assert index.check_model(model.pk) == []
        thread.join()
        assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in readers] == [0, 0]
        for path in tmp_path.iterdir():
            told = json.loads(path.read_text())
            assert told["wrong"] == []
            assert min(told["answers"].values()) > 0, told


def give_vectors(model, name: str) -> None:
    """Give all snippets their vectors as the server would, without asking it."""
    keys = dict(model.snippets.values_list("prompt", "pk"))
    rows = np.array([vector_of(name, title) for title in keys])
    index.put_vectors(model.pk, space_of(model).name, list(keys.values()), rows)
    model.snippets.update(embedded_in=space_of(model).name)
    begin_answering(model, space_of(model))


def ask_on(tenant, model, path) -> None:
    """Ask one question after another until the last space answers; write how many answers came wholly of each."""
    counts, wrong, question = dict.fromkeys(("first", "second", "third"), 0), [], 0
    expected = {name: [passages_of(name, number, MANY) for number in range(CLASSES)] for name in counts}
    with activated(tenant):
        while counts["third"] < 20:
            question = (question + 1) % CLASSES
            time.sleep(PAUSE_SECONDS)
            hits = found(model, question)
            spaces = [name for name in counts if hits == expected[name][question]]
            if spaces:
                counts[spaces[0]] += 1
            else:
                wrong.append([question, sorted(hits)])
                if len(wrong) > 3:
                    break
    path.write_text(json.dumps({"answers": counts, "wrong": wrong}))


def start_process(tenant, model, path) -> int:
    """Return the id of a process that asks; it has a connection of its own to the store, and no other."""
    if child := os.fork():
        return child
    try:
        ask_on(tenant, model, path)
        os._exit(0)
    except BaseException:
        traceback.print_exc(file=sys.stderr)
        os._exit(1)
