"""Reads what chat LLMs send, whatever a server leaves out or adds: the chunks of a stream, JSON within prose."""

import json
from dataclasses import dataclass

from models_app.thoughts import ThoughtFilter, without_thoughts
from models_app.tokens import count_tokens

FINISH_REASONS = frozenset({"stop", "length", "content_filter"})
MOST_STARTS_TRIED = 50


@dataclass(frozen=True)
class Piece:
    """Some more text of an answer."""

    text: str


@dataclass(frozen=True)
class Ending:
    """How an answer ended: its whole text as it is to be kept, and what it cost (None: the server did not say)."""

    text: str
    finish_reason: str  # "stop", "length" or "content_filter"
    prompt_tokens: int | None
    completion_tokens: int | None


class AnswerReader:
    """Puts an answer together out of a stream's chunks, plain dictionaries of which no part is sure to be there."""

    def __init__(self, llm_name: str = ""):
        self._thoughts = ThoughtFilter(llm_name)
        self._raw: list[str] = []
        self._usage: dict = {}
        self.finish_reason = ""
        self.has_read_a_choice = False
        self.has_shown_text = False

    def add(self, chunk: dict) -> str:
        """Return the text that this chunk lets show."""
        self._usage = _mapping(chunk.get("usage")) or self._usage
        choice = first_choice(chunk)
        self.has_read_a_choice = self.has_read_a_choice or bool(choice)
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        delta = _mapping(choice.get("delta"))
        text = content_text(delta)
        self._raw.append(text)
        freed = self._thoughts.expect_no_thoughts() if has_separate_thoughts(delta) else ""
        return self._shown(freed + self._thoughts.add(text))

    def rest(self) -> str:
        """Return what was held back, now that the stream has ended."""
        return self._shown(self._thoughts.finish())

    def ending(self) -> Ending:
        """Return the answer as a whole, once the stream has ended."""
        return Ending(
            text=without_thoughts("".join(self._raw)),
            finish_reason=self.finish_reason if self.finish_reason in FINISH_REASONS else "stop",
            prompt_tokens=_count(self._usage.get("prompt_tokens")),
            completion_tokens=_count(self._usage.get("completion_tokens")),
        )

    def _shown(self, text: str) -> str:
        self.has_shown_text = self.has_shown_text or bool(text)
        return text


def first_choice(answer: dict) -> dict:
    """Return the first choice of a chunk or a whole answer; empty when it has none."""
    choices = answer.get("choices")
    return _mapping(choices[0]) if isinstance(choices, list) and choices else {}


def content_text(message: dict) -> str:
    """Return the text of a message or delta, whose content is a string, a list of parts, or missing."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part["text"] for part in map(_mapping, content) if isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


def has_separate_thoughts(message: dict) -> bool:
    """Return whether the server sends the LLM's thoughts in a field of their own."""
    return bool(message.get("reasoning_content") or message.get("reasoning"))


def find_json_object(text: str) -> dict | None:
    """Return the first JSON object in a text, which may stand in prose or fenced code; None without one."""
    text = without_thoughts(text)
    start = -1
    for _ in range(MOST_STARTS_TRIED):
        start = text.find("{", start + 1)
        if start < 0:
            return None
        try:
            found, _end = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        return found
    return None


def _mapping(value: object) -> dict:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


@dataclass
class Usage:
    """What LLM calls have cost: how many were answered, and their tokens, as the server counts them or else we do."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def add(self, answer: dict, prompt_tokens: int) -> None:
        """Add a whole answer, whatever it is worth."""
        counted = answer.get("usage") if isinstance(answer.get("usage"), dict) else {}
        text = content_text(first_choice(answer).get("message") or {})
        self.calls += 1
        self.input_tokens += _count_or(counted.get("prompt_tokens"), prompt_tokens)
        self.output_tokens += _count_or(counted.get("completion_tokens"), count_tokens(text))


def _count_or(reported: object, own: int) -> int:
    return reported if isinstance(reported, int) and reported >= 0 else own
