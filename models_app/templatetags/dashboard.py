"""What templates say with: Markdown made safe, found words marked, durations."""

import re
from collections.abc import Callable

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from models_app.markdown import plain_text, render_markdown
from models_app.models import is_web_address
from models_app.terms import index_terms, question_terms

WORD = re.compile(r"(\w(?:[\w.'’-]*\w)?)")

EXCERPT_LENGTH = 240
LEAD_LENGTH = 60  # characters before the first found word
LONGEST_SEARCHED = 20_000

register = template.Library()
register.filter("markdown", render_markdown)
register.filter("plain_text", plain_text)
register.filter("is_web_address", is_web_address)


@register.filter
def duration(seconds: float) -> str:
    """Return seconds as people say them: 0.4 s, 12 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes_left = divmod(minutes, 60)
    return f"{hours} h {minutes_left} min" if hours else f"{minutes} min {rest} s"


@register.filter
def mark_found(text: str, words: str) -> SafeString:
    """Return the text, escaped, with the words marked as typed, else those that share a term with them."""
    typed = re.compile(f"({re.escape(words)})", re.IGNORECASE) if words else WORD
    if words and typed.search(text):
        return _marked(typed.split(text), lambda word: True)
    terms = set(question_terms(words))
    return _marked(WORD.split(text), lambda word: not terms.isdisjoint(index_terms(word)))


def _marked(pieces: list[str], is_found: Callable[[str], bool]) -> SafeString:
    """Join the pieces, of which every other one, from the second on, is a word that may be marked."""
    marked = (
        format_html("<mark>{}</mark>", piece) if place % 2 and is_found(piece) else piece
        for place, piece in enumerate(pieces)
    )
    return format_html_join("", "{}", ((piece,) for piece in marked))


@register.filter
def excerpt(text: str, words: str) -> str:
    """Return the part of a text to show in a list: its beginning, or where most of the words are found."""
    if len(text) <= EXCERPT_LENGTH:
        return text
    start = text.lower().find(words.lower()) if words else 0
    if start < 0:
        start = _densest_start(text, set(question_terms(words)))
    if start < EXCERPT_LENGTH - LEAD_LENGTH:
        return f"{text[:EXCERPT_LENGTH].rstrip()}…"
    begin = text.find(" ", start - LEAD_LENGTH) + 1
    end = begin + EXCERPT_LENGTH
    return f"…{text[begin:end].strip()}{'…' if end < len(text) else ''}"


def _densest_start(text: str, terms: set[str]) -> int:
    """Return where the first of the found words begins that have the most distinct others close behind."""
    found = [
        (match.start(), terms.intersection(index_terms(match[0]))) for match in WORD.finditer(text[:LONGEST_SEARCHED])
    ]
    found = [(place, terms_here) for place, terms_here in found if terms_here]
    if not found:
        return 0

    def reach(first: int) -> int:
        near = (here for place, here in found if first <= place < first + EXCERPT_LENGTH - LEAD_LENGTH)
        return len(set().union(*near))

    return max((place for place, _ in found), key=lambda place: (reach(place), -place))
