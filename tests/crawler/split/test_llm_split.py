"""Large pages split by an LLM behind a real socket: whatever it answers, the page's words are all in its snippets."""

import json
import re
import time

import pytest

from crawler.crawl import import_site, new_import, start_split
from crawler.markup.markdown import plain_words
from crawler.models import Import, Page
from models_app.jobs import perform_taken
from models_app.models import Retrieval
from tests.fakes.openai_server import OpenAIServer, Reply, Request, refusal, whole
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
        lambda sections, call: sections * 3,
        lambda sections, call: sections if call > 1 else [],
        lambda sections, call: [{**one, "title": "Is it 4711 euros?"} for one in sections],
    ],
    ids=["drops parts", "invents and repeats numbers", "repeats itself", "right the second time", "lies in a title"],
)
def test_an_llm_that_errs_loses_and_invents_nothing(support, spoil):
    with Splitter(spoil) as server:
        job, page = import_with(support, server)
    assert (job.state, page.report["split"]) == ("done", "llm")
    assert_nothing_is_lost(support, page)
    assert not support.snippets.filter(prompt__contains="4711").exists()
    assert len(server.requests) <= 2


FENCED = """Here you {go}:
```json
{"sections": [{"title": "What is due ```sh\\nmake {now}?", "parts": [PARTS]}]}
```
Hope it helps"""


def test_case_t09_prose_and_fences_around_the_json_do_not_cut_it(support, case):
    assert "```json" in case("T09")["input"]["reply"]
    with Splitter() as server:
        server.default_reply = lambda request: whole(
            FENCED.replace("PARTS", ", ".join(map(str, range(1, parts_shown(request) + 1))))
        )
        job, page = import_with(support, server)
    assert (job.state, page.report["split"], len(server.requests)) == ("done", "llm", 1)
    assert page.plan[0]["title"] == "What is due ```sh make {now}?"
    assert_nothing_is_lost(support, page)


def parts_shown(request: Request) -> int:
    schema = request.body["response_format"]["json_schema"]["schema"]
    return schema["properties"]["sections"]["items"]["properties"]["parts"]["maxItems"]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (whole("Sure! I sorted it for you."), "did not answer with the JSON"),
        (whole('{"sections": [{"tit', finish_reason="length"), "longer than it may be"),
        (refusal(401), "refused the key"),
        (refusal(400, "content policy"), "refused the request"),
        (whole('{"sections": [{"title": "All?", "parts": [1]}]}'), "left out"),
        (whole('{"sections": ' + "[" * 5_000), "did not answer with the JSON"),
        (whole("loop " * 50_000, finish_reason="length"), "longer than it may be"),
        (Reply(hangs=True), "did not answer in time"),
        (Reply(body="{", waits_seconds=0.1), "OpenAI"),
        (Reply(status=200, body="<html>Welcome</html>", headers={"Content-Type": "text/html"}), "OpenAI"),
    ],
    ids=["prose", "cut off", "no key", "refuses", "most left out", "nests", "loops", "stalls", "broken", "a web page"],
)
def test_an_llm_that_gives_nothing_usable_leaves_the_page_to_its_headings(support, settings, reply, said):
    settings.SITEWISE_LLM_TIMEOUT_SECONDS = 0.4  # a page may take five times as long
    with OpenAIServer() as server:
        server.will(*[reply] * 6)
        started = time.monotonic()
        job, page = import_with(support, server)
    assert time.monotonic() - started < 60
    assert (job.state, page.report["split"]) == ("done", "headings")
    assert "headings" in page.report["split_report"]
    assert said in page.report["split_report"]
    assert page.report["checks"]["missing"] == page.report["checks"]["uncovered"] == 0
    assert_nothing_is_lost(support, page)


# --- A site crawled again and again


QUESTIONS = ("Payment", "Delivery", "Returns", "Repairs")
ANSWERS = ["You pay by card.", "It costs 4 euros.", "Send it back within 30 days.", "We mend bikes."]


def faq_page(answers: list[str]) -> Answer:
    told = "".join(
        f"<h2>{question}</h2><p>{answer} {'It is so and not otherwise. ' * 50}</p>"
        for question, answer in zip(QUESTIONS, answers, strict=True)
    )
    return Answer(f'<title>FAQ</title><main><h1>FAQ</h1>{told}<a href="/hours">Hours</a></main>')


def hours_page(text: str) -> Answer:
    return Answer(f"<title>Hours</title><main><h1>Hours</h1><p>{text}</p></main>")


class Sorter(OpenAIServer):
    """An LLM that makes a section of each heading, and asks when things happen where a title is wanted."""

    def default_reply(self, request: Request):
        if "title" in request.body["response_format"]["json_schema"]["schema"]["properties"]:
            return whole('{"title": "When is it open?"}')
        shown = request.body["messages"][1]["content"].split("\n[")
        sections = []
        for number, part in enumerate(shown, 1):
            if "] ## " in part or not sections:
                sections.append({"parts": []})
            sections[-1]["parts"].append(number)
        for section, question in zip(sections, ("page", *QUESTIONS), strict=True):
            section["title"] = f"What about {question.lower()}?"
        return whole(json.dumps({"sections": sections}))


def whole_site(support, server: OpenAIServer, website: Website) -> Import:
    support.retrieval, support.splitter_llm, support.llm = Retrieval.KEYWORD, "splitter", "chatter"
    support.provider_base_url, support.provider_key = server.url, "key"
    support.max_context_tokens = 1_000
    support.save()
    job = Import.take(new_import(support, website.url("/")).pk)
    perform_taken(job, import_site)
    assert job.state == "done", job.message
    return Import.objects.get(pk=job.pk)


def rows_of(model) -> dict:
    return {row.pk: (row.prompt, row.completion) for row in model.snippets.all()}


def test_a_site_that_did_not_change_costs_nothing_and_one_answer_changes_one_snippet(support):
    pages = {"/": faq_page(ANSWERS), "/hours": hours_page("We open at 9.")}
    with Sorter() as server, Website(pages) as website:
        first = whole_site(support, server, website)
        assert first.usage["calls"] == len(server.requests) == 2
        assert first.usage["input_tokens"] > 500
        before = rows_of(support)
        assert {"What about delivery?", "When is it open?"} <= {prompt for prompt, _ in before.values()}

        second = whole_site(support, server, website)
        assert len(server.requests) == 2
        assert rows_of(support) == before
        assert second.changes["snippets"] | {"kept": 0} == dict.fromkeys(second.changes["snippets"], 0)
        assert (second.usage["calls"], second.usage["saved_calls"]) == (0, 2)
        assert all(page.plan and page.report["checks"] for page in second.pages.all())

        website.paths["/"] = faq_page([ANSWERS[0], "It costs 5 euros.", *ANSWERS[2:]])
        website.paths["/hours"] = hours_page("We open at 10.")
        third = whole_site(support, server, website)
        after = rows_of(support)
    assert len(server.requests) == 2
    assert after.keys() == before.keys()
    changed = {after[pk][0] for pk in after if after[pk] != before[pk]}
    assert changed == {"What about delivery?", "When is it open?"}
    assert third.changes["snippets"]["changed"] == 2
    assert third.usage["calls"] == 0


def test_an_llm_that_fails_three_times_in_a_row_is_asked_no_more_and_the_next_import_tries_again(support):
    links = "".join(f'<a href="/{number}">{number}</a>' for number in range(6))
    pages = {f"/{number}": hours_page(f"On day {number} we open.") for number in range(6)}
    pages["/"] = Answer(f"<title>Days</title><main><h1>Days</h1><p>All the days.</p>{links}</main>")
    with OpenAIServer() as server, Website(pages) as website:
        server.will(*[refusal(401)] * 3)
        server.default_reply = lambda request: whole('{"title": "When is it open?"}')
        job = whole_site(support, server, website)
        assert len(server.requests) == 3
        assert any("3 pages in a row" in note for note in job.notes)
        before = rows_of(support)
        assert len(before) == 7
        whole_site(support, server, website)
    assert len(server.requests) == 3 + 7
    assert rows_of(support).keys() == before.keys()
    assert set(support.snippets.values_list("prompt", flat=True)) == {"When is it open?"}


def test_stored_pages_are_sorted_anew_when_the_context_tokens_change(support):
    with Sorter() as server, Website({"/": faq_page(ANSWERS), "/hours": hours_page("We open at 9.")}) as website:
        whole_site(support, server, website)
        support.max_context_tokens = 3_000
        support.save()
        job = Import.take(start_split(support).pk)
        perform_taken(job, import_site)
    assert job.state == "done"
    assert len(server.requests) == 4
    assert support.snippets.count() == 2
