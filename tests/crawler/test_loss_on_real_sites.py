"""Whole real sites: no fact is lost on the way to the snippets, by our meter and by an independent count."""

import re
import zlib
from collections import Counter
from html.parser import HTMLParser

import pytest

from crawler.models import Import
from models_app.models import Retrieval
from tests.crawler.test_real_sites import crawl, served

pytestmark = pytest.mark.django_db(transaction=True)

VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))
UNSEEN = frozenset(("script", "style", "template", "select", "textarea", "noscript", "head", "button"))
BLOCK = re.compile("p|div|[uo]l|li|h[1-6]|t[dhr]|table|pre|br|section|header|a|d[td]|blockquote")
# Not the meter's: plain numbers with what may stand in them, and addresses.
FACT = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+|(?<!\w)\d+(?:[.,:/-]\d+)*(?!\w)")


class MainText(HTMLParser):
    """The visible text of the page's main element, read off its tags as they come."""

    def __init__(self, html: str):
        super().__init__()
        self.text: list[str] = []
        self._main_depth = self._unseen_depth = 0
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        is_main = tag == "main" or ("role", "main") in attributes
        if (is_main or self._main_depth) and tag not in VOID:
            self._main_depth += 1
            if tag in UNSEEN or self._unseen_depth or tag == "nav":
                self._unseen_depth += 1
        if BLOCK.fullmatch(tag):
            self.text.append("\n")

    def handle_endtag(self, tag):
        if tag in VOID or not self._main_depth:
            return
        self._main_depth -= 1
        self._unseen_depth = max(self._unseen_depth - 1, 0)
        if BLOCK.fullmatch(tag):
            self.text.append("\n")

    def handle_data(self, data):
        if self._main_depth and not self._unseen_depth:
            self.text.append(data)


def facts(text: str) -> Counter[str]:
    return Counter(FACT.findall(text))


@pytest.mark.parametrize("site", ["cirrus-ci-docs", "hmrc-engineering"])
def test_no_fact_of_a_site_is_lost(support, shared, site):
    support.retrieval = Retrieval.KEYWORD
    support.save()
    with served(shared / "data" / "sites" / site) as address:
        job = crawl(support, address)
    assert job.state == Import.State.DONE
    lost, compared = {}, 0
    for page in job.pages.filter(state="done"):
        loss = page.report["loss"]
        assert (loss["lost_fact_count"], loss["lost_cells"]) == (0, 0), (page.url, loss)
        assert page.report["checks"]["missing"] == page.report["checks"]["invented"] == 0, page.url
        texts = support.snippets.filter(uri=page.url, source="crawl").values_list("completion", flat=True)
        kept = facts("\n".join(texts))
        own = facts("".join(MainText(zlib.decompress(page.source).decode()).text))
        compared += own.total()
        if missing := own - kept:
            lost[page.url] = missing
    assert not lost
    assert compared > 100, compared
