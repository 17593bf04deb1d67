"""The crawl journey against a real small website: what is stored, what is left out and why, what is kept."""

import gzip
import re
import threading
import time
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone
from protego import Protego

from chat.models import Turn
from crawler.crawl import ImportRunning, import_site, new_import, start_import
from crawler.frontier import REPEATING_PATH
from crawler.models import Import, Page
from crawler.page_snippets import UNCHANGED
from crawler.sources import MAX_CRAWL_DELAY_SECONDS, pause_seconds
from crawler.web.site import Robots, SiteRules, SiteUnreachable
from models_app import index, snippets
from models_app.embedder import space_of
from models_app.jobs import perform_taken
from models_app.models import MLModel, Retrieval, TrainingSnippet
from models_app.retrieval import retrieve
from tenants.models import Tenant
from tenants.store import activated
from tests.fakes.openai_server import OpenAIServer, refusal
from tests.fakes.website import Answer, Request, Website, page, redirect

# The lease is renewed by a thread of its own, which sees only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

State = Import.State
BOMB = gzip.compress(b"a" * 20_000_000)


@pytest.fixture
def model(support) -> MLModel:
    """Acme's model with Keyword retrieval: these imports end without vectors."""
    support.retrieval = Retrieval.KEYWORD
    support.save()
    return support


def crawl(model: MLModel, website: Website | str, watch=lambda job: None, **options) -> Import:
    """Import the website to its end in this thread; returns the import as it stands then."""
    address = website if isinstance(website, str) else website.url("/")
    return carry_on(new_import(model, address, **options), watch)


def carry_on(job: Import, watch=lambda job: None) -> Import:
    taken = Import.take(job.pk)
    perform_taken(taken, lambda job, lease: import_site(job, lease, watch))
    return Import.objects.get(pk=job.pk)


def stored(job: Import, website: Website) -> list[str]:
    """The paths of the pages that were imported, sorted."""
    urls = job.pages.filter(state=Page.State.DONE).values_list("url", flat=True)
    return sorted(url.removeprefix(website.url("")) for url in urls)


def reasons(job: Import, website: Website, state: str) -> dict[str, str]:
    return {page.url.removeprefix(website.url("")): page.reason for page in job.pages.filter(state=state)}


def texts(model: MLModel) -> dict[int, str]:
    """The model's snippets of pages: row -> text."""
    return dict(model.snippets.filter(source="crawl").values_list("pk", "completion"))


def everything(model: MLModel) -> list[tuple]:
    """All that an import leaves behind, in the form in which two imports can be compared."""
    job = model.imports.first()
    pages = list(job.pages.values_list("url", "final_url", "state", "reason", "snippet_count"))
    rows = model.snippets.order_by("uri", "position").values_list("uri", "source", "prompt", "completion", "position")
    return [job.state, job.message, pages, list(rows)]


class TestWhichPages:
    def test_all_pages_that_links_and_sitemaps_lead_to_are_stored_once(self, model):
        listed = "<urlset><url><loc>{}</loc></url></urlset>"
        paths = {"/": page("Welcome", "/a", "/b#x", "/a"), "/a": page("A", "/b", "/"), "/b": page("B")}
        with Website(paths) as website:
            website.paths["/sitemap.xml"] = Answer(listed.format(website.url("/hidden")), content_type="text/xml")
            website.paths["/hidden"] = page("Only in the sitemap")
            job = crawl(model, website)
            assert stored(job, website) == ["/", "/a", "/b", "/hidden"]
            assert [website.asked(path) for path in ("/", "/a", "/b", "/hidden")] == [1, 1, 1, 1]
        assert job.state == State.DONE
        assert job.message == "4 pages imported. The model has 4 snippets."
        assert len(texts(model)) == 4

    def test_w03_the_address_after_redirects_is_what_is_stored(self, model, case):
        expected = case("W03")["expected"]
        paths = {
            "/": page("Home", "/services/", "/services"),
            "/services": redirect("/services/", 301),
            "/services/": page("We fix bikes", "/services/"),
        }
        with Website(paths) as website:
            job = crawl(model, website)
            assert stored(job, website) == ["/", "/services/"]
            assert website.asked("/services") <= expected["max_requests"]["/services"]
            assert website.asked("/services/") <= expected["max_requests"]["/services/"]
        assert not job.pages.filter(state=Page.State.FAILED).exists()

    def test_a_page_that_is_met_first_through_its_redirect_is_stored_under_its_own_address(self, model):
        with Website({"/": page("Home", "/old"), "/old": redirect("/new"), "/new": page("New")}) as website:
            job = crawl(model, website)
            assert stored(job, website) == ["/", "/new"]
            assert reasons(job, website, "same") == {"/old": "redirects"}
            assert website.asked("/new") == 1

    def test_w05_a_link_that_lengthens_itself_is_followed_once_and_its_text_stored_once(self, model, case):
        expected = case("W05")["expected"]
        html = '<p>Gala night</p><a href="partner.test/info/">partner</a>'
        with Website() as website:
            website.answer = Endless(website, "/event/12/", html)
            job = crawl(model, website.url("/event/12/"))
            assert set(asked_pages(website)) <= set(expected["requested_paths_max"])
            assert not set(website.asked_paths) & set(expected["never_requested"])
            assert len(stored(job, website)) == expected["stored_pages"]
            assert REPEATING_PATH in reasons(job, website, "skipped").values()

    def test_w06_every_hop_of_a_redirect_is_checked_before_it_is_asked(self, model, case):
        with Website({"/land": page("Another company")}) as tracker, Website() as website:
            website.paths |= {
                "/robots.txt": Answer(case("W06")["input"]["robots"], content_type="text/plain"),
                "/": redirect("/moved"),
                "/moved": redirect("/new", 301),
                "/new": page("text", "/go", "/old"),
                "/go": redirect(tracker.url("/land")),
                "/old": redirect("/private/x", 301),
            }
            job = crawl(model, website)
            assert stored(job, website) == ["/new"]
            assert tracker.requests == []
            assert website.asked("/private/x") == 0
            assert reasons(job, website, "skipped") == {"/go": "out of scope", "/old": "disallowed by robots"}
            told = job.pages.get(url=website.url("/go")).report["message"]
            where = f"{website.url('/go')} redirects to {tracker.url('/land')}"
            assert told == f"{where}, which is outside the imported part of the site"

    def test_w12_sitemaps_that_name_each_other_end(self, model, case):
        given = case("W12")["input"]
        with Website({"/": page("Home"), "/p1": page("One"), "/child.xml": redirect("/index.xml", 301)}) as website:
            for path, text in (
                ("/robots.txt", given["robots"]),
                ("/index.xml", given["index.xml"]),
                ("/pages.xml", given["pages.xml"]),
            ):
                website.paths[path] = Answer(text.replace("https://ex.test", website.url("")), content_type="text/xml")
            job = crawl(model, website)
            assert stored(job, website) == ["/", "/p1"]
            assert website.asked("/index.xml") <= 2

    def test_w15_bytes_that_are_no_page_are_skipped_with_their_kind(self, model):
        docx = b"PK\x03\x04" + bytes(range(256)) * 4
        with Website() as website:
            website.paths |= {
                "/": page("Home", "/a", "/b", "/c", "/d"),
                "/a": Answer(b"%PDF-1.7\n%\xe2\xe3" + bytes(range(256)) * 4, content_type="text/html"),
                "/b": Answer(docx, content_type=None),
                "/c": Answer("<!doctype html><p>Real page</p>", content_type="application/octet-stream"),
                "/d": Answer("<html><body><p>X page</p></body></html>", content_type="application/xhtml+xml"),
            }
            job = crawl(model, website)
            assert stored(job, website) == ["/", "/c", "/d"]
            assert reasons(job, website, "skipped") == {"/a": "not html: pdf", "/b": "not html: zip"}
        assert "PK" not in "".join(texts(model).values())

    def test_w16_a_page_that_unpacks_to_more_than_the_limit_is_left_and_the_crawl_goes_on(self, model):
        paths = {
            "/": page("Home", "/bomb", "/small"),
            "/bomb": Answer(BOMB, headers={"Content-Encoding": "gzip"}),
            "/small": page("Small"),
        }
        with Website(paths) as website:
            job = crawl(model, website)
            assert stored(job, website) == ["/", "/small"]
            assert reasons(job, website, "failed") == {"/bomb": "too large"}

    def test_w17_cookie_walls_are_passed_and_true_loops_end(self, model, case):
        most = case("W17")["expected"]["max_requests"]

        def shop(request: Request) -> Answer | str:
            has_cookie = "ok=1" in request.headers.get("cookie", "")
            return page("Bikes") if has_cookie else redirect("/shop", Set_Cookie="ok=1")

        paths = {"/": page("Home", "/shop", "/spin", "/ping"), "/shop": shop, "/spin": redirect("/spin")}
        with Website(paths | {"/ping": redirect("/pong"), "/pong": redirect("/ping")}) as website:
            job = crawl(model, website)
            assert stored(job, website) == ["/", "/shop"]
            assert website.asked("/shop") == 2
            assert set(reasons(job, website, "failed").values()) == {"too many redirects"}
            assert all(website.asked(path) <= count for path, count in most.items())

    def test_pages_with_the_same_words_are_stored_once(self, model):
        same = page("The very same text")
        paths = {"/": page("Home", "/list?from=news", "/list?part=down", "/list"), "/list": same}
        with Website(paths) as website:
            job = crawl(model, website)
            assert stored(job, website) == ["/", "/list?from=news"]
            assert reasons(job, website, "same") == {"/list?part=down": "same text", "/list": "same text"}

    def test_pages_with_the_same_words_and_another_title_or_link_are_pages_of_their_own(self, model):
        def shop(city: str, link: str) -> str:
            return f"<title>Our shop in {city}</title><main><p>Open from 9 to 17. <a href='{link}'>Write</a></p></main>"

        paths = {
            "/": page("Home", "/1", "/2", "/3", "/4", "/4?x=1"),
            "/1": shop("Berlin", "/offers.pdf"),
            "/2": shop("Munich", "/offers.pdf"),
            "/3": shop("Munich", "/other.pdf"),
            "/4": shop("Munich", "mailto:munich@ex.test"),
        }
        with Website(paths) as website:
            assert stored(crawl(model, website), website) == ["/", "/1", "/2", "/3", "/4"]
            website.paths["/4"] = shop("Munich", "mailto:office@ex.test")
            job = crawl(model, website)
        assert job.changes["pages"]["changed"] == 1
        assert "office@ex.test" in "".join(texts(model).values())

    def test_of_pages_with_the_same_words_the_one_they_call_canonical_is_stored(self, model):
        same = page("The very same text").replace("<title>", '<link rel="canonical" href="/list"><title>')
        paths = {"/": page("Home", "/list?from=news", "/list?part=down"), "/list": same}
        with Website(paths) as website:
            job = crawl(model, website)
            assert stored(job, website) == ["/", "/list"]
            leads = dict(job.pages.filter(state="same").values_list("url", "final_url"))
            assert set(leads.values()) == {website.url("/list")}

    def test_a_canonical_address_is_not_believed_where_the_words_differ(self, model):
        first, second = (
            page(text).replace("<title>", '<link rel="canonical" href="/"><title>') for text in ("One", "Two")
        )
        with Website({"/": page("Home", "/1", "/2"), "/1": first, "/2": second}) as website:
            assert stored(crawl(model, website), website) == ["/", "/1", "/2"]

    def test_what_speaks_to_search_engines_keeps_no_page_from_its_own_chatbot(self, model):
        noindex = page("For customers", "/next").replace("<title>", '<meta name="robots" content="noindex"><title>')
        by_header = Answer(page("Next"), headers={"X-Robots-Tag": "noindex, nofollow"})
        with Website({"/": page("Home", "/help"), "/help": noindex, "/next": by_header}) as website:
            job = crawl(model, website)
            assert stored(job, website) == ["/", "/help", "/next"]
            said = {path: job.pages.get(url=website.url(path)).report for path in ("/", "/help", "/next")}
            assert [report["is_noindex"] for report in said.values()] == [False, True, True]
            assert [report["is_nofollow"] for report in said.values()] == [False, False, True]

    @pytest.mark.parametrize("said", ["meta", "header"])
    def test_links_of_a_page_that_says_nofollow_are_left_unless_another_page_has_them(self, model, said):
        links = page("Offers", "/only-here", "/too")
        marked = links.replace("<title>", '<meta name="robots" content="nofollow"><title>')
        answer = marked if said == "meta" else Answer(links, headers={"X-Robots-Tag": "nofollow"})
        with Website({"/": page("Home", "/offers", "/too"), "/offers": answer, "/too": page("Too")}) as website:
            job = crawl(model, website)
            assert stored(job, website) == ["/", "/offers", "/too"]
            assert website.asked("/only-here") == 0

    def test_a_path_limits_the_crawl_to_it(self, model):
        paths = {"/help/": page("Help", "/help/a", "/shop"), "/help/a": page("A"), "/shop": page("Shop")}
        with Website(paths) as website:
            job = crawl(model, website.url("/help/"))
            assert stored(job, website) == ["/help/", "/help/a"]
            assert job.scope == website.url("/help/")

    def test_the_limit_of_pages_is_kept_and_told(self, model):
        paths = {"/": page("Home", *[f"/{number}" for number in range(9)])}
        with Website(paths | {f"/{number}": page(f"Page {number}") for number in range(9)}) as website:
            job = crawl(model, website, max_pages=4)
        assert job.pages_by_state() == {"done": 4, "found": 6}
        assert "The limit of 4 pages was reached" in " ".join(job.notes)
        assert "6 left unread" in job.message


class Endless:
    """Answers every path below a prefix with the same page."""

    def __init__(self, website: Website, prefix: str, html: str):
        self._scripted, self._prefix, self._html = website.answer, prefix, html

    def __call__(self, request: Request) -> Answer:
        scripted = self._scripted(request)
        return Answer(self._html) if request.path.startswith(self._prefix) else scripted


def asked_pages(website: Website) -> list[str]:
    return [path for path in website.asked_paths if not path.endswith((".txt", ".xml"))]


class TestBadSites:
    """Each ends with a clear message, at the import or at the page."""

    def test_a_site_that_is_down(self, model):
        with Website() as website:
            gone = website.url("/")
        job = crawl(model, gone)
        assert job.state == State.FAILED
        assert re.search(r"does not answer|refused", job.message)

    @pytest.mark.parametrize("answer", [Answer("<html>down</html>", 503), Answer("", 429)], ids=["503", "429"])
    def test_w08_robots_that_cannot_be_read(self, model, answer):
        with Website({"/robots.txt": answer, "/": page("Home")}) as website:
            job = crawl(model, website)
            assert job.state == State.FAILED
            assert "robots.txt is unreachable" in job.message
            assert set(website.asked_paths) == {"/robots.txt"}

    def test_w08_robots_that_do_not_answer_in_time(self, model, settings):
        settings.SITEWISE_FETCH_TIMEOUT_SECONDS = 0.2
        never = Answer(pieces=iter([b"User-agent", b": *"]), pause_seconds=1.0)
        with Website({"/robots.txt": never, "/": page("Home")}) as website:
            job = crawl(model, website)
            assert "robots.txt is unreachable" in job.message
            assert website.asked("/") == 0

    def test_w08_the_rules_where_a_redirect_of_robots_leads_apply(self, model):
        rules = Answer("User-agent: *\nDisallow: /", content_type="text/plain")
        with Website({"/robots.txt": redirect("/real.txt", 301), "/real.txt": rules, "/": page("Home")}) as website:
            job = crawl(model, website)
            assert (job.state, website.asked("/")) == (State.FAILED, 0)
            assert "forbids" in job.message

    def test_a_site_behind_a_login(self, model):
        with Website({"/": redirect("/login"), "/login": page("Log in please")}) as website:
            job = crawl(model, website)
        assert job.state == State.FAILED
        assert "log in" in job.message
        assert not texts(model)

    @pytest.mark.parametrize("around", ["", "<title>Staff</title><h1>Welcome</h1>"])
    def test_a_site_that_shows_but_a_login_form(self, model, around):
        form = "<form>User <input name=u> Password <input type=password name=p><button>Log in</button></form>"
        with Website({"/": around + form}) as website:
            job = crawl(model, website)
            assert reasons(job, website, "failed") == {"/": "login required"}
        assert job.state == State.FAILED
        assert "asks to log in" in job.message
        assert not texts(model)

    def test_a_page_behind_a_login(self, model):
        with Website({"/": page("Home", "/members"), "/members": Answer("no", 401)}) as website:
            job = crawl(model, website)
            assert reasons(job, website, "failed") == {"/members": "login required"}
        assert job.state == State.DONE

    def test_a_broken_link(self, model):
        with Website({"/": page("Home", "/gone")}) as website:
            job = crawl(model, website)
            assert reasons(job, website, "failed") == {"/gone": "status 404"}
        assert "1 failed" in job.message

    def test_a_site_that_scripts_draw(self, model):
        shell = "<!doctype html><title>App</title><div id=root></div><script src=/app.js></script>"
        with Website({"/": shell}) as website:
            job = crawl(model, website)
        assert job.state == State.FAILED
        assert "empty until scripts draw it" in job.message
        assert job.pages.get().reason == "needs scripts"

    def test_markup_nested_without_end(self, model):
        with Website({"/": page("Home", "/deep"), "/deep": "<div>" * 20_000 + "deep"}) as website:
            job = crawl(model, website)
        assert job.state == State.DONE
        assert job.pages.count() == 2

    def test_a_site_that_stops_answering_is_imported_as_far_as_it_was_read(self, model, settings):
        settings.SITEWISE_FETCH_TIMEOUT_SECONDS = 0.1

        def hang(request: Request) -> str:
            time.sleep(0.5)
            return page("too late")

        paths = {"/": page("Home", "/good", *[f"/{number}" for number in range(20)]), "/good": page("Good")}
        with Website(paths | {f"/{number}": hang for number in range(20)}) as website:
            job = crawl(model, website)
            assert stored(job, website) == ["/", "/good"]
        assert job.pages_by_state() == {"done": 2, "failed": 10, "found": 10}
        assert "stopped answering" in " ".join(job.notes)

    def test_a_full_quota_ends_the_import_with_what_fits(self, model):
        Tenant.objects.update(snippet_quota=2)
        with Website({"/": page("Home", "/a", "/b"), "/a": page("A"), "/b": page("B")}) as website:
            job = crawl(model, website)
        assert job.state == State.FAILED
        assert "2 snippets" in job.message
        assert model.snippets.count() == 2

    @pytest.mark.parametrize(
        "address",
        ["", "not an address", "ftp://ex.test/", "http://2130706433/", "http://10.0.0.1/", "http://ok@127.0.0.1/"],
    )
    def test_x02_what_is_no_public_address_is_refused_before_anything_starts(self, model, settings, address):
        settings.SITEWISE_ALLOW_LOOPBACK = False
        with pytest.raises(SiteUnreachable):
            new_import(model, address)
        assert not Import.objects.exists()


class TestSnippets:
    def test_images_are_kept_or_left_out_as_the_import_says(self, model):
        html = '<main><h1>Bike</h1><p>Red</p><img src="/red.jpg" alt="A red bike"></main>'
        with Website({"/": html}) as website:
            crawl(model, website)
            assert f"![A red bike]({website.url('/red.jpg')})" in "".join(texts(model).values())
            crawl(model, website, import_images=False)
            assert "red.jpg" not in "".join(texts(model).values())

    def test_the_source_url_is_appended_where_it_is_wanted(self, model):
        with Website({"/": page("Home", "/a"), "/a": page("A")}) as website:
            crawl(model, website, insert_source_url=True)
            assert all(text.endswith(f"Source: {snippet_uri(model, pk)}") for pk, text in texts(model).items())

    def test_what_the_author_marked_as_the_sites_is_kept_once(self, model):
        def framed(text: str, *links: str) -> str:
            menu = "<nav><a href=/>Start</a> <a href=/b>Bikes</a></nav>"
            return f"{menu}{page(text, *links)}<footer>Call 0800 4444</footer>"

        paths = {"/": framed("Home", "/a", "/b"), "/a": framed("A"), "/b": framed("B")}
        with Website(paths) as website:
            job = crawl(model, website)
        [kept] = model.snippets.filter(source="site")
        assert "Call 0800 4444" in kept.completion
        assert "0800" not in "".join(texts(model).values())
        assert "on 3 pages" in " ".join(job.notes)

    def test_what_repeats_where_there_is_no_main_part_is_kept_once(self, model):
        banner, foot = "<div><p>We use cookies.</p></div>", "<div><p>Mill Lane 7, Tuesdays closed.</p></div>"
        paths = {
            path: f"<title>{path}</title><body>{banner}<h1>Page {path}</h1><p>Text of {path}.</p>"
            f"<a href=/a>a</a> <a href=/b>b</a> <a href=/c>c</a>{foot}"
            for path in ("/", "/a", "/b", "/c")
        }
        with Website(paths) as website:
            crawl(model, website)
        assert len(texts(model)) == 4
        assert not re.search("cookies|Mill Lane", "".join(texts(model).values()))
        site = "".join(model.snippets.filter(source="site").values_list("completion", flat=True))
        assert site.count("We use cookies.") == site.count("Mill Lane 7, Tuesdays closed.") == 1

    def test_a_menu_that_is_gone_is_gone_from_the_sites_snippet(self, model):
        with Website({"/": page("Home") + "<footer>Old phone 111</footer>"}) as website:
            crawl(model, website)
            website.paths["/"] = page("Home") + "<footer>New phone 222</footer>"
            crawl(model, website)
        assert [snippet.completion for snippet in model.snippets.filter(source="site")] == ["New phone 222"]

    def test_the_sites_snippet_moves_with_the_site(self, model):
        with Website({"/": page("Home") + "<footer>Call 111</footer>"}) as website:
            crawl(model, website)
            TrainingSnippet.objects.filter(source="site").update(uri=website.url("/").replace("http:", "https:"))
            crawl(model, website)
            assert model.snippets.get(source="site").uri == website.url("/")

    @pytest.mark.parametrize("path", ["/p1", "/", "/help/", "/help/a.html"])
    def test_the_sites_snippet_names_the_page_the_import_started_at(self, model, path):
        with Website({path: page("Text") + "<footer>Call 111</footer>"}) as website:
            for _ in range(2):
                crawl(model, website.url(path), insert_source_url=True)
                kept = model.snippets.get(source="site")
                assert kept.uri == website.url(path)
                assert kept.completion.endswith(f"Source: {website.url(path)}")

    def test_the_sites_snippet_moves_with_the_start_page(self, model):
        with Website({"/": redirect("/en/"), "/en/": page("Home") + "<footer>Call 111</footer>"}) as website:
            crawl(model, website)
            assert model.snippets.get(source="site").uri == website.url("/en/")
            website.paths |= {"/": redirect("/no/"), "/no/": page("Hjem") + "<footer>Call 111</footer>"}
            crawl(model, website)
            assert model.snippets.get(source="site").uri == website.url("/no/")

    def test_what_was_kept_under_the_bounds_of_an_import_moves_to_its_start(self, model):
        with Website({"/p1": page("Text") + "<footer>Call 111</footer>"}) as website:
            crawl(model, website.url("/p1"))
            TrainingSnippet.objects.filter(source="site").update(uri=website.url("/p1/"))
            crawl(model, website.url("/p1"))
            assert model.snippets.get(source="site").uri == website.url("/p1")

    def test_what_stands_on_a_single_page_is_not_said_to_be_repeated(self, model):
        with Website({"/": page("Text") + "<footer>Call 111</footer>"}) as website:
            [note] = crawl(model, website).notes
            assert note == (
                "1 block that stands around the pages’ own text is kept apart, once for the site: "
                f"“Call 111” (on {website.url('/')})."
            )


def snippet_uri(model: MLModel, pk: int) -> str:
    return model.snippets.get(pk=pk).uri


class TestCrawlingAgain:
    @pytest.fixture
    def website(self):
        paths = {"/": page("Home", "/a", "/b"), "/a": page("About the mill"), "/b": page("Bread costs 3 euros")}
        with Website(paths) as website:
            yield website

    def test_what_did_not_change_is_the_same_row(self, model, website):
        crawl(model, website)
        before = texts(model)
        job = crawl(model, website)
        assert texts(model) == before
        assert stored(job, website) == ["/", "/a", "/b"]
        assert {page.report["split"] for page in job.pages.all()} == {UNCHANGED}

    def test_what_changed_is_replaced_and_nothing_else(self, model, website):
        crawl(model, website)
        before = texts(model)
        website.paths["/b"] = page("Bread costs 4 euros")
        crawl(model, website)
        after = texts(model)
        assert len(after) == 3
        assert set(after) == set(before)
        assert sum(after[pk] != before[pk] for pk in after) == 1
        assert retrieve(model, "bread").hits[0].text.endswith("Bread costs 4 euros")
        assert index.check_model(model.pk) == []

    def test_a_page_that_is_gone_is_removed(self, model, website):
        crawl(model, website)
        website.paths |= {"/": page("Home", "/a"), "/b": Answer("gone", 410)}
        job = crawl(model, website)
        assert not model.snippets.filter(uri=website.url("/b")).exists()
        assert "not on the site any more: 1." in " ".join(job.notes)

    def test_a_page_that_moved_is_found_under_its_new_address_only(self, model, website):
        crawl(model, website)
        website.paths |= {"/b": redirect("/bread", 301), "/bread": page("Bread costs 3 euros")}
        crawl(model, website)
        assert sorted(model.snippets.values_list("uri", flat=True)) == sorted(map(website.url, ("/", "/a", "/bread")))

    def test_a_page_that_is_written_otherwise_today_is_stored_once(self, model, website):
        crawl(model, website)
        old = website.url("/b").replace("http://", "https://")
        TrainingSnippet.objects.filter(uri=website.url("/b")).update(uri=old)
        job = crawl(model, website)
        assert job.pages.get(url=old).final_url == website.url("/b")
        assert [uri for uri in model.snippets.values_list("uri", flat=True) if uri.endswith("/b")] == [
            website.url("/b")
        ]

    def test_a_page_no_link_leads_to_any_more_stays_while_it_is_there(self, model, website):
        crawl(model, website)
        website.paths["/"] = page("Home", "/a")
        job = crawl(model, website)
        assert stored(job, website) == ["/", "/a", "/b"]
        assert model.snippets.count() == 3

    def test_q07_a_page_that_fails_keeps_its_snippets(self, model, website):
        crawl(model, website)
        before = texts(model)
        website.paths["/b"] = Answer("down", 500)
        job = crawl(model, website)
        assert texts(model) == before
        assert retrieve(model, "bread").hits
        stale = job.pages.get(url=website.url("/b"))
        assert (stale.state, stale.reason, stale.snippet_count) == ("failed", "status 500", 1)

    def test_q07_a_site_that_is_down_empties_nothing(self, model, website):
        crawl(model, website)
        before = texts(model)
        website.paths |= {path: Answer("down", 500) for path in ("/", "/a", "/b")}
        assert crawl(model, website).state == State.FAILED
        assert texts(model) == before

    @pytest.mark.parametrize("sign", [page("Back soon"), redirect("/soon")], ids=["same text", "redirects"])
    def test_a_site_under_maintenance_empties_nothing(self, model, website, sign):
        crawl(model, website)
        before = texts(model)
        website.paths |= {"/": sign, "/a": sign, "/b": sign, "/soon": page("Back soon")}
        job = crawl(model, website)
        assert job.state == State.FAILED
        assert "maintenance" in job.message
        assert texts(model) == before

    def test_a_smaller_import_of_a_known_site_is_no_maintenance(self, model, website):
        crawl(model, website)
        before = texts(model)
        assert crawl(model, website, max_pages=1).state == State.DONE
        assert texts(model) == before

    def test_what_the_owner_edited_survives(self, model, website):
        crawl(model, website)
        edited = model.snippets.get(uri=website.url("/b"))
        snippets.edit(edited, "Bread", "Our bread costs 3 euros, on Sundays 2.", edited.uri)
        crawl(model, website)
        assert "Sundays" in model.snippets.get(pk=edited.pk).completion
        assert model.snippets.count() == 3

    def test_snippets_written_by_hand_and_of_other_sites_stay(self, model, website):
        by_hand = snippets.add(model, "By hand", "Text", uri=website.url("/not-there"))
        with Website({"/": page("Another site")}) as other:
            crawl(model, other)
        crawl(model, website)
        assert model.snippets.filter(pk=by_hand.pk).exists()
        assert model.snippets.count() == 5

    def test_only_the_newest_import_keeps_the_pages_texts(self, model, website):
        first = crawl(model, website)
        second = crawl(model, website)
        assert not any(first.pages.values_list("markdown", flat=True))
        assert all(second.pages.values_list("markdown", flat=True))


class TestProvidersThatFail:
    """Q07: until the new text can be found as well as the old one was, the old one stands."""

    @pytest.fixture
    def provider(self, settings):
        with OpenAIServer() as provider:
            settings.SITEWISE_EMBEDDING_URL, settings.SITEWISE_EMBEDDING_MODEL = provider.url, "fake"
            yield provider

    @pytest.fixture
    def hybrid(self, support, provider) -> MLModel:
        support.retrieval = Retrieval.HYBRID
        support.save()
        return support

    def test_an_embedding_service_that_is_away_leaves_the_page_as_it_was(self, hybrid, provider):
        with Website({"/": page("Home", "/b"), "/b": page("Bread costs 3 euros")}) as website:
            crawl(hybrid, website)
            before = list(hybrid.snippets.values_list("pk", "completion", "embedded_in"))
            assert {space for *_, space in before} == {space_of(hybrid).name}
            website.paths["/b"] = page("Bread costs 4 euros")
            provider.will(*[refusal(500)] * 10)
            job = crawl(hybrid, website)
            assert (job.state, "keep their old snippets" in job.message) == (State.FAILED, True)
            assert list(hybrid.snippets.values_list("pk", "completion", "embedded_in")) == before
            stale = job.pages.get(url=website.url("/b"))
            assert (stale.state, stale.reason, stale.snippet_count) == ("failed", "no vectors", 1)
            provider.replies.clear()
            crawl(hybrid, website)
        assert "4 euros" in hybrid.snippets.get(uri=website.url("/b")).completion
        assert set(hybrid.snippets.values_list("embedded_in", flat=True)) == {space_of(hybrid).name}
        assert index.check_model(hybrid.pk) == []

    def test_a_first_import_without_vectors_is_found_by_its_words(self, hybrid, provider):
        provider.will(*[refusal(500)] * 10)
        with Website({"/": page("Bread costs 3 euros")}) as website:
            job = crawl(hybrid, website)
        assert job.state == State.FAILED
        assert "Press Vectorise" in job.message
        assert retrieve(hybrid, "bread").hits[0].uri == website.url("/")

    def test_an_llm_that_fails_is_told_and_asked_again_the_next_time(self, model, settings, provider):
        settings.SITEWISE_LLM_URL = provider.url
        sections = "".join(f"<h2>Part {part}</h2><p>{f'word{part} ' * 300}</p>" for part in range(6))
        with Website({"/": f"<title>Large</title><main><h1>Large</h1>{sections}</main>"}) as website:
            for _ in range(2):
                provider.will(refusal(400))
                asked = len(provider.requests)
                job = crawl(model, website)
                assert len(provider.requests) > asked
                assert job.pages.get().report["split"] == "headings"
                assert job.pages.get().report["split_report"]
        assert len(texts(model)) > 1


class TestStartingAndStopping:
    @pytest.fixture
    def website(self):
        paths = {"/": page("Home", *[f"/{number}" for number in range(6)])}
        with Website(paths | {f"/{number}": page(f"Page {number}") for number in range(6)}) as website:
            yield website

    def test_a_second_import_of_the_model_is_refused_with_the_running_one(self, model, website):
        first = new_import(model, website.url("/"))
        with pytest.raises(ImportRunning) as refusal:
            new_import(model, website.url("/"))
        assert refusal.value.job == first

    def test_q06_an_interrupted_import_gives_way_to_a_new_one(self, model, website):
        first = Import.take(new_import(model, website.url("/")).pk)
        Import.objects.update(leased_until=timezone.now() - timedelta(minutes=20))
        assert crawl(model, website).state == State.DONE
        first.refresh_from_db()
        assert (first.state, first.message) == (State.STOPPED, "A newer import took its place.")

    def test_an_import_that_no_worker_takes_gives_way_to_a_new_one(self, model, website):
        job = new_import(model, website.url("/"))
        with pytest.raises(ImportRunning):
            new_import(model, website.url("/"))
        Import.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(minutes=5))
        assert new_import(model, website.url("/")).pk > job.pk
        assert Import.objects.get(pk=job.pk).state == State.STOPPED

    def test_q03_starting_an_import_sends_one_message_when_it_is_committed(
        self, acme_store, model, website, django_capture_on_commit_callbacks
    ):
        with django_capture_on_commit_callbacks(using=acme_store.alias) as callbacks:
            start_import(model, website.url("/"))
        assert len(callbacks) <= 1

    def test_the_pause_is_the_longer_of_ours_and_the_sites_within_reason(self, model, website):
        job = new_import(model, website.url("/"), delay_seconds=2)
        for start, wanted, pause in (
            ("https://ex.test/", 0, 2),
            ("https://ex.test/", 5, 5),
            ("https://ex.test/", 3_600, MAX_CRAWL_DELAY_SECONDS),
            ("http://127.0.0.1:8000/", 5, 0),
            ("http://localhost/", 5, 0),
            ("http://[::1]/", 5, 0),
        ):
            rules = SiteRules(start, frozenset(), "/", wanted, (), Robots(Protego.parse(""), "Sitewise", ()))
            assert pause_seconds(job, rules) == pause

    def test_stop_ends_the_import_between_two_pages(self, model, website):
        asked = []

        def stop_at_the_third(job: Import) -> None:
            asked.append(job.done_count)
            if len(asked) == 3:
                job.request_stop()

        job = crawl(model, website, stop_at_the_third)
        assert (job.state, job.message) == (State.STOPPED, "Stopped.")
        assert len(asked) == 3
        assert not texts(model)

    def test_progress_is_told_in_each_phase(self, model, website):
        told = []
        crawl(model, website, lambda job: told.append((job.phase, job.done_count, job.total_count)))
        assert told[0] == ("reading", 0, 1)
        assert sorted(told) == told
        assert [phase for phase, *_ in told] == ["reading"] * 7 + ["splitting"] * 7
        assert told[-1] == ("splitting", 7, 7)

    def test_deleting_the_model_ends_its_import(self, model, website):
        job = new_import(model, website.url("/"))
        taken = Import.take(job.pk)
        perform_taken(taken, lambda job, lease: import_site(job, lease, lambda job: snippets.delete_model(job.model)))
        assert taken.message == "The model is gone."
        assert not Import.objects.exists()
        assert not TrainingSnippet.objects.exists()


class Killed(BaseException):
    """Ends the work as a kill does: nothing is recorded, and the lease stays as it is until it runs out."""


class TestTakingUp:
    """A worker may die at any step; the next one ends the import as if nothing had happened."""

    STEPS = 10

    @pytest.fixture
    def website(self):
        frame = "<footer>Call 0800 4444</footer>"
        paths = {
            "/": page("Home", "/a", "/old", "/b", "/copy", "/missing") + frame,
            "/a": page("About the mill", "/c") + frame,
            "/b": page("Bread costs 3 euros") + frame,
            "/c": page("Contact us by phone") + frame,
            "/copy": page("About the mill", "/c") + frame,
            "/old": redirect("/b"),
        }
        with Website(paths) as website:
            yield website

    @pytest.fixture
    def undisturbed(self, website, globex):
        with activated(globex):
            model = MLModel.objects.create(slug="support", name="Support", retrieval=Retrieval.KEYWORD)
            steps = []
            crawl(model, website, lambda job: steps.append(job.phase))
            assert len(steps) == self.STEPS
            return everything(model)

    @pytest.mark.parametrize("step", range(1, STEPS + 1))
    def test_the_import_ends_as_an_undisturbed_one(self, model, website, undisturbed, step):
        job = new_import(model, website.url("/"))
        steps = []

        def die(job: Import) -> None:
            steps.append(job.phase)
            if len(steps) == step:
                raise Killed

        with pytest.raises(Killed):
            carry_on(job, die)
        assert Import.objects.get(pk=job.pk).state == State.RUNNING
        Import.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
        assert carry_on(job).state == State.DONE
        assert everything(model) == undisturbed

    def test_an_import_that_is_taken_up_while_the_site_is_down_goes_on_with_what_was_read(self, model, website):
        job = new_import(model, website.url("/"))

        def die(job: Import) -> None:
            if job.pages.filter(state="read").count() == 3:
                raise Killed

        with pytest.raises(Killed):
            carry_on(job, die)
        Import.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
        website.paths["/robots.txt"] = Answer("down", 503)
        job = carry_on(job)
        assert job.state == State.DONE
        assert len(stored(job, website)) == 3
        assert "The site stopped answering" in " ".join(job.notes)


def test_q02_questions_are_logged_while_an_import_writes_thousands_of_snippets(acme_store, model):
    # Pages of many sections: the snippets of each are written in a single transaction.
    sections = "".join(f"<h2>Part {number}</h2><p>{f'word{number} ' * 150}</p>" for number in range(600))
    model.max_context_tokens = 300
    model.save()
    failures, is_writing = [], threading.Event()

    def ask() -> None:
        is_writing.wait()
        try:
            with activated(acme_store):
                for number in range(100):
                    Turn.objects.create(model_id=model.pk, question=f"Question {number}")
        except Exception as error:
            failures.append(error)
        finally:
            connections.close_all()

    visitors = threading.Thread(target=ask)
    visitors.start()
    paths = {f"/{number}": f"<main><h1>{number}</h1>{sections}</main>" for number in range(4)}
    with Website(paths | {"/": page("Home", *paths)}) as website:
        crawl(model, website, lambda job: is_writing.set() if job.phase == Import.Phase.SPLITTING else None)
        is_writing.set()
        visitors.join()
    assert failures == []
    assert Turn.objects.count() == 100
    assert model.snippets.count() > 1_000
    assert Turn.objects.earliest("created_at").created_at < TrainingSnippet.objects.latest("created_at").created_at
