"""Drawing pages in a real Chromium, whose only way to the world is the crawl's own client."""

import socket
import threading
from collections.abc import Iterator

import pytest

from crawler.crawl import import_site, new_import
from crawler.models import Import
from crawler.web.fetch import WebClient
from crawler.web.render import Renderer, RenderError, find_chromium, is_available
from models_app.jobs import perform_taken
from models_app.models import Retrieval
from tenants.addresses import AddressPolicy
from tests.conftest import needs
from tests.fakes.website import Answer, Website, page, redirect

JSON = "application/json"
SCRIPT = "text/javascript"


def names_on_loopback(host: str, port: int) -> list[str]:
    """Resolve every .test name to this machine, inside.test to another one within."""
    if host == "inside.test":
        return ["10.0.0.1"]
    if not host.endswith(".test"):
        raise socket.gaierror(socket.EAI_NONAME, f"{host} is unknown")
    return ["127.0.0.1"]


def follow(_target: str) -> None:
    return None


@pytest.fixture(scope="module")
def client() -> Iterator[WebClient]:
    policy = AddressPolicy(allow_loopback=True, resolver=names_on_loopback)
    with WebClient(policy, user_agent="Sitewise/1", sleep=lambda seconds: None) as client:
        yield client


@pytest.fixture(scope="module")
def renderer(client) -> Iterator[Renderer]:
    needs(is_available(), "a browser (Debian's package chromium)")
    with Renderer(client, is_allowed=lambda url: "/closed/" not in url, timeout_seconds=5) as renderer:
        yield renderer


def shell(*scripts: str) -> str:
    """Return a page without any text, whose scripts are to bring it."""
    return (
        f"<!doctype html><title>App</title><div id=app></div>{''.join(f'<script>{each}</script>' for each in scripts)}"
    )


def drawn(renderer: Renderer, paths: dict, path: str = "/") -> tuple[str, Website]:
    with Website(paths) as site:
        return renderer.render(site.url(path, "ex.test"), follow), site


SHOW = "const show = text => document.getElementById('app').append(text + ' ');"


def test_text_that_scripts_bring_is_there(renderer):
    html, site = drawn(
        renderer,
        {
            "/": '<!doctype html><div id=app></div><script type=module src="/app.js"></script>',
            "/app.js": Answer("import {texts} from './texts.js'; texts();", content_type=SCRIPT),
            "/texts.js": Answer(
                "export async function texts() {"
                " const texts = await (await fetch('/texts.json')).json();"
                " document.getElementById('app').innerHTML = `<h1>${texts.title}</h1>`; }",
                content_type=SCRIPT,
            ),
            "/texts.json": Answer('{"title": "Wir öffnen um 9"}', content_type=JSON),
        },
    )
    assert "<h1>Wir öffnen um 9</h1>" in html
    assert site.asked_paths == ["/", "/app.js", "/texts.js", "/texts.json"]
    assert {request.headers["user-agent"] for request in site.requests} == {"Sitewise/1"}


def test_the_page_comes_in_the_charset_that_the_crawler_reads(renderer):
    html, _ = drawn(renderer, {"/": Answer("<p>Öl 5 €".encode("cp1252"), content_type="text/html; charset=latin1")})
    assert "Öl 5 €" in html


def test_scripts_and_texts_of_other_sites_are_had_too(renderer):
    with Website(
        {
            "//cdn.test/app.js": Answer("export const text = 'from elsewhere';", content_type=SCRIPT),
            "//api.test/texts": Answer('"and answered"', content_type=JSON),
        }
    ) as other:
        script = (
            f"import {{text}} from '{other.url('/app.js', 'cdn.test')}';"
            f"const said = await (await fetch('{other.url('/texts', 'api.test')}', {{credentials: 'include'}})).json();"
            "document.body.append(`${text} ${said}`);"
        )
        html, _ = drawn(renderer, {"/": f"<!doctype html><body><script type=module>{script}</script>"})
    assert "from elsewhere and answered" in html


def test_a_private_address_is_never_asked(renderer):
    """Neither by name nor by number, and not by a redirect."""
    asked = "fetch('{url}').then(() => show('reached'), () => show('refused'));"
    with Website({"/": "secret"}) as inside:
        addresses = [
            inside.url("/", "inside.test"),
            "http://10.0.0.1/",
            "http://169.254.169.254/latest/meta-data/",
            "/moved",
        ]
        scripts = [asked.format(url=url) for url in addresses]
        html, _ = drawn(renderer, {"/": shell(SHOW, *scripts), "/moved": redirect(inside.url("/", "inside.test"))})
        assert inside.requests == []
    assert html.count("refused ") == 4
    assert "reached " not in html.replace("show('reached')", "")


@pytest.fixture
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """A port of this machine where no request of the client arrives: TCP and UDP, with what came in."""
    received: list[bytes] = []
    tcp, udp = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    tcp.bind(("127.0.0.1", 0))
    tcp.listen()
    udp.bind(tcp.getsockname())

    def accept() -> None:
        while True:
            try:
                connection, _ = tcp.accept()
            except OSError:
                return
            received.append(b"tcp")
            connection.close()

    def read() -> None:
        while packet := udp.recv(2048):
            received.append(packet)

    threads = [threading.Thread(target=accept, daemon=True), threading.Thread(target=read, daemon=True)]
    for thread in threads:
        thread.start()
    port = tcp.getsockname()[1]
    yield port, received
    udp.sendto(b"", ("127.0.0.1", port))
    threads[1].join(5)
    tcp.close()
    udp.close()


def test_the_browser_itself_has_no_network(renderer, listener):
    """No sockets, no calls, no prefetching, no workers, no frames, no images: not even to loopback."""
    port, received = listener
    at = f"127.0.0.1:{port}"
    markup = f"""<!doctype html><link rel=dns-prefetch href="//{at}"><link rel=preconnect href="http://{at}">
    <link rel=prefetch href="http://{at}/a"><link rel=prerender href="http://{at}/b">
    <link rel=icon href="http://{at}/i"><link rel=manifest href="http://{at}/m"><img src="http://{at}/c">
    <iframe src="http://{at}/d"></iframe><video src="http://{at}/v"></video><object data="http://{at}/o"></object>
    <style>@font-face {{ font-family: f; src: url(http://{at}/f) }}
    body {{ font-family: f; background: url(http://{at}/g) }}</style>
    <div id=app></div><a ping="http://{at}/p" href="#x" id=a>a</a><script>{SHOW}
    const trying = [
      () => new WebSocket('ws://{at}/'), () => new EventSource('http://{at}/'),
      () => navigator.sendBeacon('http://{at}/', 'x'), () => fetch('http://{at}/', {{method: 'POST', body: 'x'}}),
      () => document.getElementById('a').click(), () => window.open('http://{at}/'),
      () => navigator.serviceWorker.register('/worker.js'), () => new Worker('http://{at}/w.js'),
      () => {{ const call = new RTCPeerConnection({{iceServers: [{{urls: 'stun:{at}'}}]}});
        call.createDataChannel('x'); call.createOffer().then(offer => call.setLocalDescription(offer)); }},
      () => new WebTransport('https://{at}/'),
    ];
    for (const each of trying) {{ try {{ each() }} catch (error) {{ }} }}
    setTimeout(() => show('tried all'), 300);
    </script>"""
    html, site = drawn(renderer, {"/": markup, "/worker.js": Answer("fetch('/x')", content_type=SCRIPT)})
    assert "tried all " in html
    assert received == []
    assert site.asked_paths == ["/"]


@pytest.mark.parametrize(
    "script",
    [
        "show('first words'); setTimeout(() => { while (true) {} }, 50);",
        "show('first words'); while (true) {}",
        "show('first words'); setInterval(() => fetch('/more?' + Math.random()), 50);",
        "show('first words'); (function again() { Promise.resolve().then(again) })();",
        "show('first words'); alert('wait'); confirm('sure?'); setInterval(() => fetch('/more'), 9);",
    ],
    ids=["busy", "busy at once", "polling", "promises", "dialogs"],
)
def test_an_endless_page_ends_in_time_with_what_it_shows(client, renderer, script):
    with Renderer(client, timeout_seconds=3) as hasty:
        html, site = drawn(hasty, {"/": shell(SHOW, script), "/more": Answer("{}", content_type=JSON)})
    assert "first words" in html.split("<script")[0]
    assert len(site.requests) < 200


def test_a_server_that_drips_does_not_hold_a_page(client, renderer):
    def dripping(_request) -> Answer:
        return Answer(pieces=(b"x" for _ in range(10_000)), pause_seconds=0.05, content_type=JSON)

    with Renderer(client, timeout_seconds=3) as hasty:
        html, _ = drawn(hasty, {"/": shell(SHOW, "fetch('/slow'); show('words')"), "/slow": dripping})
    assert "words " in html


def test_a_page_that_does_not_come_in_time_is_not_taken_for_what_the_browser_shows_instead(client):
    late = Answer(pieces=(b"<p>late" for _ in range(10_000)), pause_seconds=0.05)
    with Renderer(client, timeout_seconds=1) as hasty, pytest.raises(RenderError) as failure:
        drawn(hasty, {"/": late})
    assert failure.value.message


def test_a_page_that_grows_without_end_is_refused(renderer):
    # Too large from the start: how far it gets until it is read is a matter of how fast the machine is.
    grow = "const grow = () => show('x'.repeat(3_000_000)); grow(); grow(); setInterval(grow, 1);"
    with pytest.raises(RenderError) as failure:
        drawn(renderer, {"/": shell(SHOW, grow, "setInterval(() => fetch('/more'), 100)")})
    assert failure.value.message


@pytest.mark.parametrize(
    "away",
    [
        "location.href = '/elsewhere'",
        "location.reload()",
        "setTimeout(() => location.replace('/elsewhere'), 100)",
        "document.head.innerHTML = '<meta http-equiv=refresh content=\"0;url=/elsewhere\">'",
    ],
)
def test_scripts_do_not_lead_the_page_elsewhere(renderer, away):
    html, site = drawn(renderer, {"/": shell(SHOW, f"show('still here'); {away}"), "/elsewhere": "<p>else"})
    assert '<div id="app">still here </div>' in html
    assert site.asked_paths == ["/"]


def test_robots_rule_what_a_page_loads(renderer):
    html, site = drawn(
        renderer,
        {
            "/": shell(SHOW, "for (const at of ['/closed/a', '/moved']) fetch(at).catch(() => show('refused'))"),
            "/closed/a": "{}",
            "/moved": redirect("/closed/b"),
            "/closed/b": "{}",
        },
    )
    assert html.count("refused ") == 2
    assert site.asked_paths == ["/", "/moved"]


def test_a_page_that_cannot_be_had_says_why_and_the_next_is_drawn(renderer):
    with Website(
        {"/gone": Answer(status=410), "/file": b"%PDF-1.7 x", "/moved": redirect("/else"), "/": "<p>fine"}
    ) as site:
        refusals = {}
        for path in ("/gone", "/file", "/moved"):
            with pytest.raises(RenderError) as failure:
                renderer.render(site.url(path, "ex.test"), lambda target: "out of scope")
            refusals[path] = failure.value.message
        assert "fine" in renderer.render(site.url("/", "ex.test"), follow)
    assert "410" in refusals["/gone"]
    assert "pdf" in refusals["/file"]
    assert "out of scope" in refusals["/moved"]


def test_cookies_of_one_page_are_no_cookies_of_the_next(renderer):
    paths = {"/": shell(SHOW, "show(document.cookie || 'none'); document.cookie = 'seen=1'; localStorage.seen = 1")}
    with Website(paths) as site:
        for _ in range(2):
            assert "none " in renderer.render(site.url("/", "ex.test"), follow)


def test_without_a_browser_the_way_to_one_is_said(client, settings, monkeypatch):
    settings.SITEWISE_CHROMIUM = ""
    monkeypatch.setenv("PATH", "")
    assert not find_chromium()
    assert not is_available()
    with Renderer(client) as renderer, pytest.raises(RenderError) as failure:
        renderer.render("http://ex.test/", follow)
    assert ".[render]" in failure.value.message


APP = {
    "/": '<!doctype html><title>App</title><div id="root"></div><script src="/app.js"></script>',
    "/app.js": Answer(
        "fetch('/texts').then(said => said.text()).then(text => {"
        " document.getElementById('root').innerHTML = `<main><h1>Hours</h1><p>${text}</p><a href='/two'>two</a></main>`"
        "});",
        content_type=SCRIPT,
    ),
    "/texts": Answer("We open at nine and close at five on every day of the week.", content_type="text/plain"),
    "/two": page("A page that needs no scripts at all, and is not drawn."),
}


@pytest.mark.django_db
def test_an_import_draws_the_pages_that_are_empty_without_scripts(support):
    needs(is_available(), "a browser (Debian's package chromium)")
    support.retrieval = Retrieval.KEYWORD
    support.save()
    with Website(APP) as site:
        job = Import.take(new_import(support, site.url("/"), renders_scripts=True).pk)
        perform_taken(job, import_site)
        assert site.asked("/app.js") == 1
    texts = list(support.snippets.values_list("completion", flat=True))
    assert any("open at nine and close at five" in text for text in texts)
    assert any("needs no scripts at all" in text for text in texts)
    assert {page.report.get("rendered", False) for page in job.pages.all()} == {True, False}
