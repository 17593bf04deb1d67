"""Marks the words in which two texts differ, as HTML that is safe to show and that also says so without colours."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WORD = re.compile(r"^\s+|\S+\s*")
MOST_COMPARED = 10_000_000  # pairs: even of the worst texts of this size difflib takes but some seconds
LEAD_WORDS = 20  # shown around a change; what lies farther away is left out

REMOVED = '<del><span class="visually-hidden">[removed: </span>{}<span class="visually-hidden">]</span></del>{}'
ADDED = '<ins><span class="visually-hidden">[added: </span>{}<span class="visually-hidden">]</span></ins>{}'

Part = tuple[list[str], list[str], bool]  # words before, words after, and whether they are the same


def mark_sides(before: str, after: str) -> tuple[SafeString, SafeString]:
    """Return the earlier text with what was removed marked in it, and the later one with what was added."""
    parts = list(_parts(before, after))
    return (
        format_html_join("", "{}", ((_plain(old) if is_same else _marked(REMOVED, old),) for old, _, is_same in parts)),
        format_html_join("", "{}", ((_plain(new) if is_same else _marked(ADDED, new),) for _, new, is_same in parts)),
    )


def mark_changes(before: str, after: str) -> SafeString:
    """Return the changes with some words around each, removed and added ones marked; empty when there are none."""
    parts = [part for part in _parts(before, after) if part[0] or part[1]]
    if all(is_same or not _plain(old + new).strip() for old, new, is_same in parts):
        return SafeString()
    return format_html_join("", "{}", ((_shown(parts, place),) for place in range(len(parts))))


def _shown(parts: Sequence[Part], place: int) -> SafeString | str:
    old, new, is_same = parts[place]
    if not is_same:
        return _marked(REMOVED, old) + _marked(ADDED, new)
    head = new[:LEAD_WORDS] if place else []
    tail = new[-LEAD_WORDS:] if place < len(parts) - 1 else []
    if len(new) <= len(head) + len(tail):
        return _plain(new)
    return f"{_plain(head).rstrip()} … {_plain(tail)}" if head else f"… {_plain(tail)}"


def _plain(words: Sequence[str]) -> str:
    return "".join(words)


def _marked(form: str, words: Sequence[str]) -> SafeString:
    """Return the words marked, the blanks behind them not."""
    text = "".join(words)
    bare = text.rstrip()
    return format_html(form, bare, text[len(bare) :]) if bare else format_html("{}", text)


def _parts(before: str, after: str) -> Iterator[Part]:
    """Yield the texts in parts that are the same or differ, in words; blanks alone are no difference.

    Long texts are compared by lines first; what is too long even then counts as one difference.
    """
    old, new = WORD.findall(before), WORD.findall(after)
    if len(old) * len(new) <= MOST_COMPARED:
        yield from _compared(old, new)
        return
    for old_lines, new_lines, is_same in _compared(before.splitlines(True), after.splitlines(True)):
        old, new = WORD.findall("".join(old_lines)), WORD.findall("".join(new_lines))
        if is_same:
            yield old, new, True
        else:
            yield from _compared(old, new)


def _compared(old: Sequence[str], new: Sequence[str]) -> Iterator[Part]:
    """Yield words or lines in parts; what both begin and end with is not left to difflib."""
    bare_old, bare_new = [word.strip() for word in old], [word.strip() for word in new]
    start = _common(bare_old, bare_new)
    end = _common(bare_old[start:][::-1], bare_new[start:][::-1])
    stop_old, stop_new = len(old) - end, len(new) - end
    yield old[:start], new[:start], True
    if (stop_old - start) * (stop_new - start) > MOST_COMPARED:
        yield old[start:stop_old], new[start:stop_new], False
    else:
        # In long texts it looks for rare words first (autojunk): without that, repetitions take it far too long.
        matcher = SequenceMatcher(None, bare_old[start:stop_old], bare_new[start:stop_new])
        for kind, *places in matcher.get_opcodes():
            first, last, other_first, other_last = (place + start for place in places)
            yield old[first:last], new[other_first:other_last], kind == "equal"
    yield old[stop_old:], new[stop_new:], True


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))
