"""The frontier: every address of the site once, traps left out with a reason, and never without an end."""

import pytest
from protego import Protego

from crawler.frontier import ADDRESSES_PER_PAGE, ALIKE_QUERIES, MAX_ALIKE_QUERIES, REPEATING_PATH, TOO_DEEP, Frontier
from crawler.models import Import, Page
from crawler.web.site import DISALLOWED, NOT_A_PAGE, Robots, SiteRules
from crawler.web.traps import FAR_DATE, OTHER_VIEW
from models_app import snippets

pytestmark = pytest.mark.django_db

State = Page.State


def rules_for(start: str, robots: str = "", prefix: str = "/") -> SiteRules:
    host = start.split("/")[2]
    return SiteRules(
        start_url=start,
        hosts=frozenset({host, f"www.{host}"}),
        path_prefix=prefix,
        crawl_delay_seconds=0,
        sitemap_urls=(),
        robots=Robots(Protego.parse(robots), "Sitewise", ()),
    )


@pytest.fixture
def job(support) -> Import:
    return Import.objects.create(model=support, address="ex.test", max_pages=100)


@pytest.fixture
def frontier(job) -> Frontier:
    return Frontier(job, rules_for("https://ex.test/", "User-agent: *\nDisallow: /private"))


def found(job) -> list[str]:
    return [page.url for page in job.pages.filter(state=State.FOUND)]


def skipped(job) -> dict[str, str]:
    return {page.url: page.reason for page in job.pages.filter(state=State.SKIPPED)}


def settle(page: Page, state: State) -> None:
    Page.objects.filter(pk=page.pk).update(state=state)


def walk(frontier: Frontier, state: State = State.READ) -> list[str]:
    """Return the addresses in the order in which they come, each settled at once."""
    order = []
    for page in frontier:
        order.append(page.url)
        settle(page, state)
    return order


def test_pages_come_once_in_the_order_found(job, frontier):
    frontier.add(["https://ex.test/", "https://ex.test/b"], depth=0)
    frontier.add(["https://ex.test/a", "https://ex.test/b#part", "https://ex.test/"], depth=1)
    assert walk(frontier) == ["https://ex.test/", "https://ex.test/b", "https://ex.test/a"]


def test_with_or_without_www_and_tls_is_one_page(job, frontier):
    frontier.add(["http://www.ex.test/a", "https://ex.test/a", "http://ex.test:80/a"], depth=1)
    assert found(job) == ["https://ex.test/a"]


def test_a_trailing_slash_makes_another_page(job, frontier):
    frontier.add(["https://ex.test/services", "https://ex.test/services/"], depth=1)
    assert len(found(job)) == 2


def test_other_sites_are_not_even_noted(job, frontier):
    frontier.add(["https://other.test/", "mailto:a@ex.test", "javascript:void(0)", "https://ex.test.evil.test/"], 1)
    assert not job.pages.exists()


def test_what_is_not_to_be_asked_is_noted_with_the_reason(job, frontier):
    frontier.add(["https://ex.test/private/x", "https://ex.test/logo.png", "https://ex.test/open"], depth=1)
    assert found(job) == ["https://ex.test/open"]
    assert skipped(job) == {"https://ex.test/private/x": DISALLOWED, "https://ex.test/logo.png": NOT_A_PAGE}


def test_only_what_lies_below_the_path_belongs_to_a_crawl_of_a_path(job):
    frontier = Frontier(job, rules_for("https://ex.test/help/", prefix="/help/"))
    frontier.add(["https://ex.test/help/a", "https://ex.test/helpless", "https://ex.test/"], depth=1)
    assert found(job) == ["https://ex.test/help/a"]


def test_w05_a_path_that_repeats_itself_is_not_queued(job, frontier, case):
    never = case("W05")["expected"]["never_requested"][0]
    frontier.add([f"https://ex.test{never}", "https://ex.test/event/12/partner.test/info/"], depth=2)
    assert found(job) == ["https://ex.test/event/12/partner.test/info/"]
    assert skipped(job) == {f"https://ex.test{never}": REPEATING_PATH}


def test_a_repeating_path_is_meant_where_the_owner_lists_it(job, frontier):
    frontier.add(["https://ex.test/a/b/a/b/"], depth=1, is_listed=True)
    assert found(job) == ["https://ex.test/a/b/a/b/"]


def test_a_site_that_lies_under_a_repeating_path_is_read(job):
    start = "https://ex.test/a/b/a/b/"
    frontier = Frontier(job, rules_for(start, prefix="/a/b/a/b/"))
    frontier.add([start, f"{start}page"], depth=0)
    assert len(found(job)) == 2


def test_a_chain_of_links_without_end_is_cut(job, frontier):
    frontier.add(["https://ex.test/calendar?day=101"], depth=101)
    assert skipped(job) == {"https://ex.test/calendar?day=101": TOO_DEEP}


def test_the_limit_of_pages_ends_the_walk_and_leaves_the_rest_found(job, frontier):
    job.max_pages = 3
    frontier.add([f"https://ex.test/{number}" for number in range(5)], depth=1)
    assert len(walk(frontier)) == 3
    assert len(found(job)) == 2
    assert frontier.progress == {"done_count": 3, "total_count": 3}


def test_pages_that_fail_do_not_count_against_the_limit(job, frontier):
    job.max_pages = 3
    frontier.add([f"https://ex.test/{number}" for number in range(5)], depth=1)
    assert len(walk(frontier, State.FAILED)) == 5


def test_a_site_of_endless_links_is_noted_up_to_a_bound(job, frontier):
    job.max_pages = 1
    frontier.add([f"https://ex.test/{number}" for number in range(ADDRESSES_PER_PAGE + 5)], depth=1)
    frontier.add(["https://ex.test/more"], depth=1)
    assert job.pages.count() == ADDRESSES_PER_PAGE
    assert "the rest was left out" in job.notes[0]


def test_an_address_too_long_to_keep_is_left_out_and_noted(job, frontier):
    frontier.add(["https://ex.test/" + "x" * 2_000], depth=1)
    assert not job.pages.exists()
    assert "2,000 characters" in job.notes[0]


def test_queries_that_tell_nothing_new_are_asked_no_longer(job, frontier):
    urls = [f"https://ex.test/list?q={number}" for number in range(MAX_ALIKE_QUERIES + 3)]
    frontier.add([*urls, "https://ex.test/list", "https://ex.test/list2?q=1"], depth=1)
    order = walk(frontier, State.SAME)
    assert order == [*urls[:MAX_ALIKE_QUERIES], "https://ex.test/list", "https://ex.test/list2?q=1"]
    assert set(skipped(job).values()) == {ALIKE_QUERIES}


def test_a_path_of_queries_goes_on_while_some_of_them_still_tell_something_new(job, frontier):
    urls = [f"https://ex.test/index.php?id={number}" for number in range(4 * MAX_ALIKE_QUERIES)]
    frontier.add(urls, depth=1)
    order = []
    for page in frontier:
        settle(page, State.READ if len(order) % MAX_ALIKE_QUERIES == 0 else State.SAME)
        order.append(page.url)
    assert order == urls


def test_queries_that_the_owner_lists_or_the_model_knows_are_asked_whatever_the_others_told(job, frontier):
    urls = [f"https://ex.test/index.php?id={number}" for number in range(MAX_ALIKE_QUERIES)]
    frontier.add(urls, depth=1)
    assert walk(frontier, State.SAME) == urls
    snippets.add(job.model, "Bread", "Bread costs 3 euros", uri="https://ex.test/index.php?id=known")
    meant = ["https://ex.test/index.php?id=known", "https://ex.test/index.php?id=listed"]
    frontier.add([meant[0], "https://ex.test/index.php?id=linked"], depth=1)
    frontier.add(meant[1:], depth=1, is_listed=True)
    later = Frontier(job, rules_for("https://ex.test/"))
    assert walk(later, State.SAME) == meant
    assert skipped(job) == {"https://ex.test/index.php?id=linked": ALIKE_QUERIES}


def test_queries_that_tell_something_new_are_all_asked(job, frontier):
    urls = [f"https://ex.test/product?id={number}" for number in range(MAX_ALIKE_QUERIES + 3)]
    frontier.add(urls, depth=1)
    assert walk(frontier) == urls


def test_a_taken_up_import_goes_on_where_it_was(job, frontier):
    urls = [f"https://ex.test/{number}" for number in range(4)]
    frontier.add(urls, depth=1)
    settle(job.pages.get(url=urls[0]), State.READ)
    later = Frontier(job, rules_for("https://ex.test/"))
    later.add(urls, depth=1)
    assert walk(later) == urls[1:]


def test_many_addresses_are_noted_within_sqlites_limit_of_variables(job, frontier):
    frontier.add((f"https://ex.test/{number}" for number in range(1_500)), depth=1)
    assert job.pages.count() == 1_500


def test_a_link_into_a_trap_is_skipped_and_what_the_owner_lists_is_meant(job, frontier):
    trap = "https://ex.test/calendar/2099/01/"
    frontier.add([trap, "https://ex.test/shop?sort=price"], depth=1)
    assert skipped(job) == {trap: FAR_DATE, "https://ex.test/shop?sort=price": OTHER_VIEW}
    frontier.add(["https://ex.test/calendar/2099/02/"], depth=1, is_listed=True)
    assert walk(frontier) == ["https://ex.test/calendar/2099/02/"]
