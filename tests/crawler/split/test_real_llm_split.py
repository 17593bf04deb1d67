"""Pages split with a real LLM: its answers may make little sense, and the page is whole all the same."""

import pytest

from crawler.split import split_page
from crawler.split.splitter import Splitter
from models_app.llm import Provider, complete_json
from tests.fakes.llm_server import llm_server  # noqa: F401

PAGE = """\
## Opening hours

The shop opens at 9 and closes at 18. It is closed on Sunday.

## Delivery

Delivery costs 4 euros. It takes 3 days.
"""


@pytest.fixture
def splitter(llm_server):  # noqa: F811
    provider = Provider(llm_server.base_url, llm_server.api_key, llm_server.model, 8_192)

    def ask(messages, schema, answer_tokens, seconds_left, usage):
        return complete_json(provider, messages, schema, answer_tokens, timeout_seconds=seconds_left, usage=usage)

    # One small core may be shared by many.
    return Splitter(ask, provider.context_window, page_seconds=120)


def letters(text: str) -> list[str]:
    return sorted("".join(text.split()))


def test_a_real_llm_may_sort_a_page_as_it_likes(splitter):
    split = split_page(PAGE, "The shop", 24, splitter)
    assert split.method in ("llm", "headings")
    assert split.report
    assert split.usage["calls"] in (1, 2)
    assert split.usage["input_tokens"] > 100
    assert split.usage["output_tokens"] > 5
    assert letters("".join(draft.completion for draft in split.drafts)) == letters(PAGE)
    assert (split.checks["missing"], split.checks["uncovered"]) == (0, 0)


def test_a_real_llm_gives_a_small_page_a_title_that_the_page_bears_out(splitter):
    split = split_page(PAGE, "The shop", 400, splitter)
    assert (split.method, len(split.drafts)) == ("one", 1)
    assert split.drafts[0].completion == PAGE.strip()
    assert 0 < len(split.drafts[0].prompt) <= 150
    assert split.checks["invented"] == 0
    assert split.usage["calls"] in (1, 2)
