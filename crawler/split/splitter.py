"""Talks with the LLM about one page: within one deadline, its cost counted, its failures turned into one exception."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from models_app.lease import WorkEnds
from models_app.llm_chunks import Usage

Ask = Callable[[list[dict], dict, int, float, Usage], dict]


class SplitterRefused(Exception):
    """The LLM gave no usable answer."""


@dataclass(frozen=True)
class Splitter:
    """The LLM that splits pages: how it is asked, how many tokens it holds, and how long one page may take it.

    `ask` takes chat messages, a JSON schema, how many tokens the answer may need, the seconds left and the usage to
    add to, and returns the JSON object.
    """

    ask: Ask
    window_tokens: int = 8_192
    page_seconds: float = 300.0


class Talk:
    """What is asked about one page, and what that cost."""

    def __init__(self, splitter: Splitter):
        self.window_tokens = splitter.window_tokens
        self.usage = Usage()
        self._ask = splitter.ask
        self._deadline = time.monotonic() + splitter.page_seconds

    def ask(self, messages: list[dict], schema: dict, answer_tokens: int) -> dict:
        """Return the LLM's answer; raises SplitterRefused, also when the page's time is up."""
        seconds_left = self._deadline - time.monotonic()
        if seconds_left <= 0:
            raise SplitterRefused("it took too long.")
        try:
            answer = self._ask(messages, schema, answer_tokens, seconds_left, self.usage)
        except WorkEnds:
            raise  # no fault of the LLM: the import itself has to end here
        except Exception as error:
            # Whatever an LLM or its port does wrong, the page is still split.
            raise SplitterRefused(str(error) or type(error).__name__) from error
        if not isinstance(answer, dict):
            raise SplitterRefused("its answer is no JSON object.")
        return answer
