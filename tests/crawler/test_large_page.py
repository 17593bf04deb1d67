"""A page of very many sections, imported again: its changes come in parts, and are counted as one."""

import pytest

from crawler.models import Import
from models_app import index
from models_app.models import MLModel, Retrieval
from models_app.page_parts import PART
from tests.crawler.test_crawl import crawl, texts
from tests.fakes.website import Website

# The lease is renewed by a thread of its own, which sees only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

COUNT = PART + 20


def catalogue(price: int) -> str:
    entries = (f"<h2>Lamp {n}</h2><p>{f'The lamp {n} costs {price} euros. ' * 40}</p>" for n in range(COUNT))
    return f"<!doctype html><title>Lamps</title><main><h1>Lamps</h1>{''.join(entries)}</main>"


@pytest.fixture
def model(support) -> MLModel:
    support.retrieval, support.max_context_tokens = Retrieval.KEYWORD, 500
    support.save()
    return support


def test_all_sections_of_a_large_page_follow_it(model):
    with Website({"/": catalogue(40)}) as website:
        first = crawl(model, website)
        before = texts(model)
        assert len(before) >= COUNT
        website.paths["/"] = catalogue(45)
        second = crawl(model, website)
    after = texts(model)
    assert after.keys() == before.keys()
    assert all("costs 45 euros" in text for text in after.values() if "costs" in text)
    counts = second.pages.get().report["snippets"]
    assert (second.state, counts["added"], counts["removed"]) == (Import.State.DONE, 0, 0)
    assert counts["changed"] >= COUNT and counts["changed"] + counts["kept"] == len(after)
    assert index.check_model(model.pk) == []
    assert first.pages.get().split_hash == "", "else a stop in between could leave the page half changed"
