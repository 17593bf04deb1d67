import gzip
import io
import os
import socket
import tracemalloc
import zipfile
import zlib

import pytest

from crawler.web.fetch import PAGE_OR_DOCUMENT, FetchError, Known, Wanted, WebClient
from tenants.addresses import AddressPolicy
from tests.fakes.certificates import Authority
from tests.fakes.website import Answer, Request, Website, page, redirect

PUBLIC = "93.184.216.34"
ANY_KIND = Wanted()


def names_on_loopback(host: str, port: int) -> list[str]:
    """Resolve every .test name to this machine, and nothing else."""
    if not host.endswith(".test"):
        raise socket.gaierror(socket.EAI_NONAME, f"{host} is unknown")
    return ["127.0.0.1"]


ON_LOOPBACK = AddressPolicy(allow_loopback=True, resolver=names_on_loopback)


class Naps(list):
    """Stands in for sleep: remembers how long each wait would have been."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
def client(naps):
    with WebClient(ON_LOOPBACK, user_agent="Sitewise/1 (+https://sitewise.test)", sleep=naps) as client:
        yield client


def gzip_of_a(megabytes: int) -> bytes:
    """Return the gzip form of that many million letters, made without holding them."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return b"".join(packer.compress(b"a" * 1_000_000) for _ in range(megabytes)) + packer.flush()


def follow(_target: str) -> None:
    return None


def reason_of(client: WebClient, url: str, is_followable=follow, wanted: Wanted | None = None) -> str:
    with pytest.raises(FetchError) as failure:
        client.fetch(url, is_followable, wanted) if wanted else client.fetch(url, is_followable)
    assert failure.value.url
    assert failure.value.reason in str(failure.value) or len(str(failure.value)) > len(failure.value.reason)
    return failure.value.reason


def test_a_page_comes_with_its_text_kind_and_address(client):
    with Website({"/a": Answer("<p>Grüße\x00</p>", headers={"X-Robots-Tag": "noindex"})}) as site:
        fetched = client.fetch(site.url("/a?b=1", "ex.test"), follow)
    assert (fetched.url, fetched.final_url) == (site.url("/a?b=1", "ex.test"),) * 2
    assert (fetched.status, fetched.kind, fetched.text) == (200, "html", "<p>Grüße</p>")
    assert fetched.body == "<p>Grüße\x00</p>".encode()
    assert fetched.robots_header == "noindex"
    assert site.requests[0].headers["user-agent"] == "Sitewise/1 (+https://sitewise.test)"
    assert site.requests[0].host == f"ex.test:{site.port}"


def test_what_is_not_given_comes_from_the_settings(settings):
    settings.SITEWISE_CRAWL_USER_AGENT = "Sitewise/9 (+https://me.test)"
    settings.SITEWISE_MAX_PAGE_BYTES = 10
    settings.SITEWISE_ALLOW_LOOPBACK = True
    with Website({"/": "x" * 11}) as site, WebClient() as client:
        assert reason_of(client, site.url("/")) == "too large"
    assert site.requests[0].headers["user-agent"] == "Sitewise/9 (+https://me.test)"


def test_every_hop_is_checked_before_it_is_requested(client, case):
    server, expected = case("W06")["input"]["server"], case("W06")["expected"]
    assert {"/go", "/old", "/moved", "/new"} == set(server)
    with Website({"//docs.ex.test/moved": redirect("/new", 301), "//docs.ex.test/new": page("text")}) as site:
        home = site.url("", "docs.ex.test")
        site.paths["//docs.ex.test/go"] = redirect(site.url("/land", "tracker.test"))
        site.paths["//docs.ex.test/old"] = redirect("/private/x", 301)

        def is_followable(target: str) -> str | None:
            if not target.startswith(home):
                return "out of scope"
            return "disallowed by robots" if "/private" in target else None

        assert reason_of(client, f"{home}/go", is_followable) == "out of scope"
        assert reason_of(client, f"{home}/old", is_followable) == "disallowed by robots"
        fetched = client.fetch(f"{home}/moved", is_followable)
    assert fetched.final_url.replace(home, "https://docs.ex.test") in expected["stored_urls"]
    assert fetched.redirects == (f"{home}/new",)
    asked = {f"https://{request.host.split(':')[0]}{request.path}" for request in site.requests}
    assert asked.isdisjoint(expected["never_requested"])


def test_cookies_open_a_redirect_to_itself_and_true_loops_end(client, case):
    expected = case("W17")["expected"]

    def shop(request: Request) -> Answer | str:
        return page("Bikes") if "ok=1" in request.headers.get("cookie", "") else redirect("/shop", Set_Cookie="ok=1")

    paths = {"/shop": shop, "/spin": redirect("/spin"), "/ping": redirect("/pong"), "/pong": redirect("/ping")}
    with Website(paths) as site:
        assert "Bikes" in client.fetch(site.url("/shop", "ex.test"), follow).text
        assert site.asked("/shop") == 2
        for path in ("/spin", "/ping"):
            assert reason_of(client, site.url(path, "ex.test")) == "too many redirects"
        for path, most in expected["max_requests"].items():
            assert site.asked(path) <= most
        client.fetch(site.url("/shop", "ex.test"), follow)
        assert site.asked("/shop") == 3, "cookies stay within the crawl"
    with WebClient(ON_LOOPBACK) as other, Website(paths) as site:
        other.fetch(site.url("/shop", "ex.test"), follow)
        assert site.asked("/shop") == 2, "and are not shared with another crawl"


def test_a_path_that_redirects_to_itself_with_a_slash_is_fetched_once(client, case):
    assert case("W03")["input"]["server"]["/services"] == "301 -> /services/"
    with Website({"/services": redirect("/services/", 301), "/services/": page("We fix bikes")}) as site:
        fetched = client.fetch(site.url("/services"), follow)
    assert fetched.final_url == site.url("/services/")
    assert site.asked_paths == ["/services", "/services/"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_all_redirect_statuses_and_forms_of_location_are_followed(client, status):
    locations = {"/a": "b?x=1", "/b": "//ex.test:{port}/grüße#part", "/gr%C3%BC%C3%9Fe": "{home}/end"}
    with Website({"/end": page("end")}) as site:
        for path, location in locations.items():
            target = location.format(port=site.port, home=site.url("", "ex.test")).encode().decode("latin-1")
            site.paths[path] = Answer(status=status, headers={"Location": target})
        fetched = client.fetch(site.url("/a", "ex.test"), follow)
    assert fetched.final_url == site.url("/end", "ex.test")
    assert len(fetched.redirects) == 3
    assert not any("#" in hop for hop in fetched.redirects)


@pytest.mark.parametrize(
    ("statuses", "is_for_good"),
    [([], True), ([301], True), ([301, 308], True), ([301, 302], False), ([303], False), ([307, 301], False)],
)
def test_redirects_hold_for_good_where_none_of_them_is_temporary(client, statuses, is_for_good):
    hops = {f"/{number}": redirect(f"/{number + 1}", status) for number, status in enumerate(statuses)}
    with Website(hops | {f"/{len(statuses)}": page("end")}) as site:
        assert client.fetch(site.url("/0"), follow).is_for_good is is_for_good
        del site.paths[f"/{len(statuses)}"]
        with pytest.raises(FetchError) as failure:
            client.fetch(site.url("/0"), follow)
    assert (failure.value.status, failure.value.is_for_good) == (404, is_for_good)


def test_a_refresh_holds_but_for_now(client):
    refresh = '<meta http-equiv="refresh" content="0; url=/b">'
    with Website({"/a": refresh, "/b": page("end")}) as site:
        assert not client.fetch(site.url("/a"), follow).is_for_good


@pytest.mark.parametrize("location", ["http://[::1/", "gopher://ex.test/", "http://user@ex.test/", "javascript:1"])
def test_a_redirect_to_what_is_no_web_address_is_an_error_of_the_page(client, location):
    with Website({"/": redirect(location)}) as site:
        assert reason_of(client, site.url("/")) == "bad address"
    assert site.asked_paths == ["/"]


@pytest.mark.parametrize(
    "target", ["http://169.254.169.254/latest", "http://2130706433:1/", "http://inside.corp.test/"]
)
def test_a_redirect_to_a_private_address_is_refused(target):
    def resolver(host: str, port: int) -> list[str]:
        return ["10.0.0.8"] if host == "inside.corp.test" else [PUBLIC]

    dialled = []

    def dial(address: str, port: int, timeout_seconds: float) -> socket.socket:
        dialled.append(address)
        return socket.create_connection(("127.0.0.1", site.port), timeout_seconds)

    with (
        Website({"/": redirect(target)}) as site,
        WebClient(AddressPolicy(resolver=resolver, dial=dial)) as client,
    ):
        assert reason_of(client, "http://ex.test/") == "private address"
    assert dialled == [PUBLIC]


def test_private_addresses_are_refused_as_literals_and_as_names(case):
    with WebClient(AddressPolicy(resolver=lambda host, port: ["10.1.1.1"])) as client:
        for url in (*case("X02")["input"]["urls"], "http://intranet.test/"):
            assert reason_of(client, url) in ("private address", "bad address")


def test_the_address_that_was_checked_is_connected_to_and_a_second_answer_is_checked_again(case):
    rounds = [[PUBLIC], ["127.0.0.1"]]
    dialled = []

    def dial(address: str, port: int, timeout_seconds: float) -> socket.socket:
        dialled.append(address)
        return socket.create_connection(("127.0.0.1", site.port), timeout_seconds)

    policy = AddressPolicy(resolver=lambda host, port: rounds.pop(0), dial=dial)
    with Website({"/a": page("public")}) as site:
        with WebClient(policy) as client:
            assert "public" in client.fetch("http://rebind.test/a", follow).text
        with WebClient(policy) as client:
            assert reason_of(client, "http://rebind.test/a") == "private address"
    assert dialled == case("X04")["expected"]["connected_to"]
    assert [request.host for request in site.requests] == ["rebind.test"]


def test_tls_keeps_the_host_name_for_sni_and_certificate(tmp_path):
    authority = Authority(tmp_path)
    with Website({"/": page("secret")}, tls=authority.server_context("good.test")) as site:
        with WebClient(ON_LOOPBACK, ca_file=authority.file) as client:
            assert "secret" in client.fetch(site.url("/", "good.test"), follow).text
            assert reason_of(client, site.url("/", "evil.test")) == "tls"
        with WebClient(ON_LOOPBACK) as stranger:
            assert reason_of(stranger, site.url("/", "good.test")) == "tls"
    assert authority.names_asked == ["good.test", "evil.test", "good.test"]


def test_a_proxy_of_the_environment_is_not_used(client, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with Website({"/": page("direct")}) as site:
        assert "direct" in client.fetch(site.url("/"), follow).text


def test_decoded_bytes_are_limited_however_small_the_answer_on_the_wire(naps, case):
    limit = case("W16")["input"]["limit_bytes"]
    bomb = gzip_of_a(200)
    gzipped = {"Content-Encoding": "gzip"}
    paths = {
        "/bomb": Answer(bomb, headers=gzipped),
        "/no-length": Answer(pieces=[bomb], headers=gzipped),
        "/lying": Answer(bomb, headers={**gzipped, "Content-Length": str(10 * len(bomb))}),
        "/double": Answer(gzip.compress(bomb), headers={"Content-Encoding": "gzip, gzip"}),
        "/endless": Answer(pieces=(b"x" * 100_000 for _ in iter(int, 1))),
        "/small": page("small"),
    }
    with Website(paths) as site, WebClient(ON_LOOPBACK, max_body_bytes=limit, sleep=naps) as client:
        for path in ("/bomb", "/no-length", "/lying", "/double", "/endless"):
            assert reason_of(client, site.url(path)) == "too large"
        assert "small" in client.fetch(site.url("/small"), follow).text


def test_a_body_of_just_the_limit_is_whole_and_a_longer_one_can_be_cut():
    with Website({"/": "x" * 1000}) as site, WebClient(ON_LOOPBACK, max_body_bytes=1000) as client:
        assert len(client.fetch(site.url("/"), follow).body) == 1000
        assert len(client.fetch(site.url("/"), follow, Wanted(max_body_bytes=10, is_cut_allowed=True)).body) == 10
        assert reason_of(client, site.url("/"), wanted=Wanted(max_body_bytes=999)) == "too large"


def test_memory_stays_small_while_a_compressed_bomb_is_refused(client):
    with Website({"/bomb": Answer(gzip_of_a(100), headers={"Content-Encoding": "gzip"})}) as site:
        tracemalloc.start()
        assert reason_of(client, site.url("/bomb")) == "too large"
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 25_000_000


def test_kinds_of_the_case_are_skipped_or_read_by_their_bytes(client, case):
    responses = case("W15")["input"]["responses"]
    with Website() as site:
        for response in responses:
            body = eval(response["body"].replace(" (docx)", ""), {"random": os.urandom(50_000)})
            site.paths[response["path"]] = Answer(body, content_type=response["content_type"])
        for path, kind in case("W15")["expected"]["skipped"].items():
            assert reason_of(client, site.url(path)) == f"not html: {kind}"
            assert client.fetch(site.url(path), follow, ANY_KIND).text == ""
        for path, text in {**case("W15")["expected"]["stored"], "/c": "Real page"}.items():
            assert text in client.fetch(site.url(path), follow).text


def test_charsets_of_the_case_reach_the_text(client, case):
    responses, texts = case("W14")["input"]["responses"], case("W14")["expected"]["texts"]
    with Website() as site:
        for number, (response, text) in enumerate(zip(responses, texts, strict=True)):
            site.paths[f"/{number}"] = Answer(eval(response["body"]), content_type=response["content_type"])
            fetched = client.fetch(site.url(f"/{number}"), follow)
            assert text in fetched.text
            assert "\ufffd" not in fetched.text


@pytest.mark.parametrize(
    ("answer", "reason", "is_retryable"),
    [
        (Answer("gone", status=404), "status 404", False),
        (Answer("gone", status=410), "status 410", False),
        (Answer("broken", status=500), "status 500", True),
        (Answer("busy", status=503), "status 503", True),
        (Answer("who?", status=401), "login required", False),
        (Answer("no", status=403), "login required", False),
        (Answer("", status=304), "status 304", False),
        (Answer(b""), "empty", False),
        (Answer(b"", status=204), "empty", False),
        (Answer(" \r\n "), "empty", False),
        (Answer(is_dropped=True), "connection lost", True),
        (Answer(raw=[b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"]), "connection lost", True),
        (Answer(raw=[b"nonsense\r\n\r\n"]), "connection lost", True),
        (Answer(b"no gzip", headers={"Content-Encoding": "gzip"}), "bad encoding", False),
        (redirect("/login?next=/"), "login required", False),
        (redirect("https://sso.corp.test/start"), "login required", False),
        (redirect("/users/sign_in"), "login required", False),
    ],
)
def test_a_page_that_cannot_be_had_says_why(client, answer, reason, is_retryable):
    with Website({"/": answer}) as site, pytest.raises(FetchError) as failure:
        client.fetch(site.url("/"), follow)
    assert (failure.value.reason, failure.value.is_retryable) == (reason, is_retryable)
    assert set(site.asked_paths) == {"/"}


def test_a_login_page_asked_for_by_itself_is_a_page(client):
    with Website({"/login": redirect("/login/"), "/login/": page("Log in here")}) as site:
        assert "Log in here" in client.fetch(site.url("/login"), follow).text


def test_unknown_hosts_and_closed_ports_are_told_apart(client):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert reason_of(client, f"http://ex.test:{unused.getsockname()[1]}/") == "connection"
    assert reason_of(client, "http://no-such-host.example/") == "dns"
    assert reason_of(client, "http://ex..test/") in ("bad address", "dns", "connection")


@pytest.mark.parametrize(
    "answer",
    [
        Answer(pieces=[b"<p>"] * 30, pause_seconds=0.1),
        Answer(raw=[b"HTTP/1.1 200 OK\r\n", *[b"X-Drip: 1\r\n"] * 30, b"\r\nlate"], pause_seconds=0.1),
        Answer(raw=[bytes([byte]) for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n.."], pause_seconds=0.1),
        Answer(pieces=[b"", b"late"], pause_seconds=3),
    ],
)
def test_a_slow_drip_ends_with_the_page_time_although_no_single_read_is_late(answer):
    with Website({"/": answer}) as site, WebClient(ON_LOOPBACK, timeout_seconds=0.5) as client:
        assert reason_of(client, site.url("/")) == "timeout"


def test_the_page_time_also_ends_a_chain_of_slow_hops():
    def hop(number: int) -> Answer:
        location = f"Location: /{number + 1}\r\n\r\n".encode()
        return Answer(raw=[b"HTTP/1.1 302 OK\r\n", location], pause_seconds=0.2)

    paths = {f"/{number}": hop(number) for number in range(10)}
    with Website(paths) as site, WebClient(ON_LOOPBACK, timeout_seconds=0.5) as client:
        assert reason_of(client, site.url("/0")) == "timeout"
    assert len(site.requests) < 10


def test_a_slow_drip_over_tls_ends_too(tmp_path):
    authority = Authority(tmp_path)
    drip = Answer(pieces=[b"<p>"] * 30, pause_seconds=0.1)
    with (
        Website({"/": drip}, tls=authority.server_context("ex.test")) as site,
        WebClient(ON_LOOPBACK, timeout_seconds=0.6, ca_file=authority.file) as client,
    ):
        assert reason_of(client, site.url("/", "ex.test")) == "timeout"


def flaky(*answers: Answer | str):
    """Return a script that gives the answers in turn, the last one for ever."""
    waiting = list(answers)
    return lambda request: waiting.pop(0) if len(waiting) > 1 else waiting[0]


def test_passing_failures_are_tried_again(client, naps):
    busy = Answer("busy", status=503, headers={"Retry-After": "3"})
    limited = Answer("slowly", status=429)
    cut = Answer(raw=[b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"])
    with Website(
        {"/busy": flaky(busy, page("a")), "/429": flaky(limited, limited, page("b")), "/cut": flaky(cut, page("c"))}
    ) as site:
        for path in ("/busy", "/429", "/cut"):
            assert client.fetch(site.url(path), follow).status == 200
    assert naps == [3.0, 0.5, 2.0, 0.5]


def test_tries_are_few_and_a_long_wait_is_left_to_the_caller(client, naps):
    with Website({"/down": Answer(status=503), "/later": Answer(status=429, headers={"Retry-After": "3600"})}) as site:
        assert reason_of(client, site.url("/down")) == "status 503"
        assert site.asked("/down") == 3
        with pytest.raises(FetchError) as failure:
            client.fetch(site.url("/later"), follow)
        assert site.asked("/later") == 1
    assert failure.value.retry_after_seconds == 3600
    assert naps == [0.5, 2.0]


@pytest.mark.parametrize(("value", "waits"), [("Wed, 21 Oct 2015 07:28:00 GMT", [0.0]), ("soon", [0.5]), ("-5", [0.5])])
def test_a_retry_after_may_be_a_date_and_nonsense_counts_as_none(client, naps, value, waits):
    busy = Answer(status=503, headers={"Retry-After": value})
    with Website({"/": flaky(busy, page("a"))}) as site:
        client.fetch(site.url("/"), follow)
    assert naps == waits


def test_a_missing_page_is_not_tried_again(client, naps):
    with Website() as site:
        assert reason_of(client, site.url("/missing")) == "status 404"
    assert len(site.requests) == 1
    assert naps == []


def test_a_kind_that_is_not_wanted_is_not_read_to_its_end(client):
    sent = []

    def endless():
        yield b"%PDF-1.7"
        while len(sent) < 10_000:
            sent.append(1)
            yield b"x" * 10_000

    with Website({"/": Answer(pieces=endless(), content_type="application/pdf")}) as site:
        assert reason_of(client, site.url("/")) == "not html: pdf"
    assert len(sent) < 10_000


def test_a_nested_fetch_leaves_the_outer_one_its_time(naps):
    with (
        Website({"/a": redirect("/b"), "/b": page("b"), "/robots": page("r")}) as site,
        WebClient(ON_LOOPBACK, sleep=naps) as client,
    ):
        fetched = client.fetch(site.url("/a"), lambda target: client.fetch(site.url("/robots"), follow) and None)
    assert "b" in fetched.text
    assert site.asked_paths == ["/a", "/robots", "/b"]


def versioned(request: Request) -> Answer:
    """Answer as a server that knows the version of its page by a tag and by a date."""
    headers = {"ETag": '"v1"', "Last-Modified": "Tue, 01 Dec 2026 10:00:00 GMT"}
    asked = request.headers.get("if-none-match"), request.headers.get("if-modified-since")
    if asked[0] == headers["ETag"] or asked == (None, headers["Last-Modified"]):
        return Answer(status=304, headers={"ETag": headers["ETag"]})
    return Answer(page("bikes"), headers=headers)


@pytest.mark.parametrize("parts", [("etag", "last_modified"), ("etag",), ("last_modified",)])
def test_a_page_of_a_known_version_is_not_sent_again(client, parts):
    with Website({"/": versioned}) as site:
        first = client.fetch(site.url(), follow)
        known = Known(**{part: getattr(first, part) for part in parts})
        again = client.fetch(site.url(), follow, known=known)
    assert (first.etag, first.last_modified) == ('"v1"', "Tue, 01 Dec 2026 10:00:00 GMT")
    assert not first.is_unchanged
    assert again.is_unchanged
    assert (again.kind, again.text, again.body, again.status) == ("html", "", b"", 304)
    assert again.etag == '"v1"'
    assert again.last_modified == known.last_modified


def test_another_version_of_a_known_page_is_read(client):
    with Website({"/": versioned}) as site:
        fetched = client.fetch(site.url(), follow, known=Known(etag='"v0"', last_modified="x"))
    assert not fetched.is_unchanged
    assert "bikes" in fetched.text


def test_what_is_known_of_an_address_is_not_asked_where_it_redirects_to(client):
    with Website({"/old": redirect("/new"), "/new": versioned}) as site:
        fetched = client.fetch(site.url("/old"), follow, known=Known(etag='"v1"'))
        assert site.requests[0].headers["if-none-match"] == '"v1"'
        assert "if-none-match" not in site.requests[1].headers
    assert "bikes" in fetched.text


def test_not_modified_is_no_answer_to_a_request_that_named_no_version(client):
    with Website({"/": Answer(status=304)}) as site:
        assert reason_of(client, site.url()) == "status 304"


def test_a_version_too_long_or_broken_to_be_kept_is_none(client):
    tags = {"/long": '"' + "v" * 300 + '"', "/odd": '"a\tb"', "/weak": 'W/"v2"'}
    with Website({path: Answer("<p>x", headers={"ETag": tag}) for path, tag in tags.items()}) as site:
        kept = {path: client.fetch(site.url(path), follow).etag for path in tags}
    assert kept == {"/long": "", "/odd": "", "/weak": 'W/"v2"'}


def zip_of(*names: str, size: int = 10) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as package:
        for name in names:
            package.writestr(name, os.urandom(size))
    return buffer.getvalue()


DOCX = zip_of("docProps/app.xml", "word/document.xml", "[Content_Types].xml", size=20_000)


def test_documents_are_had_when_they_are_wanted_and_only_then(client):
    bodies = {
        "/a": Answer(DOCX, content_type="text/html"),
        "/b": Answer(b"%PDF-1.7\n" + os.urandom(9_000), content_type=None),
        "/c.md": Answer("# Title\n\nText", content_type="text/plain"),
        "/d": Answer("plain words", content_type="text/plain"),
        "/e": page("a page"),
    }
    refused = {
        "/f": (zip_of("a.txt", size=9_000), "not html: zip"),
        "/g": (zip_of("mimetype", "content.xml"), "not html: zip"),
        "/h": (b"\x89PNG\r\n\x1a\n" + os.urandom(9_000), "not html: image"),
    }
    with Website(bodies | {path: Answer(body) for path, (body, _) in refused.items()}) as site:
        kinds = {path: client.fetch(site.url(path), follow, PAGE_OR_DOCUMENT).kind for path in bodies}
        assert client.fetch(site.url("/a"), follow, PAGE_OR_DOCUMENT).body == DOCX
        assert client.fetch(site.url("/c.md"), follow, PAGE_OR_DOCUMENT).text == "# Title\n\nText"
        for path, (_, reason) in refused.items():
            assert reason_of(client, site.url(path), wanted=PAGE_OR_DOCUMENT) == reason
        assert [reason_of(client, site.url(path)) for path in ("/a", "/b", "/c.md", "/d")] == [
            "not html: zip",
            "not html: pdf",
            "not html: markdown",
            "not html: text",
        ]
    assert kinds == {"/a": "docx", "/b": "pdf", "/c.md": "markdown", "/d": "text", "/e": "html"}


def test_a_document_may_be_larger_than_a_page(naps, settings):
    settings.SITEWISE_MAX_DOCUMENT_BYTES = 100_000
    with (
        WebClient(ON_LOOPBACK, max_body_bytes=10_000, sleep=naps) as client,
        Website({"/page": "<p>" + "a" * 20_000, "/docx": DOCX, "/pdf": b"%PDF-1.7\n" + os.urandom(110_000)}) as site,
    ):
        assert client.fetch(site.url("/docx"), follow, PAGE_OR_DOCUMENT).kind == "docx"
        assert reason_of(client, site.url("/page"), wanted=PAGE_OR_DOCUMENT) == "too large"
        assert reason_of(client, site.url("/pdf"), wanted=PAGE_OR_DOCUMENT) == "too large"


def test_who_to_turn_to_is_said_in_each_request(naps):
    with (
        Website({"/": page("home")}) as site,
        WebClient(ON_LOOPBACK, user_agent="Sitewise/1", contact_email="ann@acme.test", sleep=naps) as client,
    ):
        client.fetch(site.url(), follow)
    assert site.requests[0].headers["from"] == "ann@acme.test"
    assert site.requests[0].headers["user-agent"] == "Sitewise/1"


@pytest.mark.parametrize(
    ("cookie", "goes_to"),
    [
        ("a=1", ["shop.test /", "shop.test /cart"]),
        ("a=1; Path=/cart", ["shop.test /cart"]),
        ("a=1; Domain=shop.test; Path=/", ["shop.test /", "shop.test /cart", "www.shop.test /"]),
        ("a=1; Domain=other.test", []),
        ("a=1; Domain=test", []),
        ("a=1; Secure", []),
        ("a=1; Max-Age=0", []),
    ],
)
def test_a_cookie_goes_back_only_where_a_browser_would_send_it(client, cookie, goes_to):
    places = [("shop.test", "/"), ("shop.test", "/cart"), ("www.shop.test", "/"), ("other.test", "/")]
    with Website({"/set": Answer("<p>set", headers={"Set-Cookie": cookie}), "/": "<p>a", "/cart": "<p>b"}) as site:
        client.fetch(site.url("/set", "shop.test"), follow)
        for host, path in places:
            client.fetch(site.url(path, host), follow)
    received = [f"{asked.host.split(':')[0]} {asked.path}" for asked in site.requests if "cookie" in asked.headers]
    assert received == goes_to


def test_cookies_of_one_crawl_are_unknown_to_another(naps):
    with Website({"/": Answer("<p>set", headers={"Set-Cookie": "a=1"})}) as site:
        for _ in range(2):
            with WebClient(ON_LOOPBACK, sleep=naps) as client:
                client.fetch(site.url(), follow)
    assert all("cookie" not in asked.headers for asked in site.requests)


def refreshing(target: str) -> str:
    return f'<!doctype html><title>Moved</title><meta http-equiv="refresh" content="0; url={target}"><p>Moved'


def test_a_page_that_sends_on_at_once_is_a_redirect(client):
    paths = {
        "/": refreshing("/en/"),
        "/en/": page("home"),
        "/out": refreshing("https://elsewhere.test/"),
        "/round": refreshing("/again"),
        "/again": Answer("<p>again", headers={"Refresh": "0; url=/round"}),
    }
    with Website(paths) as site:
        fetched = client.fetch(site.url(), follow)
        assert (fetched.final_url, fetched.redirects) == (site.url("/en/"), (site.url("/en/"),))
        assert reason_of(client, site.url("/out"), lambda target: "out of scope") == "out of scope"
        assert reason_of(client, site.url("/round")) == "too many redirects"


@pytest.mark.parametrize(
    ("encoding", "reason"), [("br", "bad encoding"), ("gzip, zstd", "bad encoding"), ("UTF-8", "")]
)
def test_a_body_compressed_in_a_way_nobody_asked_for_is_named(client, encoding, reason):
    with Website({"/": Answer(page("home"), headers={"Content-Encoding": encoding})}) as site:
        if reason:
            assert reason_of(client, site.url()) == reason
        else:
            assert "home" in client.fetch(site.url(), follow).text
