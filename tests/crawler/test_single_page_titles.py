"""A single page that is read anew keeps the title it had among its site's: the site's name is known from before."""

import pytest

from crawler.crawl import new_import
from crawler.models import Import
from models_app.models import Retrieval
from tests.crawler.test_crawl import carry_on, crawl
from tests.fakes.website import Website, page

# The lease is renewed by a thread of its own, which sees only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)


def test_a_page_read_alone_is_not_changed_by_its_sites_name(support):
    support.retrieval = Retrieval.KEYWORD
    support.save()
    texts = {"/": "Home", "/a": "Bread costs 3 euros", "/b": "Open from nine"}
    pages = {path: page(text, "/a", "/b", title=f"{text} | The Old Mill") for path, text in texts.items()}
    with Website(pages) as website:
        crawl(support, website)
        before = list(support.snippets.order_by("pk").values_list("pk", "prompt", "completion"))
        assert "Bread costs 3 euros" in {prompt for _, prompt, _ in before}
        carry_on(new_import(support, kind=Import.Kind.PAGES, addresses=[website.url("/a")]))
    assert list(support.snippets.order_by("pk").values_list("pk", "prompt", "completion")) == before
