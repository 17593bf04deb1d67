import socket
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.web.fetch import WebClient
from crawler.web.robots import product_token
from crawler.web.site import (
    DISALLOWED,
    NOT_A_PAGE,
    OUT_OF_SCOPE,
    ListRules,
    SiteRules,
    SiteUnreachable,
    read_list_rules,
    read_site_rules,
    site_key,
)
from tenants.addresses import AddressPolicy
from tests.fakes.certificates import Authority
from tests.fakes.website import Answer, Website, page, redirect

ROBOTS_OPEN = Answer("User-agent: *\nDisallow:", content_type="text/plain")


def names_on_loopback(host: str, port: int) -> list[str]:
    """Resolve every .test name to this machine, and besides only localhost."""
    if host != "localhost" and not host.endswith(".test"):
        raise socket.gaierror(socket.EAI_NONAME, f"{host} is unknown")
    return ["127.0.0.1"]


ON_LOOPBACK = AddressPolicy(allow_loopback=True, resolver=names_on_loopback)


@pytest.fixture
def client():
    with WebClient(ON_LOOPBACK, user_agent="OurBot/1 (+https://sitewise.test)", sleep=lambda seconds: None) as client:
        yield client


def robots(text: str | bytes, **fields) -> Answer:
    return Answer(text, content_type="text/plain", **fields)


def rules_of(client: WebClient, paths: dict, typed: str = "{host}") -> tuple[SiteRules, Website]:
    """Return the rules of a website with these paths, at an address typed for ex.test."""
    with Website({"/": page("home"), **paths}) as site:
        return read_site_rules(client, typed.format(host=f"ex.test:{site.port}", port=site.port)), site


def failure_of(client: WebClient, paths: dict, typed: str = "http://{host}") -> tuple[SiteUnreachable, Website]:
    with Website({"/": page("home"), **paths}) as site, pytest.raises(SiteUnreachable) as failure:
        read_site_rules(client, typed.format(host=f"ex.test:{site.port}", port=site.port))
    return failure.value, site


@pytest.mark.parametrize(
    "typed",
    [
        "{host}",
        "  {host}/ ",
        "http://{host}",
        "HTTP://EX.test:{port}",
        "http:/{host}",
        "http//{host}",
        "//{host}/",
        "<{host}>",
    ],
)
def test_an_address_is_understood_as_people_type_it(client, typed):
    rules, site = rules_of(client, {}, typed)
    assert rules.start_url == site.url("/", "ex.test")
    assert rules.path_prefix == "/"
    assert rules.hosts == {f"ex.test:{site.port}", f"www.ex.test:{site.port}"}


def test_an_address_with_a_number_for_a_host_has_no_www(client):
    with Website({"/": page("home")}) as site:
        rules = read_site_rules(client, f"127.0.0.1:{site.port}")
        assert rules.hosts == {f"127.0.0.1:{site.port}"}
        assert read_site_rules(client, site.url("/", "localhost").removeprefix("http://")).start_url
    assert {request.path for request in site.requests} == {"/robots.txt", "/"}


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "   ",
        "my website",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "mailto:ann@ex.test",
        "ftp://ex.test",
        "http://",
        "javascript:alert(1)",
        "http://ok@ex.test/",
        "ex.test:port",
        "https://[::1",
        "http://300.1.1.1",
    ],
)
def test_what_is_no_web_address_is_refused_with_a_clear_message(client, typed):
    with pytest.raises(SiteUnreachable) as failure:
        read_site_rules(client, typed)
    assert failure.value.reason == "bad address"
    assert not failure.value.is_retryable
    assert "address" in failure.value.message


def test_private_addresses_are_refused_in_every_spelling_when_the_site_is_added(case):
    with WebClient(AddressPolicy(resolver=lambda host, port: ["10.0.0.1"])) as client:
        typed = case("X02")["input"]["urls"]
        for address in [*typed, *(url.removeprefix("http://") for url in typed), "intranet.test"]:
            with pytest.raises(SiteUnreachable) as failure:
                read_site_rules(client, address)
            assert failure.value.reason in ("private address", "bad address")


def test_https_is_tried_before_http_and_http_is_used_where_https_does_not_answer(client, tmp_path):
    rules, plain = rules_of(client, {})
    assert rules.start_url == plain.url("/", "ex.test")
    authority = Authority(tmp_path)
    with (
        Website({"/": page("home")}, tls=authority.server_context("ex.test")) as site,
        WebClient(ON_LOOPBACK, ca_file=authority.file) as trusting,
    ):
        assert read_site_rules(trusting, f"ex.test:{site.port}").start_url == site.url("/", "ex.test")


def test_a_typed_scheme_is_the_only_one_tried(client):
    failure, site = failure_of(client, {}, "https://{host}")
    assert failure.reason == "tls"
    assert site.requests == []


def test_redirects_lead_to_the_sites_real_host(client):
    with Website({"//www.ex.test/": redirect("/en/"), "//www.ex.test/en/": page("home")}) as site:
        site.paths["//ex.test/"] = redirect(site.url("/", "www.ex.test"), 301)
        rules = read_site_rules(client, f"ex.test:{site.port}")
    assert rules.start_url == site.url("/en/", "www.ex.test")
    assert rules.path_prefix == "/"
    assert f"ex.test:{site.port}" in rules.hosts
    assert site.asked("//ex.test/robots.txt") == site.asked("//www.ex.test/robots.txt") == 1


def test_the_robots_of_each_host_on_the_way_are_asked_before_its_pages(client):
    with Website({"//new.test/robots.txt": robots("User-agent: *\nDisallow: /"), "//new.test/": page("home")}) as site:
        site.paths["//ex.test/"] = redirect(site.url("/", "new.test"))
        with pytest.raises(SiteUnreachable) as failure:
            read_site_rules(client, f"ex.test:{site.port}")
    assert failure.value.reason == "disallowed by robots"
    assert "new.test" in failure.value.message
    assert site.asked("//new.test/") == 0


@pytest.mark.parametrize(
    ("typed_path", "paths", "prefix"),
    [
        ("/docs/", {}, "/docs/"),
        ("/docs", {}, "/docs/"),
        ("/docs/index.html", {}, "/docs/"),
        ("/docs/v1.2", {}, "/docs/v1.2/"),
        ("/about.html", {}, "/"),
        ("/docs?lang=en", {}, "/docs/"),
        ("/docs", {"/docs": redirect("/docs/intro/")}, "/docs/"),
        ("/docs", {"/docs": redirect("/manual/start.html")}, "/manual/"),
        ("/old", {"/old": redirect("/")}, "/"),
        ("", {"/": redirect("/en/")}, "/"),
    ],
)
def test_a_path_limits_the_crawl_to_its_folder(client, typed_path, paths, prefix):
    pages = dict.fromkeys(
        (
            "/docs/",
            "/docs",
            "/docs/index.html",
            "/docs/v1.2",
            "/about.html",
            "/docs/intro/",
            "/manual/start.html",
            "/en/",
        ),
        page("here"),
    )
    rules, site = rules_of(client, {**pages, **paths}, "{host}" + typed_path)
    assert rules.path_prefix == prefix
    assert rules.refusal(rules.start_url) is None
    for inside in (prefix, f"{prefix}a", f"{prefix}a/b.html?c", prefix.rstrip("/") or "/"):
        assert rules.refusal(site.url(inside, "ex.test")) is None
    if prefix != "/":
        for outside in ("/", f"{prefix.rstrip('/')}2/", "/other/"):
            assert rules.refusal(site.url(outside, "ex.test")) == "out of scope"


def test_the_site_is_its_host_with_or_without_www_by_http_or_https_at_its_port(client):
    rules, site = rules_of(client, {})
    port = site.port
    for inside in (f"https://ex.test:{port}/a", f"http://www.ex.test:{port}/", f"http://EX.test:{port}/a#b"):
        assert rules.refusal(inside) is None
    outsiders = [
        "http://ex.test/",
        f"http://ex.test:{port + 1}/",
        f"http://sub.ex.test:{port}/",
        "mailto:a@ex.test",
        "/a",
    ]
    for outside in [
        *outsiders,
        f"http://ex.test.evil.test:{port}/",
        f"http://notex.test:{port}/",
        f"ftp://ex.test:{port}/",
    ]:
        assert rules.refusal(outside) == "out of scope"


@pytest.mark.parametrize(
    "path", ["/a.jpg", "/a.ZIP", "/style.css?v=2", "/a/b.min.js", "/feed.rss", "/font.woff2", "/x.tar.gz"]
)
def test_files_that_are_never_pages_are_refused(client, path):
    rules, site = rules_of(client, {})
    assert rules.refusal(site.url(path, "ex.test")) == "not a page"


@pytest.mark.parametrize(
    "path", ["/a", "/a.html", "/a.php?f=b.jpg", "/jpg", "/a.jpg/", "/manual.pdf", "/v1.2", "/node.js/intro"]
)
def test_other_paths_may_be_pages(client, path):
    rules, site = rules_of(client, {})
    assert rules.refusal(site.url(path, "ex.test")) is None


def test_robots_answers_of_the_case_decide_what_may_be_fetched(client, case):
    allowed = case("W08")["expected"]["pages_fetched_allowed"]
    forbids_some, missing, down, timeout, busy, moved = case("W08")["input"]["robots_responses"]

    rules, site = rules_of(client, {"/robots.txt": robots(forbids_some["body"])})
    assert rules.refusal(site.url("/private/x", "ex.test")) == "disallowed by robots"
    assert rules.refusal(site.url("/public", "ex.test")) is None
    rules, site = rules_of(client, {"/robots.txt": robots("", status=missing["status"])})
    assert rules.refusal(site.url("/private/x", "ex.test")) is None

    for answer in (
        robots(down["body"], status=down["status"]),
        robots("", status=busy["status"]),
        Answer(is_dropped=True),
    ):
        failure, site = failure_of(client, {"/robots.txt": answer})
        assert (failure.reason, failure.is_retryable) == ("robots.txt unreachable", True)
        assert set(site.asked_paths) == {"/robots.txt"}, "no page is fetched"

    assert timeout == {"error": "timeout"}
    with WebClient(ON_LOOPBACK, timeout_seconds=0.3) as hasty:
        failure, site = failure_of(hasty, {"/robots.txt": Answer(pieces=[b"", b""], pause_seconds=1)})
        assert (failure.reason, failure.is_retryable) == ("robots.txt unreachable", True)
        assert site.asked_paths == ["/robots.txt"]

    assert moved["to"].startswith("/robots-real.txt")
    real = {"/robots.txt": redirect("/robots-real.txt", 301), "/robots-real.txt": robots("User-agent: *\nDisallow: /")}
    failure, site = failure_of(client, real)
    assert failure.reason == "disallowed by robots"
    assert site.asked_paths == ["/robots.txt", "/robots-real.txt"]
    assert allowed["503"] == allowed["429"] == allowed["timeout"] == "none"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_robots_that_are_not_there_or_not_open_allow_everything(client, status):
    rules, site = rules_of(client, {"/robots.txt": robots("User-agent: *\nDisallow: /", status=status)})
    assert rules.refusal(site.url("/a", "ex.test")) is None


@pytest.mark.parametrize("status", [500, 502, 503, 504, 429])
@pytest.mark.parametrize("typed", ["{host}", "http://{host}"])
def test_robots_that_fail_keep_every_page_from_being_fetched(client, status, typed):
    failure, site = failure_of(client, {"/robots.txt": robots("", status=status)}, typed)
    assert failure.is_retryable
    assert set(site.asked_paths) == {"/robots.txt"}


def test_robots_redirects_are_followed_five_times_and_across_hosts(client):
    def chain(length: int) -> dict:
        hops = {"/robots.txt": redirect("/r1")} | {f"/r{n}": redirect(f"/r{n + 1}") for n in range(1, length)}
        return hops | {f"/r{length}": robots("User-agent: *\nDisallow: /no")}

    rules, site = rules_of(client, chain(5))
    assert rules.refusal(site.url("/no", "ex.test")) == "disallowed by robots"
    rules, site = rules_of(client, chain(6))
    assert rules.refusal(site.url("/no", "ex.test")) is None, "RFC 9309: may count as not there"
    assert site.asked("/r6") == 0
    with Website({"//ex.test/": page("home"), "//cdn.test/r.txt": robots("User-agent: *\nDisallow: /no")}) as site:
        site.paths["//ex.test/robots.txt"] = redirect(site.url("/r.txt", "cdn.test"))
        rules = read_site_rules(client, site.url("/", "ex.test"))
    assert rules.refusal(site.url("/no", "ex.test")) == "disallowed by robots"


def test_verdicts_of_the_case_on_robots_details(client, case):
    agent = case("W09")["input"]["agent"]
    assert client.user_agent.startswith(f"{agent}/")
    cases, verdicts = case("W09")["input"]["cases"], case("W09")["expected"]["allowed"]
    for row, allowed in zip(cases, verdicts, strict=True):
        text = eval(row["robots_bytes"]) if "robots_bytes" in row else row["robots"]
        # The site starts at a page that is open in any case, so that rules which forbid all the rest can be seen.
        body = text if isinstance(text, bytes) else text.encode()
        opened = body + b"\nAllow: /start$" if b"\n\nUser-agent: OurBot" not in body else body
        rules, site = rules_of(client, {"/robots.txt": robots(opened), "/start": page("start")}, "{host}/start")
        rules = SiteRules(rules.start_url, rules.hosts, "/", 0, (), rules.robots)
        paths = row.get("paths") or [row["path"]]
        assert [rules.refusal(site.url(path, "ex.test")) is None for path in paths] == allowed


def test_a_site_that_robots_forbid_altogether_says_so(client):
    failure, site = failure_of(client, {"/robots.txt": robots(b"\xef\xbb\xbfUser-agent: *\nDisallow: /")}, "{host}")
    assert (failure.reason, failure.is_retryable) == ("disallowed by robots", False)
    assert "forbids all" in failure.message
    assert site.asked("/") == 0


@pytest.mark.parametrize("allow", ["Allow: /public/", "Allow: /*.html$", "allow : /a"])
def test_a_site_of_which_robots_allow_a_part_is_not_forbidden_altogether(client, allow):
    rules, site = rules_of(client, {"/robots.txt": robots(f"User-agent: *\nDisallow: /\n{allow}")})
    assert rules.refusal(rules.start_url) == "disallowed by robots"
    assert site.asked("/") == 0


def test_robots_of_more_than_half_a_megabyte_are_read_up_to_the_limit(client):
    text = "User-agent: *\nDisallow: /no\n" + "# filler\n" * 60_000 + "Disallow: /private"
    cut_in_a_line = text[: 500 * 1024 - 11] + "\nDisallow: /private"
    for body in (text, cut_in_a_line):
        rules, site = rules_of(client, {"/robots.txt": robots(body)})
        assert rules.refusal(site.url("/no", "ex.test")) == "disallowed by robots"
        assert rules.refusal(site.url("/anything", "ex.test")) is None


@pytest.mark.parametrize(
    ("lines", "delay"),
    [
        ("Crawl-delay: 2.5", 2.5),
        ("Request-rate: 1/10", 10),
        ("Crawl-delay: 1\nRequest-rate: 2/10", 5),
        ("Crawl-delay: x", 0),
    ],
)
def test_the_pace_that_robots_ask_for_is_known(client, lines, delay):
    rules, _ = rules_of(client, {"/robots.txt": robots(f"User-agent: *\nDisallow: /x\n{lines}")})
    assert rules.crawl_delay_seconds == delay


def test_sitemaps_in_robots_and_the_usual_places_are_known(client):
    lines = "Sitemap: https://cdn.test/s.xml\nSitemap: /own.xml\nSitemap: /own.xml\nSitemap: javascript:x"
    rules, site = rules_of(client, {"/robots.txt": robots(lines), "/docs/": page("docs")}, "{host}/docs/")
    assert rules.sitemap_urls == ("https://cdn.test/s.xml", site.url("/own.xml", "ex.test"))
    assert rules.guessed_sitemap_urls == (site.url("/sitemap.xml", "ex.test"), site.url("/docs/sitemap.xml", "ex.test"))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer("", status=404), "status 404"),
        (Answer("", status=500), "status 500"),
        (redirect("/login"), "login required"),
        (redirect("/"), "too many redirects"),
        (Answer(b"%PDF-1.7"), "not html: pdf"),
        (Answer("x" * 2000), "too large"),
        (Answer(""), "empty"),
    ],
)
def test_a_start_page_that_cannot_be_had_says_why(answer, reason):
    with WebClient(ON_LOOPBACK, max_body_bytes=1000, sleep=lambda seconds: None) as client:
        failure, _ = failure_of(client, {"/": answer})
    assert failure.reason == reason
    assert "ex.test" in failure.message


def test_a_site_that_is_down_or_unknown_says_so(client):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(SiteUnreachable) as failure:
            read_site_rules(client, f"ex.test:{unused.getsockname()[1]}")
    assert (failure.value.reason, failure.value.is_retryable) == ("connection", True)
    with pytest.raises(SiteUnreachable) as failure:
        read_site_rules(client, "no-such-host.example")
    assert failure.value.reason == "dns"
    assert "no-such-host.example" in failure.value.message


@given(st.text(max_size=30))
def test_no_typed_text_at_all_fails_otherwise_than_as_unreachable(typed):
    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    with WebClient(AddressPolicy(resolver=unknown), user_agent="OurBot/1") as client, pytest.raises(SiteUnreachable):
        read_site_rules(client, typed)


def list_rules_of(client: WebClient, paths: dict, *typed: str) -> tuple[ListRules, Website]:
    """Return the rules for single pages of a website that answers under all .test names."""
    with Website(paths) as site:
        return read_list_rules(client, [address.format(port=site.port) for address in typed]), site


def test_listed_pages_are_understood_as_typed_and_each_host_is_asked_once(client):
    rules, site = list_rules_of(
        client, {}, "a.test:{port}/one", " http://a.test:{port}/two ", "", "b.test:{port}", "a.test:{port}/one#part"
    )
    base_a, base_b = f"http://a.test:{site.port}", f"http://b.test:{site.port}"
    assert rules.addresses == (f"{base_a}/one", f"{base_a}/two", f"{base_b}/")
    assert rules.start_url == f"{base_a}/one"
    assert (site.asked("//a.test/robots.txt"), site.asked("//b.test/robots.txt")) == (1, 1)
    assert site.asked_paths == ["/robots.txt", "/robots.txt"]
    assert [rules.refusal(address) for address in rules.addresses] == [None, None, None]
    assert rules.refusal(f"http://www.a.test:{site.port}/moved") is None
    assert rules.refusal(f"http://c.test:{site.port}/") == OUT_OF_SCOPE
    assert rules.refusal(f"{base_a}/logo.png") == NOT_A_PAGE
    assert rules.address_of(f"{base_b}/x?utm_source=a#b") == f"{base_b}/x"


def test_each_listed_hosts_robots_rule_its_own_pages_and_the_slowest_pace_holds(client):
    rules, site = list_rules_of(
        client,
        {
            "//a.test/robots.txt": robots("User-agent: *\nDisallow: /private\nCrawl-delay: 2"),
            "//b.test/robots.txt": robots("User-agent: *\nCrawl-delay: 3"),
        },
        "http://a.test:{port}/private",
        "http://b.test:{port}/private",
    )
    assert [rules.refusal(address) for address in rules.addresses] == [DISALLOWED, None]
    assert rules.crawl_delay_seconds == 3
    assert not rules.is_allowed(f"http://a.test:{site.port}/private/scripts.js")
    assert rules.is_allowed(f"http://elsewhere.test:{site.port}/private/scripts.js")


def test_a_listed_host_that_does_not_answer_spoils_only_its_own_pages(client):
    rules, site = list_rules_of(
        client,
        {"//b.test/robots.txt": Answer(status=503)},
        "http://nowhere.invalid/a",
        "http://b.test:{port}/b",
        "http://a.test:{port}/c",
        "http://10.0.0.1/d",
        "mailto:ann@acme.test",
    )
    assert {urlsplit(address).path: rules.refusal(address) for address in rules.addresses} == {
        "/a": "dns",
        "/b": "robots.txt unreachable",
        "/c": None,
    }
    assert rules.start_url == f"http://a.test:{site.port}/c"
    assert len(rules.problems) == 2


@pytest.mark.parametrize(
    ("typed", "reason"),
    [([], "bad address"), (["", " "], "bad address"), (["ftp://a.test/"], "bad address"), (["nowhere.invalid"], "dns")],
)
def test_a_list_without_any_page_that_can_be_had_says_so(client, typed, reason):
    with pytest.raises(SiteUnreachable) as failure:
        read_list_rules(client, typed)
    assert failure.value.reason == reason
    assert failure.value.message


@pytest.mark.parametrize(
    ("user_agent", "token"),
    [
        ("OurBot/1 (+https://sitewise.test)", "OurBot"),
        ("Mozilla/5.0 (compatible; AcmeBot/1.0; +https://acme.test)", "AcmeBot"),
        ("Plain", "Plain"),
    ],
)
def test_robots_know_the_crawler_by_its_own_name(user_agent, token):
    assert product_token(user_agent) == token


def test_the_sites_robots_rule_what_its_pages_load_and_no_other_site(client):
    paths = {"/docs/": page("docs"), "/robots.txt": robots("User-agent: *\nDisallow: /api/")}
    rules, site = rules_of(client, paths, "http://{host}/docs/")
    assert not rules.is_allowed(f"http://ex.test:{site.port}/api/texts.json")
    assert rules.is_allowed(f"http://ex.test:{site.port}/static/site.js")
    assert rules.is_allowed(f"http://cdn.test:{site.port}/api/texts.json")


def test_reading_the_rules_of_a_list_can_be_stopped_before_each_host(client):
    def stop() -> None:
        raise KeyboardInterrupt

    with Website() as site, pytest.raises(KeyboardInterrupt):
        read_list_rules(client, [f"http://a.test:{site.port}/"], stop)
    assert site.requests == []


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("example.com", "https://www.example.com/", True),
        ("http://example.com:80", "https://example.com:443/index.html", True),
        ("Example.com/help", "example.com/help/", True),
        ("example.com/help", "example.com", False),
        ("example.com", "example.com:8080", False),
        ("docs.example.com", "example.com", False),
        ("127.0.0.1:8000", "http://127.0.0.1:8000/", True),
    ],
)
def test_addresses_of_one_site_have_one_key(one, other, is_same):
    assert (site_key(one) == site_key(other)) is is_same


@pytest.mark.parametrize("address", ["", "  ", "mailto:a@example.com", "https://", "//"])
def test_what_is_no_address_has_no_key(address):
    assert site_key(address) == ""
