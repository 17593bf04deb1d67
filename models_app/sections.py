"""A section of a text on its way into the store, and which of the snippets that stand it was before.

A section is recognised by its text, else by its title, else by likeness: what changed keeps its row and its history.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from typing import Protocol

from models_app import index
from models_app.models import TrainingSnippet
from models_app.tokens import count_tokens

TITLE_LENGTH = TrainingSnippet._meta.get_field("prompt").max_length
# Share of the pairs of neighbouring words that two texts have in common (Dice). On 150 awsdocs pages, 1.6% of the
# pairs of different sections of a page reach it, and 96% of the sections of which a third is written anew keep it.
LEAST_LIKENESS = 0.5
# What the owner switches on and off for the model: the line that names the source, and images in Markdown.
SOURCE_LINE = re.compile(r"\n\nSource: [^\n]+\Z")
_IMAGE = r"""!\[((?:\\.|[^\]\\\n])*)\]\((?:"(?:\\.|[^"\\\n])*"|\([^()\n]*\)|[^()"\n])*\)"""
IMAGE = re.compile(_IMAGE)
LINKED_IMAGE = re.compile(rf"\[{_IMAGE}(?=\]\()")
UNNAMED_LINK = re.compile(r"(?<!!)\[\]\([^()\n]*\)")
IMAGE_AS_HEADING = re.compile(rf"^(#+ ){_IMAGE}$", re.MULTILINE)
MOST_COMPARED = 10_000  # pairs of texts: what does not fit is matched by text and title only


class Draft(Protocol):
    """What becomes a snippet: a title and a text."""

    prompt: str
    completion: str


class Section:
    """A draft with its place on the page; what its text takes time to make is made once, when it is first asked for."""

    def __init__(self, prompt: str, completion: str, position: int = 0):
        self.prompt, self.completion, self.position = prompt[:TITLE_LENGTH], completion, position

    @cached_property
    def text_hash(self) -> str:
        """What the text is recognised by."""
        return hash_of(self.prompt, self.completion)

    @cached_property
    def token_count(self) -> int:
        """How much of a budget the snippet takes."""
        return count_tokens(embedded_text(self))

    @cached_property
    def terms(self) -> index.SnippetTerms:
        """What the keyword leg finds it by."""
        return index.terms_of(self.prompt, self.completion)

    def made_ahead(self) -> "Section":
        """Return the section with all made: a transaction that takes it up is short."""
        _ = self.text_hash, self.token_count, self.terms
        return self

    def says_the_same_as(self, row: Draft) -> bool:
        return (self.prompt, self.completion) == (row.prompt, row.completion)

    def is_but_for_options(self, text: Draft) -> bool:
        """Whether the text differs at most in what the owner has switched on or off: its source's line, its images."""
        own = self.prompt, _without_options(self.completion)
        return own == (text.prompt, _without_options(text.completion))


def embedded_text(snippet: Draft) -> str:
    """Return what is embedded and counted: title and text together, as the title is half of the signal."""
    return f"{snippet.prompt}\n\n{snippet.completion}"


def hash_of(prompt: str, completion: str) -> str:
    """Return what a text is recognised by."""
    return sha256(f"{prompt}\0{completion}".encode()).hexdigest()


def hash_but_for_options(text: Draft) -> str:
    """Return what a text is recognised by, whatever the owner has switched on or off since."""
    return hash_of(text.prompt[:TITLE_LENGTH], _without_options(text.completion))


def _without_options(completion: str) -> str:
    """Return the text without its source's line, its images and its blanks.

    Of an image that is all there is of a link or of a heading the words stay, as where pages are read without images.
    """
    text = LINKED_IMAGE.sub(r"[\1", SOURCE_LINE.sub("", completion))
    text = IMAGE.sub("", IMAGE_AS_HEADING.sub(r"\1\2", text))
    return "".join(UNNAMED_LINK.sub("", text).split())


def sections_of(drafts: Iterable[Draft]) -> list[Section]:
    """Return the drafts as sections, each at its place on the page."""
    return [
        draft if isinstance(draft, Section) else Section(draft.prompt, draft.completion, position)
        for position, draft in enumerate(drafts)
    ]


def made_ahead(drafts: Iterable[Draft], known: frozenset[str]) -> list[Section]:
    """Return the drafts as sections, with all made that takes time but for the texts known: needs no store."""
    return [section if section.text_hash in known else section.made_ahead() for section in sections_of(drafts)]


@dataclass
class Matching:
    """Which row each section was before, one to one; among equals the order on the page decides."""

    added: list[Section]
    gone: list[TrainingSnippet]
    pairs: list[tuple[Section, TrainingSnippet]] = field(default_factory=list)

    def by_text(self, hash_of_row: Callable[[TrainingSnippet], str]) -> None:
        """Pair what has the same text."""
        standing = defaultdict(list)
        for row in self.gone:
            standing[hash_of_row(row)].append(row)
        # Each row is taken out of its list as soon as it is paired.
        self._take([(one, standing[one.text_hash].pop(0)) for one in self.added if standing.get(one.text_hash)])

    def by_title(self) -> None:
        """Pair what has the same title: the most alike where it stands on the page more than once."""
        sections, rows, taken, pairs = defaultdict(list), defaultdict(list), set(), []
        for section in self.added:
            sections[section.prompt].append(section)
        for row in self.gone:
            for title in dict.fromkeys(text.prompt for text in page_texts(row)):
                rows[title].append(row)
        for title in filter(None, sections):
            free = [row for row in rows[title] if row.pk not in taken]
            alike = _most_alike(sections[title], free, 0.0)
            taken.update(row.pk for _, row in alike)
            pairs += alike
        self._take(pairs)

    def by_likeness(self) -> None:
        """Pair what is alike enough, the most alike first."""
        self._take(_most_alike(self.added, self.gone, LEAST_LIKENESS))

    def _take(self, pairs: list[tuple[Section, TrainingSnippet]]) -> None:
        sections, rows = {id(section) for section, _ in pairs}, {row.pk for _, row in pairs}
        self.pairs += pairs
        self.added = [section for section in self.added if id(section) not in sections]
        self.gone = [row for row in self.gone if row.pk not in rows]


def match_sections(sections: Iterable[Section], rows: Iterable[TrainingSnippet]) -> Matching:
    """Return which of the page's rows each section was before, which sections are new and which rows are gone.

    A row that the owner edited is recognised by the source it came from, by what its page said when the owner was last
    asked about it, and by the owner's own text.
    """
    matching = Matching(list(sections), list(rows))
    for hash_of_row in (_source_hash, _asked_hash, _edited_hash):
        matching.by_text(hash_of_row)
    matching.by_title()
    matching.by_likeness()
    return matching


def likeness(one: Draft, other: Draft) -> float:
    """Return from 0 to 1 how many of their pairs of neighbouring words two texts share, titles included."""
    return _dice(_word_pairs(one), _word_pairs(other))


def page_texts(row: TrainingSnippet) -> list[Draft]:
    """Return what the row's page said of it: before the owner's edit, and when the owner was last asked."""
    if not row.is_edited or not row.source_completion:
        return [row]
    texts = [TrainingSnippet(prompt=row.source_prompt, completion=row.source_completion)]
    if row.conflict == TrainingSnippet.Conflict.CHANGED:
        texts.append(TrainingSnippet(prompt=row.new_prompt, completion=row.new_completion))
    return texts


def known_hashes(row: TrainingSnippet) -> set[str]:
    """Return all that a row is recognised by: an edited one has up to three texts."""
    return {_source_hash(row), _asked_hash(row), _edited_hash(row)} - {""}


def _source_hash(row: TrainingSnippet) -> str:
    return row.source_hash


def _asked_hash(row: TrainingSnippet) -> str:
    return hash_of(row.new_prompt, row.new_completion) if row.conflict == TrainingSnippet.Conflict.CHANGED else ""


def _edited_hash(row: TrainingSnippet) -> str:
    return hash_of(row.prompt, row.completion) if row.is_edited else ""


def _most_alike(
    sections: Sequence[Section], rows: Sequence[TrainingSnippet], least: float
) -> list[tuple[Section, TrainingSnippet]]:
    """Return pairs that are at least so alike, the most alike first.

    Where there are too many to compare: in page order if any likeness will do, else none.
    """
    if len(sections) * len(rows) > MOST_COMPARED:
        return [] if least else list(zip(sections, rows, strict=False))
    if not sections or not rows:
        return []
    if not least and len(sections) == len(rows) == 1:
        return [(sections[0], rows[0])]
    words = [_word_pairs(section) for section in sections]
    ranked = sorted(
        (-max(_dice(words[place], known) for known in texts), place, of)
        for of, texts in enumerate([list(map(_word_pairs, page_texts(row))) for row in rows])
        for place in range(len(sections))
    )
    taken_sections, taken_rows, pairs = set(), set(), []
    for unlike, place, of in ranked:
        if -unlike >= least and place not in taken_sections and of not in taken_rows:
            taken_sections.add(place)
            taken_rows.add(of)
            pairs.append((sections[place], rows[of]))
    return pairs


def _word_pairs(text: Draft) -> set[tuple[str, str]]:
    words = embedded_text(text).split()
    return set(pairwise(["", *words, ""]))


def _dice(one: set, other: set) -> float:
    return 2 * len(one & other) / (len(one) + len(other))
