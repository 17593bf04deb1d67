"""Large pages split by an LLM behind a real socket: whatever it answers, the page's words are all in its snippets."""

import json
import re

import pytest

from crawler.crawl import import_site, new_import
from crawler.markdown import plain_words
from crawler.models import Import, Page
from models_app.jobs import perform_taken
from models_app.models import Retrieval
from tests.fakes.openai_server import OpenAIServer, Request, refusal, whole
from tests.fakes.website import Answer, Website

pytestmark = pytest.mark.django_db(transaction=True)

SUBJECTS = ("Delivery", "Payment", "Returns")
PARAGRAPH = "{subject} rule {number} of the shop says that {number}5 euros are due within {number} days. "


def large_page() -> str:
    parts = [
        f"<h2>{subject}</h2>"
        + "".join(f"<p>{PARAGRAPH.format(subject=subject, number=n) * 4}</p>" for n in range(1, 9))
        for subject in SUBJECTS
    ]
    return f"<title>Terms</title><main><h1>Terms</h1>{''.join(parts)}</main>"


class Splitter(OpenAIServer):
    """An LLM that sorts the parts by the subject each one names; `spoil` changes its sections before they are sent."""

    def __init__(self, spoil=lambda sections, call: sections):
        super().__init__()
        self._spoil = spoil

    def default_reply(self, request: Request):
        shown = next(m["content"] for m in request.body["messages"] if m["content"].startswith("[1]"))
        parts = re.findall(r"\[(\d+)\] ([^\[]*)", shown)
        sections, subject = {}, "Terms"
        for number, text in parts:
            subject = next((name for name in SUBJECTS if name in text), subject)
            sections.setdefault(subject, []).append(int(number))
        answer = [{"title": f"What about {name.lower()}?", "parts": numbers} for name, numbers in sections.items()]
        return whole(json.dumps({"sections": self._spoil(answer, len(self.requests))}))


def import_with(model, server: OpenAIServer) -> tuple[Import, Page]:
    """Import the one large page with the server as the splitter; returns the import and its page."""
    model.retrieval, model.splitter_llm, model.llm = Retrieval.KEYWORD, "splitter", "chatter"
    model.provider_base_url, model.provider_key = server.url, "key"
    model.save()
    with Website({"/": Answer(large_page())}) as website:
        job = Import.take(new_import(model, website.url("/")).pk)
        perform_taken(job, import_site)
    return job, job.pages.get()


def words_of(texts) -> list[str]:
    return sorted(word for text in texts for word in plain_words(text).split())


def assert_nothing_is_lost(model, page: Page) -> None:
    stored = model.snippets.values_list("completion", flat=True)
    assert words_of(stored) == words_of([page.markdown])


def test_a_faithful_llm_makes_a_snippet_of_each_subject(support):
    with Splitter() as server:
        job, page = import_with(support, server)
    assert job.state == "done"
    assert page.report["split"] == "llm"
    titles = set(support.snippets.values_list("prompt", flat=True))
    assert {f"What about {name.lower()}?" for name in SUBJECTS} <= titles
    assert_nothing_is_lost(support, page)
    assert server.requests[0].body["model"] == "splitter"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda sections, call: [{**one, "parts": one["parts"][:-3]} for one in sections],
        lambda sections, call: [{**one, "parts": [*one["parts"], 999, -1, *one["parts"]]} for one in sections],
        lambda sections, call: sections[:1],
        lambda sections, call: sections if call > 1 else [],
        lambda sections, call: [{**one, "title": "Is it 4711 euros?"} for one in sections],
    ],
    ids=["drops parts", "invents and repeats numbers", "keeps one section", "right the second time", "lies in a title"],
)
def test_an_llm_that_errs_loses_and_invents_nothing(support, spoil):
    with Splitter(spoil) as server:
        job, page = import_with(support, server)
    assert (job.state, page.report["split"]) == ("done", "llm")
    assert_nothing_is_lost(support, page)
    assert not support.snippets.filter(prompt__contains="4711").exists()
    assert len(server.requests) <= 2


@pytest.mark.parametrize(
    "reply",
    [whole("Sure! I sorted it for you."), whole('{"sections": [{"tit', finish_reason="length"), refusal(401)],
    ids=["prose", "cut off", "refuses the key"],
)
def test_an_llm_that_gives_nothing_usable_leaves_the_page_to_its_headings(support, reply):
    with OpenAIServer() as server:
        server.will(*[reply] * 6)
        job, page = import_with(support, server)
    assert (job.state, page.report["split"]) == ("done", "headings")
    assert "headings" in page.report["split_report"]
    assert_nothing_is_lost(support, page)
