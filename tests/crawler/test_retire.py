"""Pages that are not where they were: their snippets go, move along or stand, and the import says which and why."""

import pytest

from crawler.models import Import
from models_app import snippets
from models_app.models import MLModel
from tests.crawler.test_crawl import crawl, stored, texts
from tests.fakes.documents import make_docx, word_paragraph
from tests.fakes.website import Answer, Website, page, redirect

# The lease is renewed by a thread of its own, which sees only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

State = Import.State


@pytest.fixture
def website():
    paths = {"/": page("Home", "/a", "/b"), "/a": page("About the mill"), "/b": page("Bread costs 3 euros")}
    with Website(paths) as website:
        yield website


def paths_taught(model: MLModel, website: Website) -> list[str]:
    """The paths of the site's pages that the model has snippets of, sorted."""
    uris = model.snippets.filter(source="crawl", uri__startswith=website.url("")).values_list("uri", flat=True)
    return sorted({uri.removeprefix(website.url("")) for uri in uris})


def told(job: Import, website: Website, path: str) -> str:
    return job.pages.get(url=website.url(path)).report["message"]


class TestDetours:
    @pytest.mark.parametrize(
        "detour",
        [
            redirect("/soon", 302),
            redirect("/soon", 303),
            redirect("/soon", 307),
            page("Wait").replace("<title>", '<meta http-equiv="refresh" content="0; url=/soon"><title>'),
        ],
        ids=["302", "303", "307", "refresh"],
    )
    def test_the_snippets_of_a_page_that_leads_elsewhere_for_now_stand(self, model, website, detour):
        crawl(model, website)
        website.paths |= {"/b": detour, "/soon": page("Back in an hour")}
        job = crawl(model, website)
        assert paths_taught(model, website) == ["/", "/a", "/b", "/soon"]
        assert told(job, website, "/b") == "Leads elsewhere for now; its old snippets stand."
        assert job.pages.get(url=website.url("/b")).snippet_count == 1
        assert "Pages that lead elsewhere for now: 1. Their old snippets stand." in job.notes

    @pytest.mark.parametrize(("status", "paths"), [(302, ["/", "/a", "/b"]), (301, ["/", "/a"]), (308, ["/", "/a"])])
    def test_a_page_that_leads_to_another_site_goes_only_for_good(self, model, website, status, paths):
        crawl(model, website)
        with Website({"/status": page("Down")}) as other:
            website.paths["/b"] = redirect(other.url("/status"), status)
            job = crawl(model, website)
        assert paths_taught(model, website) == paths
        assert ("have moved out of what is imported: 1." in " ".join(job.notes)) is (status != 302)

    def test_one_temporary_hop_among_permanent_ones_is_enough(self, model, website):
        crawl(model, website)
        website.paths |= {"/b": redirect("/c", 301), "/c": redirect("/d", 302), "/d": page("Elsewhere")}
        crawl(model, website)
        assert "/b" in paths_taught(model, website)

    def test_a_detour_to_a_page_that_is_missing_is_no_page_that_is_gone(self, model, website):
        crawl(model, website)
        website.paths["/b"] = redirect("/maintenance", 302)
        crawl(model, website)
        assert paths_taught(model, website) == ["/", "/a", "/b"]
        website.paths["/b"] = redirect("/maintenance", 301)
        crawl(model, website)
        assert paths_taught(model, website) == ["/", "/a"]


class TestOtherAnswers:
    def test_a_page_that_robots_close_stands(self, model, website):
        crawl(model, website)
        website.paths["/robots.txt"] = Answer("User-agent: *\nDisallow: /b", content_type="text/plain")
        job = crawl(model, website)
        assert paths_taught(model, website) == ["/", "/a", "/b"]
        assert "robots.txt keeps crawlers from this page now; its old snippets stand" in told(job, website, "/b")
        assert "Pages that robots.txt closes to crawlers now: 1. Their old snippets stand." in job.notes

    def test_a_page_that_answers_once_with_something_else_stands(self, model, website):
        crawl(model, website)
        website.paths["/b"] = Answer(b"\0\1\2" * 500, content_type="application/octet-stream")
        job = crawl(model, website)
        assert paths_taught(model, website) == ["/", "/a", "/b"]
        assert told(job, website, "/b") == "What came this time is no page; its old snippets stand."

    def test_a_document_stands_when_documents_are_not_wanted_any_more(self, model, website):
        website.paths["/"] = page("Home", "/a", "/b", "/prices.docx")
        website.paths["/prices.docx"] = Answer(make_docx(word_paragraph("Bread costs 3 euros")), content_type=None)
        crawl(model, website, imports_documents=True)
        job = crawl(model, website)
        assert "/prices.docx" in paths_taught(model, website)
        assert "“Documents” is not ticked; its old snippets stand" in told(job, website, "/prices.docx")

    def test_what_the_owner_excludes_goes_and_the_note_says_so_once(self, model, website):
        crawl(model, website)
        notes = crawl(model, website, exclude_paths="/b").notes
        assert paths_taught(model, website) == ["/", "/a"]
        assert notes == ["Pages that your patterns exclude: 1. Their snippets were removed."]
        assert crawl(model, website, exclude_paths="/b").notes == []

    def test_a_page_that_is_gone_is_told_once_though_the_owners_edit_of_it_stands(self, model, website):
        crawl(model, website)
        row = model.snippets.get(uri=website.url("/b"))
        snippets.edit(row, row.prompt, "Bread costs 3 euros, on Sundays 2.", row.uri)
        website.paths |= {"/b": Answer("gone", 410), "/a": Answer("gone", 404)}
        job = crawl(model, website)
        assert "Pages that are not on the site any more: 1. Their snippets were removed." in job.notes
        assert crawl(model, website).notes == []
        assert model.snippets.get(pk=row.pk).conflict == "gone"


class TestOneForAll:
    @pytest.fixture
    def website(self):
        links = [f"/{number}" for number in range(6)]
        with Website({"/": page("Home", *links)} | {link: page(f"Text of {link}") for link in links}) as website:
            yield website

    @pytest.mark.parametrize("status", [301, 302])
    def test_most_pages_leading_to_one_change_nothing(self, model, website, status):
        crawl(model, website)
        before = texts(model)
        website.paths |= {f"/{number}": redirect("/soon", status) for number in range(4)}
        website.paths |= {"/soon": page("Back soon", title="Maintenance"), "/5": page("New text")}
        job = crawl(model, website)
        assert job.state == State.FAILED
        assert "4 of 7 known pages lead to “Maintenance” now." in job.message
        assert texts(model) == before

    def test_most_pages_leading_to_another_site_change_nothing(self, model, website):
        crawl(model, website)
        before = texts(model)
        with Website({"/": page("Parked")}) as other:
            website.paths |= {f"/{number}": redirect(other.url("/"), 301) for number in range(6)}
            assert crawl(model, website).state == State.FAILED
        assert texts(model) == before

    def test_a_few_pages_that_became_one_are_no_maintenance(self, model, website):
        crawl(model, website)
        website.paths |= {f"/{number}": redirect("/all", 301) for number in range(3)} | {"/all": page("All of it")}
        assert crawl(model, website).state == State.DONE
        assert paths_taught(model, website) == ["/", "/3", "/4", "/5", "/all"]


class TestMoves:
    def test_a_page_that_moved_for_good_keeps_its_rows_and_the_owners_edit(self, model, website):
        crawl(model, website)
        row = model.snippets.get(uri=website.url("/b"))
        snippets.edit(row, row.prompt, "Bread costs 3 euros, on Sundays 2.", row.uri)
        website.paths |= {"/b": redirect("/bread", 301), "/bread": page("Bread costs 3 euros")}
        for _ in range(2):
            job = crawl(model, website)
            assert paths_taught(model, website) == ["/", "/a", "/bread"]
            kept = model.snippets.get(uri=website.url("/bread"))
            assert (kept.pk, kept.conflict, kept.is_edited) == (row.pk, "", True)
            assert "Sundays" in kept.completion
        assert job.state == State.DONE

    def test_what_the_owner_deleted_of_the_page_stays_away_at_its_new_address(self, model, website):
        sections = "".join(f"<h2>{name}</h2><p>{name} {'bread is baked here. ' * 60}</p>" for name in ("Rye", "Oats"))
        model.max_context_tokens = 100
        model.save()
        website.paths["/b"] = html = f"<title>Bread</title><main><h1>Bread</h1>{sections}</main>"
        crawl(model, website)
        rye = model.snippets.filter(uri=website.url("/b"), completion__contains="Rye")
        assert snippets.delete(model, rye.values_list("pk", flat=True))
        website.paths |= {"/b": redirect("/bread", 301), "/bread": html}
        crawl(model, website)
        moved = "".join(model.snippets.filter(uri=website.url("/bread")).values_list("completion", flat=True))
        assert "Oats" in moved
        assert "Rye" not in moved

    @pytest.mark.parametrize(("status", "is_moved"), [(301, True), (302, False)])
    def test_a_site_that_moved_to_another_host_takes_its_snippets_along(self, model, website, status, is_moved):
        website.paths["/"] = page("Home", "/a", "/b") + "<footer>Call 0800 4444</footer>"
        crawl(model, website)
        row = model.snippets.get(uri=website.url("/b"))
        snippets.edit(row, row.prompt, "Bread costs 3 euros, on Sundays 2.", row.uri)
        del website.paths["/a"]
        new_paths = {"/": website.paths["/"], "/b": page("Bread costs 3 euros"), "/a": redirect("/mill", 301)}
        with Website(new_paths | {"/mill": page("About the mill")}) as new:
            website.paths |= {path: redirect(new.url(path), status) for path in ("/", "/a", "/b")}
            for _ in range(2):
                assert crawl(model, website).state == State.DONE
            assert paths_taught(model, new) == ["/", "/b", "/mill"]
        assert paths_taught(model, website) == ([] if is_moved else ["/", "/a", "/b"])
        assert model.snippets.get(pk=row.pk).uri == (new if is_moved else website).url("/b")
        assert model.snippets.filter(source="site").count() == 1 + (not is_moved)

    def test_where_the_new_address_has_snippets_already_the_old_ones_go(self, model, website):
        crawl(model, website)
        website.paths["/b"] = redirect("/a", 301)
        job = crawl(model, website)
        assert paths_taught(model, website) == ["/", "/a"]
        assert job.notes == ["Pages that have moved to another page of the site: 1. Their snippets were removed."]
        assert stored(job, website) == ["/", "/a"]
