import gzip
import socket
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.web.fetch import WebClient
from crawler.web.site import read_site_rules
from crawler.web.sitemap import MAX_SITEMAP_URLS, MAX_SITEMAPS, SitemapUnreadable, parse_sitemap, read_sitemaps
from tenants.addresses import AddressPolicy
from tests.fakes.website import Answer, Website, page, redirect

SITEMAP_URL = "https://ex.test/s.xml"


def names_on_loopback(host: str, port: int) -> list[str]:
    if not host.endswith(".test"):
        raise socket.gaierror(socket.EAI_NONAME, f"{host} is unknown")
    return ["127.0.0.1"]


@pytest.fixture
def client():
    policy = AddressPolicy(allow_loopback=True, resolver=names_on_loopback)
    with WebClient(policy, user_agent="OurBot/1", sleep=lambda seconds: None) as client:
        yield client


def xml(text: str | bytes, content_type: str | None = "application/xml", **headers: str) -> Answer:
    return Answer(text, content_type=content_type, headers={k.replace("_", "-"): v for k, v in headers.items()})


def urlset(*locations: str) -> str:
    entries = "".join(f"<url><loc>{location}</loc></url>" for location in locations)
    return f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'


def read(client: WebClient, paths: dict, robots_txt: str = "", typed_path: str = "/") -> tuple[list, tuple, Website]:
    """Return (page paths found, problems, the website) for a site at ex.test; "{home}" in texts is its address."""
    with Website({"/": page("home"), "/docs/": page("docs")}) as site:
        home = site.url("", "ex.test")
        site.paths["/robots.txt"] = Answer(robots_txt.replace("{home}", home), content_type="text/plain")
        for path, answer in paths.items():
            is_text = isinstance(answer, Answer) and isinstance(answer.body, str)
            site.paths[path] = replace(answer, body=answer.body.replace("{home}", home)) if is_text else answer
        urls, problems = read_sitemaps(client, read_site_rules(client, home + typed_path))
    return [url.removeprefix(home) for url in urls], problems, site


@pytest.mark.parametrize("number", range(5))
def test_gzip_is_told_by_its_first_two_bytes_in_every_variant_of_the_case(client, case, number):
    text = case("W11")["input"]["xml"].replace("https://ex.test", "{home}")
    assert len(case("W11")["input"]["variants"]) == 5
    with Website({"/": page("home")}) as site:
        body = text.replace("{home}", site.url("", "ex.test")).encode()
        packed = gzip.compress(body)
        path, answer = (
            ("/s.xml.gz", xml(packed, "application/x-gzip")),
            ("/s.xml.gz", xml(packed, "application/octet-stream")),
            ("/s.xml.gz", xml(packed, "application/x-gzip", Content_Encoding="gzip")),
            ("/s.xml", xml(packed, "text/xml")),
            ("/s.xml.gz", xml(body, "application/x-gzip")),
        )[number]
        site.paths |= {"/robots.txt": f"Sitemap: {site.url(path, 'ex.test')}", path: answer}
        urls, problems = read_sitemaps(client, read_site_rules(client, site.url("/", "ex.test")))
    assert [url.replace(site.url("", "ex.test"), "https://ex.test") for url in urls] == case("W11")["expected"]["urls"]
    assert problems == ()


def test_an_index_that_leads_back_to_itself_ends_with_the_pages_of_the_case(client, case):
    texts = {name: text.replace("https://ex.test", "{home}") for name, text in case("W12")["input"].items()}
    paths = {
        "/index.xml": xml(texts["index.xml"]),
        "/child.xml": redirect("/index.xml", 301),
        "/pages.xml": xml(texts["pages.xml"]),
    }
    found, problems, site = read(client, paths, texts["robots"])
    assert [f"https://ex.test{path}" for path in found] == case("W12")["expected"]["urls"]
    assert problems == ()
    assert site.asked("/index.xml") <= 2
    assert all(site.asked(path) == 1 for path in {*site.asked_paths} - {"/index.xml"})


def test_a_sitemap_of_real_life_gives_exactly_the_pages_of_the_case(case):
    sitemap = parse_sitemap(eval(case("W13")["input"]["xml_bytes"]), case("W13")["input"]["sitemap_url"])
    assert list(sitemap.page_urls) == case("W13")["expected"]["urls"]


def test_a_document_type_voids_the_file_with_a_reason_and_the_rest_goes_on(client, case):
    first, second, _ = case("X06")["input"]["xml"]
    entities = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    billion = (
        second.partition("<!ENTITY b")[0] + entities + "]><urlset><url><loc>https://ex.test/&i;</loc></url></urlset>"
    )
    padded = "<!--" + "x" * 10_000 + "-->" + first
    tracemalloc.start()
    for text in (first, billion, padded):
        for body in (text.encode(), gzip.compress(text.encode()), text.encode("utf-16"), text.lower().encode()):
            with pytest.raises(SitemapUnreadable, match="DOCTYPE"):
                parse_sitemap(body, SITEMAP_URL)
    assert tracemalloc.get_traced_memory()[1] < case("X06")["expected"]["memory_growth_max_mb"] * 1_000_000
    tracemalloc.stop()
    paths = {"/bad.xml": xml(first), "/good.xml": xml(urlset("{home}/a"))}
    found, problems, _ = read(client, paths, "Sitemap: {home}/bad.xml\nSitemap: {home}/good.xml")
    assert found == ["/a"]
    assert len(problems) == 1
    assert "bad.xml" in problems[0]
    assert "DOCTYPE" in problems[0]


def test_an_entity_without_a_document_type_stays_text():
    body = b"<urlset><url><loc>https://ex.test/&f;x&#47;y</loc></url><url><loc>https://ex.test/?a=1&b=2</loc></url></urlset>"
    assert parse_sitemap(body, SITEMAP_URL).page_urls == ("https://ex.test/&f;x/y", "https://ex.test/?a=1&b=2")


@pytest.mark.parametrize(
    ("body", "pages"),
    [
        (b"https://ex.test/a\r\n\n  https://ex.test/b  \nnot an address\n", ["a", "b"]),
        (b"\xef\xbb\xbfhttps://ex.test/a", ["a"]),
        (b"<urlset><url><loc><![CDATA[https://ex.test/a?x=1&y=2]]></loc></url></urlset>", ["a?x=1&y=2"]),
        (b"<urlset><url><loc>https://ex.test/a</loc></url><url><loc>https://ex.test/b</lo", ["a", "b"]),
        (
            b"<urlset><url><loc>https://ex.test/a</loc><x></url><url><loc>https://ex.test/b</loc></url></urlset>",
            ["a", "b"],
        ),
        (b"Warning: y<br />\n<?xml version='1.0'?><urlset><url><loc>/a</loc></url></urlset>", ["a"]),
        (b"<s:urlset xmlns:s='x'><s:url><s:loc>/a</s:loc></s:url></s:urlset>", ["a"]),
        (b"<s:urlset><s:url><s:loc>/a</s:loc></s:url></s:urlset>", ["a"]),
        (b"<URLSET><URL><LOC>/a</LOC></URL></URLSET>", ["a"]),
        (b"<urlset><url><loc>mailto:a@b</loc></url><url><loc></loc></url><url><loc>/a#b</loc></url></urlset>", ["a"]),
        (
            '<?xml version="1.0" encoding="iso-8859-1"?><urlset><url><loc>/é</loc></url></urlset>'.encode("latin-1"),
            ["%C3%A9"],
        ),
        (
            '<?xml version="1.0" encoding="utf-16"?><urlset><url><loc>/é</loc></url></urlset>'.encode("utf-16"),
            ["%C3%A9"],
        ),
        (b"<rss><channel><link>/no</link><item><link>https://ex.test/a</link></item></channel></rss>", ["a"]),
        (b'<feed><link href="/no"/><entry><link href="/a"/><link rel="edit" href="/x"/></entry></feed>', ["a"]),
        (b"<sitemapindex><sitemap><loc>/child.xml</loc></sitemap></sitemapindex>", []),
        (b"<urlset/>", []),
        (b"", []),
        (b"\x1f\x8b broken", []),
        (gzip.compress(urlset("/a", *["/b"] * 1000).encode())[:-20], ["a", "b"]),
        (gzip.compress(b"<urlset><url>") + gzip.compress(b"<loc>/a</loc></url></urlset>"), ["a"]),
    ],
)
def test_sitemaps_of_every_make_are_read(body, pages):
    assert list(parse_sitemap(body, SITEMAP_URL).page_urls) == [f"https://ex.test/{path}" for path in pages]


@given(st.binary(max_size=200) | st.text("<>/urlsetoc&;a![]CDT-?xm \n", max_size=200).map(str.encode))
def test_no_bytes_break_the_reader(body):
    try:
        sitemap = parse_sitemap(body, SITEMAP_URL)
    except SitemapUnreadable:
        return
    assert all(url.startswith("http") for url in sitemap.page_urls)


def test_a_gzip_bomb_is_refused_before_it_is_unpacked():
    tracemalloc.start()
    bomb = gzip.compress(b"<urlset>" + b" " * 60_000_000)
    tracemalloc.reset_peak()
    with pytest.raises(SitemapUnreadable, match="larger"):
        parse_sitemap(bomb, SITEMAP_URL)
    assert tracemalloc.get_traced_memory()[1] < 130_000_000
    tracemalloc.stop()


def test_pages_outside_the_crawl_are_left_out_and_counted(client):
    robots_txt = "User-agent: *\nDisallow: /docs/private"
    text = urlset("{home}/docs/a", "{home}/blog", "https://other.test/x", "{home}/docs/private/x", "{home}/docs/b.jpg")
    found, problems, _ = read(client, {"/sitemap.xml": xml(text)}, robots_txt, "/docs/")
    assert found == ["/docs/a"]
    assert [problem.partition(" ")[0] for problem in problems] == ["2", "1", "1"]


def test_the_usual_places_are_tried_in_silence_but_a_named_sitemap_that_fails_is_told(client):
    found, problems, site = read(client, {"/docs/sitemap.xml": xml(urlset("/docs/a"))}, typed_path="/docs/")
    assert (found, problems) == (["/docs/a"], ())
    assert site.asked("/sitemap.xml") == 1
    soft = "<!doctype html><title>Not found</title>"
    found, problems, _ = read(
        client, {"/sitemap.xml": soft, "/named.xml": soft}, "Sitemap: {home}/named.xml\nSitemap: /gone"
    )
    assert found == []
    assert len(problems) == 2
    assert "web page" in problems[0]
    assert "404" in problems[1]


def test_a_named_sitemap_may_lie_on_another_host_and_only_its_own_children_with_it(client):
    with Website({"//ex.test/": page("home")}) as site:
        home, cdn = site.url("", "ex.test"), site.url("", "cdn.test")
        index = f"<sitemapindex><sitemap><loc>{cdn}/1.xml</loc></sitemap><sitemap><loc>http://evil.test/2.xml</loc></sitemap>"
        site.paths |= {
            "//ex.test/robots.txt": f"Sitemap: {cdn}/index.xml",
            "//cdn.test/index.xml": xml(index + "</sitemapindex>"),
            "//cdn.test/1.xml": xml(urlset(f"{home}/a")),
        }
        urls, problems = read_sitemaps(client, read_site_rules(client, home))
    assert urls == (f"{home}/a",)
    assert problems == ()
    assert {request.host.partition(":")[0] for request in site.requests} == {"ex.test", "cdn.test"}


def test_addresses_beyond_the_limit_are_counted_and_left_out(client):
    text = urlset(*(f"/{number}" for number in range(MAX_SITEMAP_URLS + 5)))
    found, problems, _ = read(client, {"/sitemap.xml": xml(text)})
    assert len(found) == MAX_SITEMAP_URLS
    assert problems == (f"5 addresses of the sitemaps were left out: over the limit of {MAX_SITEMAP_URLS:,}.",)


def test_an_index_without_end_is_left_at_the_limit_of_files(client):
    def another(request) -> Answer:
        number = int(request.path.removeprefix("/s").removesuffix(".xml"))
        return xml(f"<sitemapindex><sitemap><loc>/s{number + 1}.xml</loc></sitemap></sitemapindex>")

    numbered = {f"/s{number}.xml": another for number in range(MAX_SITEMAPS + 5)}
    found, problems, site = read(client, numbered, "Sitemap: /s0.xml")
    assert found == []
    assert "More than 500 sitemaps" in problems[0]
    assert sum(path.startswith("/s") for path in site.asked_paths) == MAX_SITEMAPS


def test_the_caller_sets_the_pace_and_can_stop_before_each_request(client):
    class Stopped(Exception):
        pass

    def stop() -> None:
        raise Stopped

    with Website({"/": page("home"), "/sitemap.xml": xml(urlset("/a"))}) as site:
        rules = read_site_rules(client, site.url("/", "ex.test"))
        calls = []
        read_sitemaps(client, rules, lambda: calls.append(len(site.requests)))
        assert calls == [2]
        with pytest.raises(Stopped):
            read_sitemaps(client, rules, stop)
    assert site.asked("/sitemap.xml") == 1
