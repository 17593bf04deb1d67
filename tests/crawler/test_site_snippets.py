"""What sites say around their pages: kept once a site, from all pages that stand, and counted when it changes."""

from datetime import timedelta

import pytest
from django.utils import timezone

from crawler.crawl import new_import, start_split
from crawler.models import Import
from models_app import snippets
from models_app.models import MLModel
from tests.crawler.test_crawl import Killed, carry_on, crawl
from tests.fakes.website import Answer, Website, page

# The lease is renewed by a thread of its own, which sees only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

HOTLINE = "<footer>Emergency hotline of the harbour: 0800 777 4242</footer>"
FOOT = "<footer>Mill Lane 7</footer>"
NOTHING = dict.fromkeys(("added", "changed", "removed", "conflicts"), 0)


@pytest.fixture
def website():
    paths = {
        "/": page("Welcome", "/b", "/c", title="Home") + FOOT,
        "/b": page("All about bees", title="Bee") + FOOT,
        "/c": page("All about the sea", title="Sea") + HOTLINE,
    }
    with Website(paths) as website:
        yield website


def site_rows(model: MLModel) -> list[tuple[str, str]]:
    return list(model.snippets.filter(source="site").order_by("uri", "pk").values_list("uri", "completion"))


def written(job: Import) -> dict[str, int]:
    return {name: job.changes["snippets"][name] for name in NOTHING}


def without_main(name: str, path: str, count: int) -> str:
    """Return a page without a main part, its menu the same on each of the site's pages."""
    links = "".join(f"<a href=/{number or ''}>{number}</a> " for number in range(count))
    return (
        f"<title>{name} {path} | {name} Ltd.</title><div><p>{name} menu and 24h hotline of {name}</p>{links}</div>"
        f"<div><h1>{name} {path}</h1><p>Own text of {name} {path}, quite unlike others.</p></div>"
    )


def site_without_main(name: str, count: int) -> dict[str, str]:
    return {f"/{number or ''}": without_main(name, f"/{number or ''}", count) for number in range(count)}


def pages_with_menu(model: MLModel) -> list[str]:
    return list(model.snippets.filter(source="crawl", completion__contains="hotline").values_list("uri", flat=True))


class TestWhereOnlyPartOfTheSiteIsRead:
    @pytest.mark.parametrize(
        "options", [{"max_depth": 0}, {"max_pages": 2}, {"include_paths": "/b"}], ids=["depth", "limit", "include"]
    )
    def test_what_the_pages_left_out_say_around_their_text_stands(self, model, website, options):
        crawl(model, website)
        before = list(model.snippets.order_by("pk").values())
        job = crawl(model, website, **options)
        assert job.pages.filter(state="done").count() < 3
        assert list(model.snippets.order_by("pk").values()) == before
        assert written(job) == NOTHING

    def test_what_a_page_says_that_fails_stands_until_it_is_gone(self, model, website):
        crawl(model, website)
        before = site_rows(model)
        assert (website.url("/c"), "Emergency hotline of the harbour: 0800 777 4242") in before
        website.paths["/c"] = Answer("down", 500)
        crawl(model, website)
        assert site_rows(model) == before
        website.paths["/c"] = Answer("gone", 410)
        job = crawl(model, website)
        assert site_rows(model) == [(website.url("/"), "Mill Lane 7")]
        assert "no longer hold: “Emergency hotline of the harbour" in " ".join(job.notes)

    def test_a_menu_and_the_sites_name_stay_out_of_the_pages_that_are_read(self, model):
        with Website(site_without_main("Alpha", 8)) as website:
            crawl(model, website)
            before = list(model.snippets.order_by("pk").values_list("pk", "prompt", "completion"))
            assert not pages_with_menu(model)
            job = crawl(model, website, max_pages=2)
            assert (job.pages.filter(state="done").count(), written(job)) == (2, NOTHING)
        assert list(model.snippets.order_by("pk").values_list("pk", "prompt", "completion")) == before

    def test_a_single_page_is_compared_with_its_site(self, model):
        with Website(site_without_main("Alpha", 4)) as website:
            crawl(model, website)
            website.paths["/3"] = website.paths["/3"].replace("quite unlike", "much unlike")
            job = carry_on(new_import(model, kind=Import.Kind.PAGES, addresses=[website.url("/3")]))
            assert written(job) == NOTHING | {"changed": 1}
            assert not pages_with_menu(model)
            [row] = model.snippets.filter(uri=website.url("/3"))
            assert (row.prompt, "much unlike" in row.completion) == ("Alpha /3", True)


class TestTwoWebsites:
    def test_each_keeps_its_own_under_its_own_address(self, model, website):
        with Website({"/": page("Beta", "/1") + "<footer>Call 999</footer>", "/1": page("One")}) as other:
            crawl(model, website)
            crawl(model, other)
            before = list(model.snippets.order_by("pk").values())
            assert len(site_rows(model)) == 3
            job = carry_on(start_split(model))
        assert list(model.snippets.order_by("pk").values()) == before
        assert written(job) == NOTHING

    def test_a_small_one_is_not_lost_in_a_large_one(self, model):
        with Website(site_without_main("Alpha", 4)) as small, Website(site_without_main("Beta", 12)) as large:
            crawl(model, small)
            crawl(model, large)
            prompts = set(model.snippets.values_list("prompt", flat=True))
            model.max_context_tokens = 1_000
            model.save()
            carry_on(start_split(model))
            assert not pages_with_menu(model)
            assert set(model.snippets.values_list("prompt", flat=True)) == prompts
            assert {uri for uri, _ in site_rows(model)} == {small.url("/"), large.url("/")}

    def test_an_import_of_one_leaves_the_other_as_it_is(self, model, website):
        with Website({"/": page("Beta") + "<footer>Call 999</footer>"}) as other:
            crawl(model, other)
            crawl(model, website)
            crawl(model, website)
            assert (other.url("/"), "Call 999") in site_rows(model)


class TestWhatOnePageSays:
    def test_it_stands_under_the_address_of_that_page_and_names_it(self, model, website):
        job = crawl(model, website, insert_source_url=True)
        row = model.snippets.get(source="site", completion__contains="hotline")
        assert (row.uri, row.prompt) == (website.url("/c"), "Sea: header, menu and footer of the page")
        assert row.completion.endswith(f"Source: {website.url('/c')}")
        assert "1 block that only one page says around its own text is kept under its address." in job.notes

    def test_it_moves_to_the_site_when_another_page_says_it_too(self, model, website):
        crawl(model, website)
        website.paths["/b"] = page("All about bees", title="Bee") + FOOT + HOTLINE
        job = crawl(model, website)
        assert [uri for uri, _ in site_rows(model)] == [website.url("/")]
        assert not any("no longer" in note for note in job.notes)


class TestWhatChanged:
    def test_the_sites_own_snippets_are_counted(self, model, website):
        assert written(crawl(model, website)) == NOTHING | {"added": 5}
        job = crawl(model, website)
        assert job.changes["snippets"] == NOTHING | {"kept": 5}
        website.paths["/c"] = page("All about the sea", title="Sea") + "<footer>Call 111</footer>"
        job = crawl(model, website)
        assert sum(written(job).values()) >= 1
        assert "0800 777 4242" in " ".join(job.notes)

    def test_of_a_killed_import_all_is_counted(self, model, website):
        job = new_import(model, website.url("/"))
        steps = []

        def die(job: Import) -> None:
            steps.append(job.phase)
            if steps.count(Import.Phase.SPLITTING) == 2:
                raise Killed

        with pytest.raises(Killed):
            carry_on(job, die)
        Import.objects.filter(pk=job.pk).update(leased_until=timezone.now() - timedelta(seconds=1))
        assert carry_on(job).changes["snippets"] == NOTHING | {"added": 5, "kept": 0}

    def test_one_that_the_owner_deleted_stays_away_and_one_edited_is_asked_about(self, model, website):
        crawl(model, website)
        hotline = model.snippets.get(source="site", uri=website.url("/c"))
        foot = model.snippets.get(source="site", uri=website.url("/"))
        snippets.delete(model, [hotline.pk])
        snippets.edit(foot, foot.prompt, "Mill Lane 7, next to the mill", foot.uri)
        for _ in range(2):
            assert written(crawl(model, website)) == NOTHING
            assert site_rows(model) == [(website.url("/"), "Mill Lane 7, next to the mill")]
        for path in ("/", "/b"):
            website.paths[path] = website.paths[path].replace("Mill Lane 7", "Mill Lane 8")
        assert written(crawl(model, website)) == NOTHING | {"conflicts": 1}
        assert written(crawl(model, website)) == NOTHING
