"""Cuts a long snippet into windows for the embedding model, which never sees what stands behind its limit.

Each window carries the snippet's title. A snippet is as near to a question as the nearest of its windows.
"""

import re
from collections.abc import Callable, Iterator

from models_app.snippets import Draft

# Of a link's address the path says something, its host the same in each snippet: on cirrus-ci-docs hybrid MRR is .690
# without it and .669 with it, and no longer depends on where the site is served.
LINK_HOST = re.compile(r"\]\(https?://[^/()\s]+")
# Where to cut, the best first: behind a paragraph, a line, a sentence, a word.
ENDS = tuple(map(re.compile, (r"\n\s*\n", r"\n", r"[.!?…]\s|[。！？।]", r"\s")))


def windows_of(snippet: Draft, fits: Callable[[str], bool]) -> list[str]:
    """Return the texts to embed for a snippet, in order: its whole text if it fits, else windows that each fit.

    A title that takes more than half of a window is not repeated, but cut with the text.
    """
    title, text = f"{snippet.prompt}\n\n", LINK_HOST.sub("](", snippet.completion)
    whole = title + text
    if fits(whole):
        return [whole]
    pieces = _cut(text, title, fits) if fits(title * 2) else _cut(whole, "", fits)
    return list(pieces) or [title]


def _cut(text: str, title: str, fits: Callable[[str], bool]) -> Iterator[str]:
    """Yield the text in windows of about one length: a short last one would be little more than its title."""
    text = text.strip()
    if len(text) > 1 and not fits(title + text):
        middle = _end_near_the_middle(text)
        yield from _cut(text[:middle], title, fits)
        yield from _cut(text[middle:], title, fits)
    elif text:
        yield title + text


def _end_near_the_middle(text: str) -> int:
    """Return where to cut: at the best kind of end that lies in the middle half, or through a word without any end."""
    quarter = max(1, len(text) // 4)
    for end in ENDS:
        if places := [found.end() for found in end.finditer(text, quarter, len(text) - quarter)]:
            return min(places, key=lambda place: abs(2 * place - len(text)))
    return len(text) // 2
