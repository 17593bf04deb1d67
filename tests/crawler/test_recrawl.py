"""Importing again: pages asked for on condition, compared with the last import, counted, and old imports dropped."""

import zlib

import pytest
from django.urls import reverse

from crawler.crawl import new_import, start_split
from crawler.models import Import, Page
from crawler.outcome import KEPT_IMPORTS
from crawler.page_snippets import UNCHANGED
from models_app import snippets
from models_app.models import MLModel, Retrieval
from tests.crawler.test_crawl import carry_on, crawl, stored, texts
from tests.fakes.documents import make_docx, word_paragraph
from tests.fakes.openai_server import OpenAIServer, refusal
from tests.fakes.website import Answer, Request, Website, page

# The lease is renewed by a thread of its own, which sees only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

State = Import.State


@pytest.fixture
def website():
    paths = {"/": page("Home", "/a", "/b"), "/a": page("About the mill"), "/b": page("Bread costs 3 euros")}
    with Website(paths) as website:
        yield website


class Versioned:
    """Answers with its text and version, or that the version asked about still stands."""

    def __init__(self, html: str, etag: str):
        self.html, self.etag, self.answered = html, etag, []

    def __call__(self, request: Request) -> Answer:
        is_known = request.headers.get("if-none-match") == self.etag
        self.answered.append(304 if is_known else 200)
        headers = {"ETag": self.etag, "Last-Modified": "Tue, 01 Dec 2026 10:00:00 GMT"}
        return Answer("" if is_known else self.html, 304 if is_known else 200, headers=headers)


class TestConditionalRequests:
    def test_a_page_that_still_stands_is_read_from_what_is_stored(self, model, website):
        website.paths["/b"] = bread = Versioned(page("Bread costs 3 euros", "/c"), '"1"')
        website.paths["/c"] = page("Contact")
        first = crawl(model, website)
        before = texts(model)
        second = crawl(model, website)
        third = crawl(model, website)
        assert bread.answered[-2:] == [304, 304]
        assert stored(second, website) == stored(third, website) == ["/", "/a", "/b", "/c"]
        assert texts(model) == before
        kept = third.pages.get(url=website.url("/b"))
        assert (kept.etag, kept.last_modified) == ('"1"', "Tue, 01 Dec 2026 10:00:00 GMT")
        assert zlib.decompress(kept.source).decode() == bread.html
        assert not first.pages.exclude(source=b"").exists()

    def test_a_document_that_still_stands_is_read_from_what_is_stored(self, model, website):
        body, answered = make_docx(word_paragraph("Rolls cost 1 euro")), []

        def prices(request: Request) -> Answer:
            answered.append(304 if request.headers.get("if-none-match") == '"1"' else 200)
            return Answer(body if answered[-1] == 200 else "", answered[-1], None, headers={"ETag": '"1"'})

        website.paths |= {"/": page("Home", "/prices.docx"), "/prices.docx": prices}
        for _ in range(3):
            job = crawl(model, website, imports_documents=True)
        assert answered == [200, 304, 304]
        document = job.pages.get(url=website.url("/prices.docx"))
        assert (document.state, document.kind, document.change) == ("done", "docx", Page.Change.SAME)
        assert "1 euro" in model.snippets.get(uri=document.url).completion
        job = crawl(model, website)  # documents are not wanted any more
        assert job.pages.get(url=document.url).reason == "not html: docx"
        assert "1 euro" in model.snippets.get(uri=document.url).completion

    def test_a_new_version_is_read_anew(self, model, website):
        website.paths["/b"] = bread = Versioned(page("Bread costs 3 euros"), '"1"')
        crawl(model, website)
        bread.html, bread.etag = page("Bread costs 4 euros"), '"2"'
        job = crawl(model, website)
        assert job.changes["pages"]["changed"] == 1
        assert "4 euros" in "".join(texts(model).values())

    def test_stored_pages_that_were_split_again_are_still_asked_for_on_condition(self, model, website):
        website.paths["/b"] = bread = Versioned(page("Bread costs 3 euros"), '"1"')
        crawl(model, website)
        carry_on(start_split(model))
        crawl(model, website)
        assert bread.answered[-1] == 304

    def test_other_images_are_taken_from_the_stored_page(self, model, website):
        html = '<main><h1>Bike</h1><p>Red</p><img src="/red.jpg" alt="A red bike"></main>'
        website.paths["/b"] = bike = Versioned(html, '"1"')
        crawl(model, website, import_images=False)
        crawl(model, website, import_images=True)
        assert bike.answered[-1] == 304
        assert "red.jpg" in "".join(texts(model).values())


class TestWhatChanged:
    def test_each_page_is_compared_with_the_last_import(self, model, website):
        first = crawl(model, website)
        assert set(first.pages.values_list("change", flat=True)) == {"new"}
        website.paths |= {"/": page("Home", "/a", "/b", "/c"), "/b": page("Bread costs 4 euros"), "/c": page("New")}
        website.paths["/a"] = Answer("gone", 410)
        job = crawl(model, website)
        changes = {page.url.removeprefix(website.url("")): page.change for page in job.pages.all()}
        assert changes == {"/": "changed", "/a": "gone", "/b": "changed", "/c": "new"}
        assert job.changes["pages"] == {"checked": 4, "new": 1, "changed": 2, "same": 0, "gone": 1}
        assert "Of 4 pages checked: 2 changed, 1 new, 1 gone." in job.message

    def test_a_page_that_failed_last_time_is_compared_with_what_it_was_before(self, model, website):
        crawl(model, website)
        good, website.paths["/b"] = website.paths["/b"], Answer("down", 500)
        crawl(model, website)
        website.paths["/b"] = good
        job = crawl(model, website)
        assert job.pages.get(url=website.url("/b")).change == Page.Change.SAME

    def test_words_are_counted(self, model, website):
        job = crawl(model, website)
        assert job.pages.get(url=website.url("/b")).word_count == 5  # its title, “Page”, and four

    def test_the_snippets_that_came_and_went_are_counted(self, model, website):
        assert crawl(model, website).changes["snippets"]["added"] == 3
        website.paths |= {"/a": Answer("gone", 410), "/b": page("Bread costs 4 euros")}
        job = crawl(model, website)
        counted = job.changes["snippets"]
        assert counted["removed"] + counted["changed"] + counted["added"] >= 2
        assert crawl(model, website).changes["snippets"] | {"kept": 0} == dict.fromkeys(counted, 0)


class TestWhatTheOwnerDeleted:
    def test_a_page_whose_snippets_were_all_deleted_stays_away_and_is_not_split_again(self, model, website):
        crawl(model, website)
        snippets.delete(model, model.snippets.filter(uri=website.url("/b")).values_list("pk", flat=True))
        for _ in range(2):
            job = crawl(model, website)
            assert job.pages.get(url=website.url("/b")).report["split"] == UNCHANGED
            assert job.changes["snippets"] == {"added": 0, "changed": 0, "kept": 2, "removed": 0, "conflicts": 0}
        carry_on(start_split(model))
        assert len(texts(model)) == 2

    def test_a_page_comes_back_when_it_says_something_else(self, model, website):
        crawl(model, website)
        snippets.delete(model, list(texts(model)))
        website.paths["/b"] = page("Bread costs 4 euros")
        crawl(model, website)
        assert [text for text in texts(model).values() if "4 euros" in text] == list(texts(model).values())

    def test_a_page_that_was_gone_in_between_comes_back_but_for_what_was_deleted(self, model, website):
        model.max_context_tokens = 100
        model.save()
        words = "We bake it in the old mill from flour that the valley has grown for a hundred years. " * 4
        sections = "".join(f"<h2>{name}</h2><p>{name}. {words}</p>" for name in ("Rye", "Spelt", "Oats"))
        html = f"<!doctype html><title>Bread</title><main><h1>Bread</h1>{sections}</main>"
        website.paths["/b"] = html
        crawl(model, website)
        own = model.snippets.filter(uri=website.url("/b"))
        count = own.count()
        snippets.delete(model, [own.filter(completion__contains="Spelt.").get().pk])
        website.paths["/b"] = Answer("gone", 410)
        crawl(model, website)
        assert not own.exists()
        website.paths["/b"] = html
        crawl(model, website)
        assert own.count() == count - 1
        assert not own.filter(completion__contains="Spelt.").exists()

    def test_the_pages_report_lets_it_be_imported_again(self, model, website, browse, ann):
        crawl(model, website)
        snippets.delete(model, model.snippets.filter(uri=website.url("/b")).values_list("pk", flat=True))
        report = crawl(model, website).pages.get(url=website.url("/b"))
        browser, way = browse(ann), ["acme", "support", report.pk]
        assert (
            "1 section</strong> of this page was deleted"
            in browser.get(reverse("crawler:page_report", args=way)).content.decode()
        )
        answer = browser.post(reverse("crawler:page_dropped", args=way), headers={"HX-Request": "true"})
        assert "The next import of the page brings them again" in answer.content.decode()
        assert len(texts(model)) == 2
        crawl(model, website)
        assert len(texts(model)) == 3

    def test_a_reader_brings_nothing_back(self, model, website, browse, ray):
        report = crawl(model, website).pages.get(url=website.url("/b"))
        snippets.delete(model, list(texts(model)))
        browser, way = browse(ray), ["acme", "support", report.pk]
        assert "Import it again" not in browser.get(reverse("crawler:page_report", args=way)).content.decode()
        assert browser.post(reverse("crawler:page_dropped", args=way)).status_code == 403
        assert model.dropped_sections.count() == 3


class TestWhatTheLLMCost:
    def test_what_was_spent_is_noted_and_then_saved_as_long_as_the_page_stays(self, model, website):
        job = crawl(model, website)
        job.pages.filter(url=website.url("/b")).update(
            report={"split": "llm", "llm": {"calls": 2, "input_tokens": 900, "output_tokens": 100}}
        )
        for _ in range(2):
            again = crawl(model, website)
            assert (again.usage["calls"], again.usage["saved_calls"]) == (0, 2)
            assert (again.usage["saved_input_tokens"], again.usage["saved_output_tokens"]) == (900, 100)
            assert "2 LLM calls with 1,000 tokens saved" in again.message

    def test_an_import_without_an_llm_has_spent_nothing(self, model, website):
        assert set(crawl(model, website).usage.values()) == {0}


def make_many(model: MLModel) -> None:
    """Make more imports than are kept, which have read nothing."""
    for _ in range(KEPT_IMPORTS):
        Import.objects.create(model=model, kind="pages", address="a", max_pages=1, state=State.STOPPED)


class TestOldImports:
    def test_the_newest_are_kept_with_their_pages(self, model, website):
        for number in range(KEPT_IMPORTS + 2):
            old = Import.objects.create(model=model, address="ex.test", max_pages=1, state=State.STOPPED)
            Page.objects.create(job=old, url=f"https://ex.test/{number}")
        newest = crawl(model, website)
        kept = list(Import.objects.values_list("pk", flat=True))
        assert (len(kept), kept[0]) == (KEPT_IMPORTS + 1, newest.pk)  # it has not ended yet when it drops the others
        assert set(Page.objects.values_list("job", flat=True)) == set(kept)

    def test_the_last_import_of_the_whole_site_is_kept_whatever_came_after_it(self, model, website):
        site = crawl(model, website)
        for _ in range(KEPT_IMPORTS + 2):
            Import.objects.create(model=model, address="a", max_pages=1, kind="pages", state=State.STOPPED)
        carry_on(new_import(model, kind=Import.Kind.PAGES, addresses=[website.url("/b")]))
        assert Import.objects.filter(pk=site.pk).exists()
        assert Import.objects.count() == KEPT_IMPORTS + 2  # the newest, the last of the site, and this one

    @pytest.mark.parametrize(
        ("kind", "url"), [("pages", "https://ex.test/alone"), ("files", "hours.pdf"), ("site", "https://other.test/")]
    )
    def test_text_that_no_newer_import_holds_stays_however_old(self, model, website, kind, url):
        old = Import.objects.create(model=model, kind=kind, address=url, max_pages=1, state=State.DONE)
        Page.objects.create(job=old, url=url, state="done", markdown="We open at nine.", content_hash="9")
        Page.objects.create(job=old, url=f"{url}#", state="failed")
        make_many(model)
        crawl(model, website)
        crawl(model, website)  # the first has not ended yet when it looks for the newest of a site
        assert list(old.pages.values_list("url", flat=True)) == [url]
        split = carry_on(start_split(model))
        assert split.pages.filter(url=url, state="done").exists()
        assert "nine" in model.snippets.get(uri=url).completion
        assert not Import.objects.filter(pk=old.pk).exists()  # the split holds it now

    def test_of_rows_in_an_old_file_what_a_newer_file_is_compared_with_stays(self, model, website):
        old, newer = (
            Import.objects.create(model=model, kind="files", address="faq.csv", max_pages=1, state=State.DONE)
            for _ in range(2)
        )
        for job in (old, newer):
            Page.objects.create(job=job, url="faq.csv", state="done", plan=["ab"], report={"selected_by": "rows"})
        make_many(model)
        crawl(model, website)
        assert not Import.objects.filter(pk=old.pk).exists()
        assert newer.pages.get().plan == ["ab"]

    def test_the_last_import_of_the_models_own_website_is_kept(self, model, website):
        model.website = "example.test"
        model.save()
        own = Import.objects.create(model=model, address="www.example.test", max_pages=7, state=State.DONE)
        crawl(model, website)
        make_many(model)
        crawl(model, website)
        assert Import.objects.filter(pk=own.pk).exists()

    def test_what_a_stopped_import_had_read_is_dropped_when_the_page_is_read_anew(self, model, website):
        def stop(job: Import) -> None:
            if job.phase == Import.Phase.SPLITTING:
                job.request_stop()

        stopped = crawl(model, website, stop)
        assert stopped.state == State.STOPPED and stopped.pages.exclude(markdown="").exists()
        crawl(model, website)
        assert not stopped.pages.filter(state="read").exclude(markdown="").exists()


def test_the_text_of_a_page_that_failed_stays_stored(model, website, settings):
    crawl(model, website)
    website.paths["/b"] = Answer("down", 500)
    crawl(model, website)
    assert stored(carry_on(start_split(model)), website) == ["/", "/a", "/b"]


def test_an_embedding_service_that_is_away_loses_no_stored_text(support, settings, website):
    with OpenAIServer() as provider:
        settings.SITEWISE_EMBEDDING_URL, settings.SITEWISE_EMBEDDING_MODEL = provider.url, "fake"
        support.retrieval = Retrieval.HYBRID
        support.save()
        crawl(support, website)
        website.paths["/b"] = page("Bread costs 4 euros")
        provider.will(*[refusal(500)] * 10)
        assert crawl(support, website).state == State.FAILED
        provider.replies.clear()
        job = carry_on(start_split(support))
    assert stored(job, website) == ["/", "/a", "/b"]
