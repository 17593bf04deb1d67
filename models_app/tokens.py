"""Counts tokens as OpenAI's models do, offline, and knows how many tokens a chat LLM holds. The only user of tiktoken.

For the LLMs of others the count is a good guess: their vocabularies differ by some per cent.
"""

import logging
import os
import re
import string
import threading
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import tiktoken
from django.conf import settings
from tiktoken.model import encoding_name_for_model
from tiktoken_ext.openai_public import ENCODING_CONSTRUCTORS

from models_app.memory import return_free_memory
from models_app.model_files import CL100K_RANKS, FETCH_COMMAND, O200K_RANKS, has_pinned_content

logger = logging.getLogger(__name__)

DEFAULT_ENCODING = "cl100k_base"
O200K_ENCODINGS = {"o200k_base", "o200k_harmony"}  # harmony differs in its special tokens only
RANK_FILES = {"cl100k_base": CL100K_RANKS, "o200k_base": O200K_RANKS}

# tiktoken's pattern overflows its stack on a million blanks, and its work on one long run grows faster than the run.
LONGEST_PART = 16_384
# No pattern of tiktoken joins a letter or digit to one of these marks behind it, so counts of parts cut there add up.
_PART = re.compile(rf"(?s:.{{1,{LONGEST_PART}}})(?<=[^\W_])(?=[ \n.,;:!?。，、！？])")
# Between a blank line and what is no blank one match of tiktoken's pattern ends whatever stands around, so counts of
# paragraphs add up; but o200k_base takes a slash to what stands before the line.
_PARAGRAPH_END = re.compile(r"\n\n(?=[^\s/])")
LONGEST_REMEMBERED = 2_000  # characters of a paragraph whose count is kept: some megabytes in all
# For want of ranks: three letters, three digits, a run of blanks or any other sign; a single blank joins the next word.
_ESTIMATED = re.compile(r"[A-Za-z]{1,3}|[0-9]{1,3}| {2,}|[\x00-\x1f!-/:-@\[-`{-\x7f]")

DEFAULT_CONTEXT_WINDOW = 8_192
# The longest prefix of an LLM's name decides; from the makers' model pages, the smallest of a family where they vary.
CONTEXT_WINDOWS = {
    "chatgpt-4o": 128_000,
    "claude-": 200_000,
    "command-r": 128_000,
    "deepseek": 65_536,
    "gemini-": 1_048_576,
    "gemma-3": 32_768,
    "gemma3": 32_768,
    "gpt-3.5-turbo": 16_385,
    "gpt-35-turbo": 16_385,
    "gpt-4-0125": 128_000,
    "gpt-4-1106": 128_000,
    "gpt-4-32k": 32_768,
    "gpt-4-turbo": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-4.5": 128_000,
    "gpt-4o": 128_000,
    "gpt-5": 400_000,
    "gpt-oss": 131_072,
    "llama-3.1": 131_072,
    "llama-3.2": 131_072,
    "llama-3.3": 131_072,
    "llama3.1": 131_072,
    "llama3.2": 131_072,
    "llama3.3": 131_072,
    "meta-llama-3.1": 131_072,
    "ministral": 131_072,
    "mistral": 32_768,
    "mistral-large": 131_072,
    "mistral-medium": 131_072,
    "mixtral": 32_768,
    "o1": 200_000,
    "o1-mini": 128_000,
    "o1-preview": 128_000,
    "o3": 200_000,
    "o4-mini": 200_000,
    "phi-4-mini": 131_072,
    "qwen2.5": 32_768,
    "qwen3": 32_768,
}

_lock = threading.Lock()
_loaded: dict[str, tiktoken.Encoding] = {}
_reported: set[Path] = set()  # missing rank files that the log already speaks of


def count_tokens(text: str, llm_name: str = "") -> int:
    """Return how many tokens the text is for this LLM. Never fails, and never asks the network.

    A marker such as `<|endoftext|>` counts as the text that it is. Without tiktoken's ranks this is an estimate.
    """
    encoding = _encoding_for(llm_name)
    if encoding is None:
        return estimate_tokens(text)
    if len(text) <= LONGEST_PART:
        return _count_short(encoding, text)
    return sum(len(encoding.encode_ordinary(part)) for part in _parts(text))


def fits_tokens(text: str, limit: int) -> bool:
    """Return whether the text is at most so many tokens, as count_tokens says; counts no more than that takes."""
    if len(text.encode("utf-8", "surrogatepass")) <= limit:
        return True  # a token is at least a byte
    if len(text.split()) > limit:
        return False  # and of one word
    encoding = _encoding_for("")
    if encoding is None or len(text) <= LONGEST_PART:
        return count_tokens(text) <= limit
    left = limit
    for part in _parts(text):
        left -= len(encoding.encode_ordinary(part))
        if left < 0:
            return False
    return True


def truncate_to_tokens(text: str, limit: int, llm_name: str = "") -> str:
    """Return the longest beginning of the text, cut between tokens and characters, of at most `limit` tokens."""
    encoding = _encoding_for(llm_name)
    if encoding is None:
        return text[: bisect_right(range(1, len(text) + 1), limit, key=lambda end: estimate_tokens(text[:end]))]
    left, start = limit, 0
    for part in _parts(text):
        tokens = encoding.encode_ordinary(part)
        if len(tokens) > left:
            return text[: start + _fitting_characters(encoding, part, tokens, left)]
        left, start = left - len(tokens), start + len(part)
    return text


def estimate_tokens(text: str) -> int:
    """Return a count made without ranks, from the classes of characters.

    Rather too high than too low: 1.6 times the true count of English and code, twice that of other scripts. Only
    text without words (base64, random letters) has up to 1.8 times more tokens.
    """
    signs = sum(1 for _ in _ESTIMATED.finditer(text))
    return signs + len(text.encode("utf-8", "surrogatepass")) - len(text)


def context_window_of(llm_name: str) -> int:
    """Return how many tokens the LLM holds, question and answer together, going by the family of its name."""
    name = _bare_name(llm_name).removeprefix("ft:")
    known = [prefix for prefix in CONTEXT_WINDOWS if name.startswith(prefix)]
    return CONTEXT_WINDOWS[max(known, key=len)] if known else DEFAULT_CONTEXT_WINDOW


def unload() -> None:
    """Drop the loaded ranks (22 MB for cl100k_base, 40 MB for o200k_base); the next count loads them again."""
    with _lock:
        _loaded.clear()
        _count_in_one.cache_clear()
        _count_added.cache_clear()
    return_free_memory()


@lru_cache(maxsize=64)
def encoding_name_of(llm_name: str) -> str:
    """Return "o200k_base" for the LLMs that are known to use it, else "cl100k_base"."""
    try:
        known = encoding_name_for_model(_bare_name(llm_name))
    except KeyError:
        return DEFAULT_ENCODING
    return "o200k_base" if known in O200K_ENCODINGS else DEFAULT_ENCODING


def _bare_name(llm_name: str) -> str:
    """Return the name without its vendor ("openai/gpt-4o") and its variant ("llama3.1:8b")."""
    name = llm_name.strip().lower().rpartition("/")[2]
    return name if name.startswith("ft:") else name.partition(":")[0]


def _encoding_for(llm_name: str) -> tiktoken.Encoding | None:
    name = encoding_name_of(llm_name)
    with _lock:
        if name not in _loaded:
            encoding = _load(name)
            if encoding is None:
                return None
            _loaded[name] = encoding
        return _loaded[name]


def _load(name: str) -> tiktoken.Encoding | None:
    """Return the encoding, or None when its ranks are not in the models folder: tiktoken would fetch them then."""
    ranks = settings.SITEWISE_MODELS_DIR / RANK_FILES[name].name
    if not has_pinned_content(ranks, RANK_FILES[name]):
        if ranks not in _reported:
            _reported.add(ranks)
            logger.warning("Token counts are estimates: %s is missing or damaged. Run: %s", ranks, FETCH_COMMAND)
        return None
    os.environ["TIKTOKEN_CACHE_DIR"] = str(settings.SITEWISE_MODELS_DIR)
    parts = ENCODING_CONSTRUCTORS[name]()
    encoding = tiktoken.Encoding(**parts)
    parts["mergeable_ranks"].clear()  # copied by tiktoken's Rust half, which alone counts: 12 to 28 MB less
    return_free_memory()
    return encoding


def _count_short(encoding: tiktoken.Encoding, text: str) -> int:
    """Return the tokens of a text that needs no parts, each of its paragraphs being counted once."""
    *paragraphs, last = _PARAGRAPH_END.split(text)
    count = _count_in_one(encoding, last) if len(last) <= LONGEST_REMEMBERED else len(encoding.encode_ordinary(last))
    for paragraph in paragraphs:
        count += _count_with_blank_line(encoding, paragraph)
    return count


def _count_with_blank_line(encoding: tiktoken.Encoding, paragraph: str) -> int:
    """Return the tokens of a paragraph and the blank line below it, which its last signs may be one token with."""
    bare = paragraph.rstrip(string.punctuation)
    signs, before = paragraph[len(bare) :], bare[-1:]
    is_apart = before == " " and signs
    if len(paragraph) > LONGEST_REMEMBERED or (before and not is_apart and not (before.isascii() and before.isalnum())):
        return len(encoding.encode_ordinary(f"{paragraph}\n\n"))
    return _count_in_one(encoding, paragraph) + _count_added(encoding, f" {signs}" if is_apart else signs)


@lru_cache(maxsize=2_048)  # a page's paragraphs are counted with it, for its sections and in them
def _count_in_one(encoding: tiktoken.Encoding, text: str) -> int:
    return len(encoding.encode_ordinary(text))


@lru_cache(maxsize=1_024)
def _count_added(encoding: tiktoken.Encoding, signs: str) -> int:
    """Return how many more tokens the signs are with a blank line below them."""
    return len(encoding.encode_ordinary(f"{signs}\n\n")) - len(encoding.encode_ordinary(signs))


def _parts(text: str) -> Iterator[str]:
    """Yield the text in parts of bounded length, cut where that changes no count, or else anywhere."""
    start = 0
    while len(text) - start > LONGEST_PART:
        safe = _PART.match(text, start)
        end = safe.end() if safe else start + LONGEST_PART
        yield text[start:end]
        start = end
    yield text[start:]


def _fitting_characters(encoding: tiktoken.Encoding, part: str, tokens: list[int], limit: int) -> int:
    """Return how many characters of the part its first tokens hold, so that they again are at most `limit` tokens."""
    for kept in range(max(limit, 0), 0, -1):
        beginning = encoding.decode_bytes(tokens[:kept]).decode("utf-8", "ignore")
        if len(encoding.encode_ordinary(beginning)) <= limit:
            return len(beginning)
    return 0
