"""Whole real sites, served on loopback: every page one can reach is imported, none twice, and answers are found."""

import json
import threading
from collections import deque
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from chat.context import get_context
from crawler.crawl import import_site, new_import
from crawler.markup.markdown import plain_words
from crawler.models import Import
from models_app import index
from models_app.jobs import perform_taken
from models_app.models import MLModel, Retrieval
from models_app.retrieval import retrieve
from tests.conftest import needs_local_embedder

pytestmark = pytest.mark.django_db(transaction=True)


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""


@contextmanager
def served(folder: Path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SilentHandler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


class Links(HTMLParser):
    def __init__(self, html: str):
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        if tag == "a":
            self.found += [value for name, value in attributes if name == "href" and value]


def reachable_paths(folder: Path) -> set[str]:
    """Return the paths of all pages that links lead to from the front page, found without any code of ours."""
    reached, waiting = set(), deque(["/"])
    while waiting:
        path = waiting.popleft()
        file = folder / path.lstrip("/")
        if file.is_dir():
            path, file = f"{path.rstrip('/')}/", file / "index.html"
        if path in reached or file.suffix != ".html" or not file.is_file():
            continue
        reached.add(path)
        for link in Links(file.read_text(errors="replace")).found:
            target = urlsplit(urljoin(f"http://site.test{path}", link))
            if target.netloc == "site.test":
                waiting.append(unquote(target.path))
    return reached


class Surroundings(HTMLParser):
    """What a page says in its menus, headers and footers, and what it says itself; found without any code of ours."""

    VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"))
    UNSEEN = frozenset(("head", "script", "style", "select", "template", "noscript", "svg"))

    def __init__(self, html: str):
        super().__init__()
        self.around: set[str] = set()
        self.own: list[str] = []
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]

    def handle_data(self, text):
        words = " ".join(text.split())
        if not words or self.UNSEEN & set(self._open):
            return
        is_in_main = {"main", "article"} & set(self._open)
        if "nav" in self._open or ({"header", "footer"} & set(self._open) and not is_in_main):
            self.around.add(words)
        else:
            self.own.append(words)


def texts_of_surroundings_alone(folder: Path) -> set[str]:
    """Return what the menus, headers and footers of a site say and no page says itself."""
    pages = [Surroundings(file.read_text(errors="replace")) for file in folder.rglob("*.html")]
    own = "\n".join(" ".join(page.own) for page in pages).casefold()
    return {text for page in pages for text in page.around if len(text) > 3 and text.casefold() not in own}


def crawl(model: MLModel, address: str) -> Import:
    job = Import.take(new_import(model, address).pk)
    perform_taken(job, import_site)
    return job


@pytest.mark.parametrize("site", ["cirrus-ci-docs", "hmrc-engineering"])
def test_every_reachable_page_is_imported_once(support, shared, site):
    support.retrieval = Retrieval.KEYWORD
    support.save()
    folder = shared / "data" / "sites" / site
    with served(folder) as address:
        job = crawl(support, address)
    assert job.state == Import.State.DONE
    done = [f"/{url.removeprefix(address)}" for url in job.pages.filter(state="done").values_list("url", flat=True)]
    assert len(done) > 30
    assert sorted(done) == sorted(reachable_paths(folder))
    assert not job.pages.filter(state__in=("failed", "found", "read")).exists()
    crawled = support.snippets.filter(source="crawl")
    assert {f"/{uri.removeprefix(address)}" for uri in crawled.values_list("uri", flat=True)} == set(done)
    rows = list(crawled.values_list("uri", "prompt", "completion"))
    assert len(rows) == len(set(rows))
    around = texts_of_surroundings_alone(folder)
    assert len(around) >= 5
    assert {text for text in around for _, _, completion in rows if text in plain_words(completion)} == set()
    of_site = plain_words(" ".join(support.snippets.filter(source="site").values_list("completion", flat=True)))
    assert any(text in of_site for text in around)
    assert index.check_model(support.pk) == []


def test_narrow_questions_find_their_snippet_under_hybrid(support, shared):
    needs_local_embedder()
    support.retrieval = Retrieval.HYBRID
    support.save()
    sites = shared / "data" / "sites"
    with served(sites / "cirrus-ci-docs") as address:
        assert crawl(support, address).state == Import.State.DONE
    ranks, in_context = {}, 0
    for question in json.loads((sites / "cirrus-ci-docs.questions.json").read_text()):
        hits = retrieve(support, question["question"]).hits
        ranks[question["question"]] = next((hit.rank for hit in hits if is_right(hit, question, address)), None)
        packed = get_context(support, question["question"]).packed
        in_context += any(each.is_used and is_right(each.hit, question, address) for each in packed)
    print(json.dumps(ranks, indent=1), f"{in_context} in the packed context")
    assert in_context >= 10
    assert sum(rank is not None and rank <= 5 for rank in ranks.values()) >= 9, ranks
    assert sum(rank == 1 for rank in ranks.values()) >= 5, ranks


def is_right(hit, question: dict, address: str) -> bool:
    """Return whether the hit is of one of the right pages and holds the words of the right place on it."""
    is_page = f"/{hit.uri.removeprefix(address)}" in question["pages"]
    return is_page and question["contains"].casefold() in f"{hit.title}\n{hit.text}".casefold()
