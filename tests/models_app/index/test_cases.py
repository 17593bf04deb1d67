"""Cases of the two legs as people report them, through all layers that a question or a change passes."""

import random
import re
import sqlite3

import numpy as np
import pytest
from django.core.management import call_command
from django.db.backends.signals import connection_created

from chat.answer import Asked, answer_now
from chat.models import Turn
from models_app import index, snippets, vectors
from models_app.embedder import space_of
from models_app.exchange import write_lines
from models_app.index.connection import write
from models_app.models import MLModel, TrainingSnippet
from models_app.retrieval import retrieve
from models_app.terms import question_terms
from tenants.store import StoreDamaged, activated, store_of
from tests.damage import damage_table
from tests.fakes.embedding_server import EmbeddingServer, vector_of
from tests.fakes.openai_server import refusal
from tests.fakes.openai_server import vectors as some_vectors
from tests.models_app.index.teaching import random_text

PAGE = "https://acme.test/page"


def ids_for(model: MLModel, words: str, mode: str = "keyword") -> list[int]:
    return [hit.id for hit in retrieve(model, words, mode=mode).hits]


def drafts_of(*texts: str) -> list[TrainingSnippet]:
    return [TrainingSnippet(prompt=f"Part {place}", completion=text) for place, text in enumerate(texts)]


def test_f12_old_words_are_gone_at_once(support, case):
    """As the case has it: changed by its page, then deleted."""
    gone, first, *_, proof = case("F12")["expected"]["results"]
    assert (first, proof) == (["1"], "no error")
    snippets.replace_page_snippets(support, PAGE, drafts_of("alpha beta"))
    row = support.snippets.get()
    snippets.replace_page_snippets(support, PAGE, drafts_of("gamma"))
    assert (ids_for(support, "alpha"), ids_for(support, "gamma")) == (gone, [row.pk])
    snippets.delete(support, [row.pk])
    assert (ids_for(support, "alpha"), ids_for(support, "gamma")) == (gone, gone)
    assert index.check_model(support.pk) == []


@pytest.mark.parametrize("seed", range(4))
def test_f12_however_a_text_goes_its_words_go_with_it(support, seed):
    """Pages that are imported anew, moved and retired, edits, conflicts, deletions by one and by many, and a rebuild.

    Every text has a word that no other ever has: those that answer must be the ones that stand.
    """
    random_, told = random.Random(seed), []

    def text() -> str:
        told.append("q" + "".join("bcdfghjklm"[int(digit)] for digit in f"{len(told):05d}"))
        return f"{told[-1]} {random_text(random_, 12)}"

    def import_page() -> None:
        texts = [text() for _ in range(random_.randint(0, 5))]
        snippets.replace_page_snippets(support, f"{PAGE}/{random_.randrange(4)}", drafts_of(*texts))

    def edit() -> None:
        row = random_.choice(list(support.snippets.all()))
        snippets.edit(row, row.prompt, text(), uri=row.uri)

    def decide() -> None:
        for row in support.snippets.exclude(conflict=""):
            snippets.resolve(row, random_.choice(["mine", "theirs"]))

    def delete_some() -> None:
        some = list(support.snippets.values_list("pk", flat=True))
        snippets.delete(support, random_.sample(some, random_.randint(1, len(some))))

    def move() -> None:
        snippets.move_page(support, f"{PAGE}/{random_.randrange(4)}", f"{PAGE}/{random_.randrange(4, 6)}")

    def retire() -> None:
        snippets.retire_pages(support, [f"{PAGE}/{random_.randrange(6)}"])

    for _ in range(60):
        if not support.snippets.exists():
            snippets.add(support, "By hand", text())
        random_.choice([import_page, import_page, edit, decide, delete_some, move, retire])()
    index.rebuild_store([support.pk])
    standing = {row.completion.split()[0]: {row.pk} for row in support.snippets.all()}
    assert standing, "nothing was left to compare"
    assert len(told) > len(standing)
    assert {word: set(ids_for(support, word)) for word in told} == {word: standing.get(word, set()) for word in told}
    assert index.check_model(support.pk) == []


@pytest.fixture
def server():
    with EmbeddingServer() as running:
        yield running


def ask_at(model: MLModel, url: str, name: str) -> None:
    model.embedding_model, model.provider_base_url = name, url
    model.save()


class TestV02:
    """A model that changed its embedding model: rows that have no vector of the new one yet are found by words."""

    @pytest.mark.parametrize("other", ["second", "third"], ids=["of the same size", "of another size"])
    def test_vectors_of_another_model_answer_no_question_of_this_one(self, support, server, case, other):
        expected = case("V02")["expected"]
        ask_at(support, server.url, "first")
        old, new = (snippets.add(support, f"Fact {number}", text).pk for number, text in ((1, "old words"), (2, "new")))
        index.put_vectors(support.pk, space_of(support).name, [old], server_rows("first", "Fact 1"))
        ask_at(support, server.url, other)
        index.put_vectors(support.pk, space_of(support).name, [new], server_rows(other, "Fact 2"))
        TrainingSnippet.objects.filter(pk=new).update(embedded_in=space_of(support).name)
        hits = {hit.id: hit for hit in retrieve(support, "old words", mode="hybrid").hits}
        names = {old: "old", new: "new"}
        assert {names[key] for key, hit in hits.items() if hit.semantic_rank} <= set(expected["vector_leg_ids"])
        assert set(expected["fused_contains"]) <= {names[key] for key in hits}
        assert hits[old].semantic_rank is None

    def test_the_owner_sees_how_many_have_to_be_embedded(self, support, server, case, browse, ann):
        assert case("V02")["expected"]["admin_warning"].startswith("1 ")
        ask_at(support, server.url, "first")
        snippets.add_many(support, drafts_of("one", "two"))
        vectors.vectorise_missing(support)
        ask_at(support, server.url, "second")
        TrainingSnippet.objects.filter(completion="two").update(embedded_in=space_of(support).name)
        page = browse(ann).get("/acme/models/support/status/")
        assert page.status_code == 200
        assert re.search(r"\b1 (without vector|vectors to make anew)", page.content.decode())


def server_rows(name: str, *titles: str) -> list[list[int]]:
    return [vector_of(name, title) for title in titles]


class TestV03:
    """An embedding service that shuffles its answers, or leaves one out."""

    @pytest.fixture
    def taught(self, support, server):
        ask_at(support, server.url, "first")
        snippets.add_many(support, drafts_of("s0", "s1", "s2"))
        return support

    def test_each_snippet_gets_the_vector_of_its_own_text(self, taught, server, case):
        answer = case("V03")["input"]["response_A"]
        order = [row["index"] for row in answer]
        server.will(some_vectors(*(axis(number) for number in order), indexes=order))
        assert vectors.vectorise_missing(taught) == len(order)
        for number, row in enumerate(taught.snippets.order_by("pk")):
            assert nearest(taught, number) == row.pk

    def test_a_text_that_is_left_out_is_asked_for_and_never_given_anothers_vector(self, taught, server, case):
        indexes = [row["index"] for row in case("V03")["input"]["response_B"]]
        server.will(
            some_vectors(*(axis(number) for number in indexes), indexes=indexes),
            some_vectors(axis(1)),
        )
        assert vectors.vectorise_missing(taught) == 3
        assert server.requests[-1].body["input"] != server.requests[0].body["input"]
        for number, row in enumerate(taught.snippets.order_by("pk")):
            assert nearest(taught, number) == row.pk

    def test_what_is_left_out_for_good_stays_without_a_vector_and_is_made_later(self, taught, server):
        short = some_vectors(axis(0), axis(2), indexes=[0, 2])
        server.will(short, some_vectors(axis(0), indexes=[5]))
        with pytest.raises(vectors.EmbeddingError):
            vectors.vectorise_missing(taught)
        assert snippets.vector_counts(taught) == (0, 3)
        assert vectors.vectorise_missing(taught) == 3


def axis(number: int) -> list[int]:
    return [int(place == number) for place in range(4)]


def nearest(model: MLModel, number: int) -> int:
    """Return which snippet's vector lies on this axis."""
    asked = index.IndexQuestion(model.pk, "semantic", (), np.array(axis(number), np.float32), space_of(model).name)
    return index.search(asked)[0].id


class TestV09:
    """One leg fails: the other answers, the log says which was away, and a damaged index is an error of the program."""

    @pytest.fixture
    def taught(self, support, server):
        ask_at(support, server.url, "first")
        support.retrieval = "hybrid"
        support.save()
        texts = {"Refund 34": "How to ask for a refund after ERR-1234.", "Parcel 2": "Where a parcel is."}
        snippets.add_many(support, [TrainingSnippet(prompt=title, completion=texts[title]) for title in texts])
        vectors.vectorise_missing(support)
        return support

    def ask(self, model, question: str) -> tuple[str, Turn]:
        answer_now(Asked(model, question))
        turn = Turn.objects.latest("pk")
        return turn.hits[0]["title"], turn

    def test_without_embeddings_the_words_answer(self, taught, server, case):
        query = case("V09")["input"]["query"]
        server.will(*[refusal(503)] * 4)
        found, turn = self.ask(taught, query)
        assert (found, turn.outcome) == ("Refund 34", Turn.Outcome.STOP)
        assert "words alone were searched" in turn.degraded

    def test_without_its_index_of_words_the_meaning_answers_and_the_log_names_the_question(self, taught, case, caplog):
        query = f"{case('V09')['input']['query']}?"
        write("UPDATE ret_fts_data SET block = x'00ff00ff' WHERE id > 10")
        found, turn = self.ask(taught, query)
        assert (found, turn.outcome) == ("Refund 34", Turn.Outcome.STOP)
        assert "meaning alone was searched" in turn.degraded
        assert "manage.py rebuild_index acme" in turn.degraded
        assert [(record.levelname, query in record.getMessage()) for record in caplog.records] == [("ERROR", True)]
        call_command("rebuild_index", "acme")
        assert self.ask(taught, query)[1].degraded == ""

    @pytest.mark.parametrize("mode", ["hybrid", "semantic"])
    def test_with_vectors_that_cannot_be_read_the_words_answer(self, taught, mode):
        write("UPDATE ret_vectors SET vectors = zeroblob(10)")
        retrieved = retrieve(taught, "refund ERR-1234", mode=mode)
        assert [hit.title for hit in retrieved.hits] == ["Refund 34"]
        assert "manage.py vectorise acme/support --anew" in retrieved.degraded
        call_command("vectorise", "acme/support", "--anew")
        assert retrieve(taught, "refund 34?", mode=mode).degraded == ""

    def test_keyword_asked_of_an_index_that_cannot_be_read_says_what_to_do(self, taught):
        write("UPDATE ret_fts_data SET block = x'00ff00ff' WHERE id > 10")
        with pytest.raises(StoreDamaged, match=r"manage\.py rebuild_index acme"):
            retrieve(taught, "refund", mode="keyword")

    def test_a_file_of_which_neither_leg_can_be_read_says_what_to_do(self, taught, acme):
        damage_table(store_of(acme), "models_app_trainingsnippet")
        with pytest.raises(StoreDamaged, match="put a back-up"):
            retrieve(taught, "refund", mode="hybrid")


class TestQ08:
    """Where SQLite binds 999 values to a statement, as some builds do, a large site is dealt with as anywhere."""

    COUNT = 2_500

    @pytest.fixture
    def site(self, acme, case):
        """A model with more snippets than values, on one page and on many, on connections of such a build."""
        assert "999" in case("Q08")["input"]["setup"]
        connection_created.connect(_bind_few)
        with activated(acme):
            model = MLModel.objects.create(slug="support", name="Support", retrieval="hybrid")
            self.import_pages(model)
            ids = list(model.snippets.values_list("pk", flat=True))
            turns = np.linspace(0, 3, len(ids))
            index.put_vectors(model.pk, "local", ids, np.stack([np.cos(turns), np.sin(turns)], axis=1))
            yield model
        connection_created.disconnect(_bind_few)

    def import_pages(self, model: MLModel, word: str = "alpha") -> None:
        drafts = drafts_of(*(f"{word} number {number}" for number in range(self.COUNT - 1_000)))
        snippets.replace_page_snippets(model, PAGE, drafts)
        for number in range(1_000):
            snippets.replace_page_snippets(model, f"{PAGE}/{number}", drafts_of(f"{word} page {number}"))

    def test_a_search_may_find_them_all(self, site):
        everything = {"limit": self.COUNT, "pool": self.COUNT, "space": "local"}
        terms = tuple(question_terms("alpha"))
        for mode in ("semantic", "keyword", "hybrid"):
            asked = index.IndexQuestion(site.pk, mode, terms, np.array([1, 0], np.float32), **everything)
            assert len(index.search(asked)) == self.COUNT, mode
        assert len(retrieve(site, "alpha", mode="keyword", limit=self.COUNT).hits) == self.COUNT

    def test_all_are_indexed_anew_exported_edited_and_deleted(self, site):
        index.rebuild_store([site.pk])
        assert index.check_model(site.pk) == []
        ids = list(site.snippets.values_list("pk", flat=True))
        assert b"".join(write_lines(site, ids)).count(b"\n") == self.COUNT
        assert vectors.forget_lost_vectors(site) == 0
        self.import_pages(site, "omega")
        assert index.snippet_count() == self.COUNT
        assert snippets.delete(site, ids) == self.COUNT
        assert index.snippet_count() == site.snippets.count() == 0

    def test_the_sections_that_its_owner_edited_may_all_leave_their_page(self, site):
        site.snippets.filter(uri=PAGE).update(is_edited=True)
        replaced = snippets.replace_page_snippets(site, PAGE, drafts_of("something else"))
        assert replaced.conflicts == self.COUNT - 1_000

    def test_its_questions_and_itself_can_be_deleted(self, site):
        Turn.objects.bulk_create([Turn(model=site, question=f"Question {n}") for n in range(self.COUNT)])
        snippets.delete_model(site)
        assert index.snippet_count() == TrainingSnippet.objects.count() == Turn.objects.count() == 0


def _bind_few(connection, **_) -> None:
    connection.connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)
