"""What an import reads: single pages, stored pages split anew, and what its options let in and keep out."""

from datetime import timedelta

import pytest
from django.utils import timezone

from crawler.crawl import (
    ImportRunning,
    NothingStored,
    NothingToImport,
    new_import,
    retry_failed,
    split_options,
    start_split,
)
from crawler.models import Import, Page
from crawler.page_snippets import UNCHANGED
from crawler.web.render import is_available
from crawler.web.site import SiteUnreachable
from models_app.models import MLModel
from tests.conftest import needs
from tests.crawler.test_crawl import Killed, carry_on, crawl, reasons, stored, texts
from tests.fakes.documents import make_docx, word_paragraph
from tests.fakes.website import Answer, Request, Website, page, redirect

# The lease is renewed by a thread of its own, which sees only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

State, Kind = Import.State, Import.Kind
FOOT = "<footer>Call 0800 4444</footer>"
LARGE = "".join(f"<h2>Part {part}</h2><p>{f'word{part} ' * 200}</p>" for part in range(6))


@pytest.fixture
def website():
    paths = {
        "/": page("Home", "/a", "/b") + FOOT,
        "/a": page("About the mill", "/b", "/c") + FOOT,
        "/b": page("Bread costs 3 euros") + FOOT,
        "/c": page("Contact us by phone") + FOOT,
    }
    with Website(paths) as website:
        yield website


def read_pages(model: MLModel, website: Website, *paths: str, **options) -> Import:
    addresses = [path if "://" in path else website.url(path) for path in paths]
    return carry_on(new_import(model, kind=Kind.PAGES, addresses=addresses, **options))


def site_texts(model: MLModel) -> list[str]:
    return list(model.snippets.filter(source="site").values_list("completion", flat=True))


class TestSinglePages:
    def test_the_pages_are_read_and_no_link_is_followed(self, model, website):
        job = read_pages(model, website, "/a", "/b")
        assert (job.state, stored(job, website)) == (State.DONE, ["/a", "/b"])
        assert job.address == f"{website.url('/a')} and 1 more"
        assert website.asked("/c") == website.asked("/sitemap.xml") == 0

    def test_a_redirect_on_the_host_is_followed(self, model, website):
        website.paths["/old"] = redirect("/b")
        assert stored(read_pages(model, website, "/old"), website) == ["/b"]

    def test_pages_of_several_sites_are_read_in_one_import(self, model, website):
        with Website({"/x": page("Elsewhere")}) as other:
            job = read_pages(model, website, "/a", other.url("/x"))
            assert sorted(texts(model).values()) != []
            assert {page.url for page in job.pages.all()} == {website.url("/a"), other.url("/x")}

    def test_robots_forbid_single_pages_too(self, model, website):
        website.paths["/robots.txt"] = Answer("User-agent: *\nDisallow: /b", content_type="text/plain")
        job = read_pages(model, website, "/a", "/b")
        assert reasons(job, website, "skipped") == {"/b": "disallowed by robots"}
        assert website.asked("/b") == 0

    def test_a_page_that_is_gone_is_retired_and_nothing_else(self, model, website):
        crawl(model, website)
        website.paths["/b"] = Answer("gone", 410)
        job = read_pages(model, website, "/b")
        assert job.state == State.DONE
        assert sorted(model.snippets.filter(source="crawl").values_list("uri", flat=True)) == [
            website.url(path) for path in ("/", "/a", "/c")
        ]
        assert job.changes["pages"]["gone"] == 1

    def test_pages_that_fail_end_the_import_and_keep_their_snippets(self, model, website):
        crawl(model, website)
        website.paths["/b"] = Answer("down", 500)
        assert read_pages(model, website, "/b").state == State.FAILED
        assert model.snippets.filter(uri=website.url("/b")).exists()

    def test_a_list_without_an_address_is_refused(self, model):
        for addresses in ([], ["ftp://ex.test/"]):
            with pytest.raises(SiteUnreachable):
                new_import(model, kind=Kind.PAGES, addresses=addresses)

    def test_what_the_sites_snippets_hold_is_not_kept_again(self, model, website):
        crawl(model, website)
        website.paths["/b"] = page("Bread costs 4 euros") + FOOT
        read_pages(model, website, "/b")
        assert site_texts(model) == ["Call 0800 4444"]
        assert "4 euros" in "".join(texts(model).values())

    @pytest.mark.parametrize("times", [1, 2])
    def test_what_only_the_page_says_around_its_text_is_kept_until_the_site_is_imported(self, model, website, times):
        for _ in range(times):
            read_pages(model, website, "/b")
            assert site_texts(model) == ["Call 0800 4444"]
        crawl(model, website)
        assert site_texts(model) == ["Call 0800 4444"]
        assert model.snippets.get(source="site").uri == website.url("/")

    def test_the_sites_snippet_stands_when_its_start_page_is_read_alone(self, model, website):
        crawl(model, website)
        read_pages(model, website, "/")
        assert model.snippets.get(source="site").uri == website.url("/")

    def test_what_failed_is_read_again(self, model, website):
        website.paths |= {"/b": Answer("down", 500), "/c": Answer("gone", 404)}
        first = crawl(model, website, import_images=False)
        website.paths["/b"] = page("Bread costs 3 euros")
        again = carry_on(retry_failed(first))
        assert (again.kind, again.import_images) == (Kind.PAGES, False)
        assert again.addresses == [website.url("/b"), website.url("/c")]
        assert stored(again, website) == ["/b"]
        website.paths["/c"] = page("Contact")
        carry_on(retry_failed(again))
        with pytest.raises(NothingToImport):
            retry_failed(Import.objects.first())


class TestStoredPages:
    @pytest.fixture
    def large(self, website):
        website.paths["/a"] = f"<title>A</title><main><h1>A</h1>{LARGE}</main>"
        return website

    def test_another_limit_of_tokens_splits_anew_and_fetches_nothing(self, model, large):
        crawl(model, large)
        counts, asked = [], len(large.requests)
        for tokens in (1_000, 2_000, 4_000):
            model.max_context_tokens = tokens
            model.save()
            job = carry_on(start_split(model))
            counts.append(len(texts(model)))
        assert counts == sorted(counts, reverse=True) and counts[0] > counts[-1]
        assert len(large.requests) == asked
        assert job.state == State.DONE and job.pages.filter(state="done").count() == 3
        assert site_texts(model) == ["Call 0800 4444"]

    def test_with_the_same_limit_every_row_stays(self, model, large):
        crawl(model, large)
        before = texts(model)
        job = carry_on(start_split(model))
        assert texts(model) == before
        assert {page.report["split"] for page in job.pages.all()} == {UNCHANGED}
        assert job.changes["pages"] == {"checked": 3, "new": 0, "changed": 0, "same": 3, "gone": 0}

    def test_the_newest_text_of_each_page_is_taken_whichever_import_has_it(self, model, website):
        crawl(model, website)
        website.paths["/b"] = page("Bread costs 4 euros")
        read_pages(model, website, "/b")
        job = carry_on(start_split(model))
        assert stored(job, website) == ["/", "/a", "/b", "/c"]
        assert "4 euros" in job.pages.get(url=website.url("/b")).markdown
        assert job.pages.get(url=website.url("/b")).source
        assert not Page.objects.exclude(job=job).exclude(markdown="").exists()

    def test_single_pages_keep_under_their_address_what_they_say_around_their_text(self, model, website):
        read_pages(model, website, "/a", "/b")
        carry_on(start_split(model))
        assert model.snippets.get(source="site").uri == website.url("/a")

    def test_a_page_that_is_gone_does_not_come_back(self, model, website):
        crawl(model, website)
        website.paths |= {"/": page("Home", "/a"), "/b": Answer("gone", 410)}
        crawl(model, website)
        carry_on(start_split(model))
        assert not model.snippets.filter(uri=website.url("/b")).exists()

    @pytest.mark.parametrize("step", [1, 2, 4])
    def test_a_killed_split_is_taken_up(self, model, website, step):
        crawl(model, website)
        model.max_context_tokens = 1_000
        model.save()
        job = new_import(model, **split_options(model))
        steps = []

        def die(job: Import) -> None:
            steps.append(job.phase)
            if len(steps) == step:
                raise Killed

        with pytest.raises(Killed):
            carry_on(job, die)
        Import.objects.filter(pk=job.pk).update(leased_until=timezone.now() - timedelta(seconds=1))
        ended = carry_on(job)
        assert (ended.state, stored(ended, website)) == (State.DONE, ["/", "/a", "/b", "/c"])
        assert len(texts(model)) == 4

    def test_without_a_stored_page_there_is_nothing_to_split(self, model):
        with pytest.raises(NothingStored, match="Import its website first"):
            start_split(model)

    def test_a_paused_import_is_not_overtaken(self, model, website):
        crawl(model, website)
        job = new_import(model, website.url("/"))
        job.request_pause()
        with pytest.raises(ImportRunning, match="paused"):
            start_split(model)
        job.resume()
        assert carry_on(job).state == State.DONE


class TestPathsAndDepth:
    def test_excluded_paths_are_not_asked_and_leave_the_model(self, model, website):
        crawl(model, website)
        asked = website.asked("/b")
        job = crawl(model, website, exclude_paths="/b\n/nowhere*")
        assert "Pages that your patterns exclude: 1. Their snippets were removed." in job.notes
        assert reasons(job, website, "skipped") == {"/b": "excluded by your patterns"}
        assert website.asked("/b") == asked
        assert not model.snippets.filter(uri=website.url("/b")).exists()

    def test_paths_that_are_not_included_are_left_as_they_are(self, model, website):
        crawl(model, website)
        before = texts(model)
        job = crawl(model, website, include_paths="/a")
        assert stored(job, website) == ["/a"]
        assert texts(model) == before

    def test_the_start_page_is_read_for_its_links_where_it_is_not_included_itself(self, model, website):
        job = crawl(model, website, include_paths="/a\n/b")
        assert stored(job, website) == ["/a", "/b"]
        assert "links alone" in job.pages.get(url=website.url("/")).report["message"]

    @pytest.mark.parametrize(("depth", "paths"), [(0, ["/"]), (1, ["/", "/a", "/b"]), (2, ["/", "/a", "/b", "/c"])])
    def test_links_further_away_than_the_owner_wants_are_not_read(self, model, website, depth, paths):
        assert stored(crawl(model, website, max_depth=depth), website) == paths


class TestDocuments:
    def test_a_document_is_skipped_with_what_to_do_unless_it_is_wanted(self, model, website):
        website.paths |= {"/": page("Home", "/doc.pdf"), "/doc.pdf": Answer(b"%PDF-1.7\n%\xe2", content_type=None)}
        job = crawl(model, website)
        assert reasons(job, website, "skipped") == {"/doc.pdf": "not html: pdf"}
        assert "tick “Documents”" in job.pages.get(url=website.url("/doc.pdf")).report["message"]

    @pytest.fixture
    def with_documents(self, website):
        price_list = make_docx(word_paragraph("Bread costs 3 euros"))
        website.paths |= {
            "/": page("Home", "/prices.docx", "/broken.docx"),
            "/prices.docx": Answer(price_list, content_type="application/octet-stream"),
            "/broken.docx": Answer(price_list[:200], content_type="application/octet-stream"),
        }
        return website

    def test_a_document_becomes_a_page_where_it_is_wanted(self, model, with_documents):
        job = crawl(model, with_documents, imports_documents=True)
        document = job.pages.get(url=with_documents.url("/prices.docx"))
        assert (document.state, document.kind, document.source) == ("done", "docx", b"")
        assert "Bread costs 3 euros" in model.snippets.get(uri=document.url).completion
        assert job.pages.get(url=with_documents.url("/broken.docx")).state in ("failed", "skipped")

    def test_a_document_that_is_named_itself_is_wanted(self, model, with_documents):
        assert stored(read_pages(model, with_documents, "/prices.docx"), with_documents) == ["/prices.docx"]


class TestPagesThatScriptsDraw:
    SHELL = "<!doctype html><title>App</title><div id=root></div><script src=/app.js></script>"

    def test_they_are_reported_with_what_to_do(self, model, website):
        website.paths |= {"/": page("Home", "/app"), "/app": self.SHELL}
        job = crawl(model, website)
        assert reasons(job, website, "failed") == {"/app": "needs scripts"}
        assert "Draw pages" in job.pages.get(url=website.url("/app")).report["message"]

    def test_their_links_are_followed(self, model, website):
        menu = "<nav><a href=/only-here>All that we bake</a></nav>"
        website.paths |= {"/": page("Home", "/app"), "/app": self.SHELL + menu, "/only-here": page("Rolls")}
        job = crawl(model, website)
        assert reasons(job, website, "failed") == {"/app": "needs scripts"}
        assert stored(job, website) == ["/", "/only-here"]

    def test_a_page_that_says_something_itself_is_imported_with_a_warning(self, model, website):
        contact = "<!doctype html><title>Contact</title><script src=/a.js></script><p>Call 0800 777 4242</p>"
        website.paths |= {"/": page("Home", "/contact"), "/contact": contact + "<nav><a href=/a>The mill</a></nav>"}
        job = crawl(model, website)
        assert stored(job, website) == ["/", "/a", "/b", "/c", "/contact"]
        assert "0800 777 4242" in model.snippets.get(uri=website.url("/contact"), source="crawl").completion
        report = job.pages.get(url=website.url("/contact")).report
        assert report["needs_scripts"]
        assert "says little until scripts draw the rest" in report["warnings"][-1]

    @pytest.mark.parametrize(("drawn", "is_taken"), [("Bread costs 3 euros, rolls 1", True), ("Hi", False)])
    def test_of_what_they_say_with_and_without_scripts_the_richer_is_taken(self, model, website, drawn, is_taken):
        needs(is_available(), "a browser (Debian's package chromium)")
        script = f"<script>document.getElementById('root').innerHTML = '<p>{drawn}</p>'</script>"
        website.paths["/"] = f"<!doctype html><title>App</title><div id=root>Call 0800 777 4242</div>{script}"
        job = crawl(model, website, renders_scripts=True)
        text = "".join(texts(model).values())
        assert (drawn in text, "0800" in text) == (is_taken, not is_taken)
        assert job.pages.get().report["rendered"] is True

    def test_that_their_shell_still_stands_says_nothing_of_what_they_say(self, model, website):
        needs(is_available(), "a browser (Debian's package chromium)")
        script = "document.getElementById('root').innerHTML = '<p>Bread costs {} euros</p>'"
        asked_on_condition = []

        def shell(request: Request) -> Answer:
            asked_on_condition.append("if-none-match" in request.headers)
            return Answer(
                "" if asked_on_condition[-1] else self.SHELL,
                304 if asked_on_condition[-1] else 200,
                headers={"ETag": '"1"'},
            )

        website.paths |= {"/": shell, "/app.js": Answer(script.format(3), content_type="text/javascript")}
        first = crawl(model, website, renders_scripts=True)
        assert first.pages.get().etag == ""
        first.pages.update(etag='"1"')  # as earlier versions have kept it
        website.paths["/app.js"] = Answer(script.format(4), content_type="text/javascript")
        crawl(model, website, renders_scripts=True)
        assert not any(asked_on_condition)
        assert "4 euros" in "".join(texts(model).values())

    def test_they_are_drawn_where_that_is_wanted(self, model, website):
        needs(is_available(), "a browser (Debian's package chromium)")
        script = "document.getElementById('root').innerHTML = '<main><h1>App</h1><p>Bread costs 3 euros</p></main>'"
        website.paths |= {
            "/": page("Home", "/app"),
            "/app": self.SHELL,
            "/app.js": Answer(script, content_type="text/javascript"),
        }
        job = crawl(model, website, renders_scripts=True)
        assert stored(job, website) == ["/", "/app"]
        assert job.pages.get(url=website.url("/app")).report["rendered"] is True
        assert "Bread costs 3 euros" in "".join(texts(model).values())


class TestSecondTries:
    def test_a_page_that_answers_the_second_time_is_imported(self, model, website):
        answers = [Answer("down", 500), page("Bread costs 3 euros", "/only-here")]
        website.paths |= {"/b": lambda request: answers.pop(0), "/only-here": page("Late")}
        job = crawl(model, website)
        assert stored(job, website) == ["/", "/a", "/b", "/c", "/only-here"]

    def test_a_page_that_fails_again_has_failed(self, model, website):
        website.paths["/b"] = Answer("down", 500)
        job = crawl(model, website)
        assert (reasons(job, website, "failed"), website.asked("/b")) == ({"/b": "status 500"}, 2)
