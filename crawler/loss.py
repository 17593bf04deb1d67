"""The loss meter: what of a page's words, facts and table cells survived each step from its HTML to its snippets.

It counts by itself, on the parsed page and on Markdown as text, so that it would see what the converter or a splitter
let fall. Facts are what an answer must not get wrong: numbers, prices, dates, addresses, phones, code spans and names.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from crawler.shown_text import LINK_END, ShownText

MOST_LOST_SHOWN = 20
LONGEST_SHOWN_CHARACTERS = 200
# Characters gone through for facts that are only read in other limits: on a page of megabytes the words must do.
MOST_SEARCHED = 300_000_000

# Markdown as ours is written. No pattern looks further than it must: 2,000 characters for what may not be closed.
_MARKDOWN = re.compile(
    r"""^(?:[ >]|[-*+][ ]|\d{1,9}[.)][ ])*(?P<fence>`{3,40}|~{3,40})(?![`~])[^\n]*\n
        (?P<listing>(?s:.*?))(?:^[ >]*(?P=fence)|\Z)
      | ^[ >]*(?:(?:[-*+]|\d{1,9}[.)])(?:[ ]+|$))+(?:\[[ x]\][ ])?
      | \\(?P<literal>[!-/:-@\[-`{-~])
      | (?<!`)(?P<ticks>`{1,40})(?!`)(?P<code>(?s:.{1,2000}?))(?<!`)(?P=ticks)(?!`)
      | !\[(?:\\.|[^\[\]\\])*\]\((?:[^()\s]|\([^()\s]*\))*(?:\s"(?:\\.|[^"\\])*")?\)
      | \]\((?P<target>(?:[^()\s]|\([^()\s]*\))*)(?:\s"(?:\\.|[^"\\])*")?\)""",
    re.VERBOSE | re.MULTILINE,
)
_CELL_LINE = re.compile(r"^[ >]*(?:(?:[-*+]|\d{1,9}[.)])[ ]+)*\|(.+)\|[ ]*$", re.MULTILINE)
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_RULE_LINE = re.compile(r"[ :|-]+")
_LISTING = re.compile(r"^[ >]*(`{3,40}|~{3,40})(?![`~])[^\n]*\n(?s:.*?)(?:^[ >]*\1|\Z)", re.MULTILINE)

_LONGEST_JOINED = 60
WORD = re.compile(r"[^\W_]+")
_BLANKS = re.compile("  +")
_OTHER_BLANKS = "\t\r\f\v\xa0\u1680\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
# What Markdown writes for emphasis, code and links, and what nobody sees, tells no text from another.
_FOLDED_SIGNS = {**dict.fromkeys(map(ord, "\t\r\f\v^"), " "), ord("|"): "\n", **dict.fromkeys(map(ord, "*`~[]"))}
_MARKS = re.compile(rf"[*`~\[\]\xad{LINK_END}]")

_CAPITALS = "".join(sign for sign in map(chr, range(0x530)) if sign.isupper())
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?"
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"“”()]+(?<![.,;:!?'’])")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")
_MONTH_AND_DAY = re.compile(
    r"[JFMASOND](?:an|eb|ar|pr|ay|un|ul|ug|ep|ct|ov|ec)[a-z]{0,6}\.?[ ]\d{1,2}(?:st|nd|rd|th)?(?:,?[ ]\d{4})?(?!\w)"
)
# It begins with a set of signs: so the search skips all text between numbers, which is most of it.
_NUMBER = re.compile(
    rf"""[\d$€£¥₹+(](?:
      (?<=[$€£¥₹])[ ]?(?:\d{{1,3}}(?:[ ]\d{{3}})+(?!\d)|\d+(?:[.,'’]\d+)*)
      | (?:(?<=\+)\d|(?<=\()0|(?<=0)\d)[\d()/ .-]{{5,}}\d
      | (?<=\d)(?:
          \d{{0,2}}(?:[ ]\d{{3}})+(?!\d)
          | \d?(?:\.|st|nd|rd|th)?[ ]{_MONTH}(?:,?[ ]\d{{4}})?(?!\w)
          | \w*(?:[.,:/'’+-]\w*\d\w*)*
        )(?:[ ]?(?:[€£$¥₹%]|(?:EUR|USD|GBP|CHF|euros?|dollars?|pounds?)\b))?
    )""",
    re.VERBOSE,
)
_NAME = re.compile(rf"[{_CAPITALS}](?<=[^\s.!?…:] .)[\w'’&-]+(?:[ ][{_CAPITALS}][\w'’&-]*)*")


@dataclass(frozen=True)
class Counted:
    """The words, the facts and the cells of tables in a text, each with how often it stands there; and the text."""

    words: Counter[str]
    facts: Counter[str]
    cells: Counter[str]
    text: str

    def __add__(self, other: "Counted") -> "Counted":
        text = f"{self.text}\n{other.text}"
        return Counted(self.words + other.words, self.facts + other.facts, self.cells + other.cells, text)

    @property
    def measure(self) -> dict[str, int]:
        """How much there is of each."""
        return {"words": self.words.total(), "facts": self.facts.total(), "cells": self.cells.total()}


@dataclass(frozen=True)
class Loss:
    """What a step lost: how many words, which facts, how many cells of tables."""

    words: int
    facts: list[str]
    cells: int

    def added_to(self, loss: dict) -> dict:
        """Return the loss of the steps before with this one's."""
        facts = [*loss.get("lost_facts", ()), *self.facts]
        return loss | {
            "lost_words": loss.get("lost_words", 0) + self.words,
            "lost_facts": [fact[:LONGEST_SHOWN_CHARACTERS] for fact in facts[:MOST_LOST_SHOWN]],
            "lost_fact_count": loss.get("lost_fact_count", 0) + len(self.facts),
            "lost_cells": loss.get("lost_cells", 0) + self.cells,
        }


def loss_at_reading(shown: ShownText, markdown: str, landmarks: Iterable[str]) -> dict:
    """Return what the page shows, what was selected of it and what moved to the site's parts, and what neither holds.

    Shape: {"page": M, "selected": M, "moved": M, "lost_words", "lost_facts", "lost_fact_count", "lost_cells"} with M =
    {"words", "facts", "cells"}. The page is counted as its text shows: where links lead is no part of it.
    """
    page = _count_page(shown)
    selected, moved = _count_shown(markdown), _count_shown("\n\n".join(landmarks))
    measures = {"page": page.measure, "selected": selected.measure, "moved": moved.measure}
    return loss_between(page, selected + moved).added_to(measures)


def loss_at_splitting(loss: dict, selected: str, kept: str, texts: Iterable[str]) -> dict:
    """Return the loss at reading with what the page's snippets hold and what splitting lost.

    `selected` is the page's Markdown, `kept` the same without what the site repeats on its pages and keeps once. `loss`
    may be of an earlier splitting, as that is kept with it; it is empty for what was no HTML.
    """
    reading = loss.get("at_reading") or loss or {"selected": _count_shown(selected).measure}
    texts = list(texts)
    if kept == selected and "\n\n".join(texts) == kept.strip():  # the page to the letter: there is nothing to count
        return reading | {"snippets": reading["selected"], "at_reading": reading}
    before, snippets = count_markdown(kept), count_markdown("\n\n".join(texts))
    whole = loss_between(before, snippets).added_to(reading) | {"snippets": snippets.measure, "at_reading": reading}
    if kept != selected:
        shown, moved = _count_shown(kept).measure, reading.get("moved", {})
        away = {name: count - shown[name] for name, count in _count_shown(selected).measure.items()}
        whole["moved"] = {name: moved.get(name, 0) + count for name, count in away.items()}
    return whole


def loss_as_before(loss: dict, last: dict) -> dict:
    """Return the loss at reading a page whose snippets were left as they were, with what splitting lost last time."""
    if not last or last.get("at_reading") == loss:
        return last or loss
    return loss | {"snippets": last.get("snippets", {}), "at_reading": loss}


def facts_of(text: str) -> Counter[str]:
    """Return every number, price, date, e-mail, phone, URL, code span and name of the Markdown, and how often.

    As they are written, but with plain blanks for others; names are capitalised words that begin no sentence.
    """
    return count_text(text).facts


def cells_of(markdown: str) -> Counter[str]:
    """Return the texts of the cells of the Markdown's tables, empty ones left out, and how often."""
    if "|" not in markdown:
        return Counter()
    rows = (line for line in _CELL_LINE.findall(_LISTING.sub("", markdown)) if not _RULE_LINE.fullmatch(line))
    return Counter(words for row in rows for cell in _CELL_BORDER.split(row) if (words := _words_in(_shown(cell)[0])))


@lru_cache(maxsize=2)
def count_markdown(markdown: str) -> Counted:
    """Return what stands in the Markdown, where its links lead included.

    The last two are kept: what a page is checked by when it is split is counted again for its report.
    """
    return count_text(markdown)


def count_text(markdown: str) -> Counted:
    """Return what stands in a short piece of Markdown, such as a title."""
    shown, codes, targets = _shown(markdown)
    counted = _counted(shown, codes, cells_of(markdown))
    counted.facts.update(target for target in targets if target.startswith(("http", "mailto:", "tel:")))
    return replace(counted, text="\n".join([counted.text, *targets]))


def _count_shown(markdown: str) -> Counted:
    """Return what a reader of the rendered Markdown sees."""
    shown, codes, _ = _shown(markdown)
    return _counted(shown, codes, cells_of(markdown))


def _count_page(page: ShownText) -> Counted:
    cells = map(_words_in, page.cells)
    return _counted("".join(page.pieces), page.codes, Counter(filter(None, cells)))


def _counted(shown: str, codes: Iterable[str], cells: Counter[str]) -> Counted:
    text = _folded(shown)
    return Counted(Counter(WORD.findall(text)), _facts(text, codes), cells, text)


def loss_between(before: Counted, after: Counted) -> Loss:
    """Return what is lost: words by count; facts and cells that stand nowhere, or of which a word is lost.

    A fact that is only read in other limits (two names that run together, a cell of a table that was but layout) still
    has all of its words.
    """
    lost_words = before.words - after.words
    if lost_words:
        _forgive_parting(lost_words, after.words - before.words)
    stands = _search_in(after.text)
    facts = [
        fact
        for fact in before.facts - after.facts
        if not lost_words.keys().isdisjoint(WORD.findall(fact)) or not stands(fact)
    ]
    cells = before.cells - after.cells if lost_words else Counter()
    lost_cells = sum(count for cell, count in cells.items() if not lost_words.keys().isdisjoint(cell.split()))
    return Loss(lost_words.total(), facts, lost_cells)


def unknown_facts(counted: Counted, known: Counted) -> list[str]:
    """Return the facts of one text that the other does not hold at all."""
    stands = _search_in(known.text)
    fresh = counted.facts.keys() - known.facts.keys()
    return [fact for fact in fresh if not known.words.keys() >= set(WORD.findall(fact)) or not stands(fact)]


def _search_in(text: str) -> Callable[[str], bool]:
    """Return what tells whether a fact stands in the text; after long searches it believes so."""
    left = MOST_SEARCHED

    def stands(fact: str) -> bool:
        nonlocal left
        left -= len(text)
        return left < 0 or fact in text

    return stands


def _forgive_parting(lost: Counter[str], gained: Counter[str]) -> None:
    """Take out of the lost words those that are only written apart now, as links side by side are."""
    for word in list(lost):
        for place in range(1, min(len(word), _LONGEST_JOINED) if gained else 0):
            parts = word[:place], word[place:]
            if all(gained[part] > 0 for part in parts):
                gained.subtract(parts)
                lost[word] -= 1
                break
    lost += Counter()  # drops what is down to none


def _folded(text: str) -> str:
    """Return the text with plain blanks, one at a time, and without marks; a line may end where a cell does."""
    if text.isascii():  # the same for such texts, at once
        return _BLANKS.sub(" ", text.translate(_FOLDED_SIGNS))
    for blank in _OTHER_BLANKS:
        text = text.replace(blank, " ")
    return _BLANKS.sub(" ", _MARKS.sub("", text.replace("^", " ").replace("|", "\n")))


@lru_cache(maxsize=1024)  # a page's code is counted as it shows and as it was selected
def _folded_code(code: str) -> str:
    return _folded(" ".join(code.split()))


def _words_in(text: str) -> str:
    return " ".join(WORD.findall(_MARKS.sub("", text)))


def _facts(text: str, codes: Iterable[str]) -> Counter[str]:
    """Return the facts of a folded text of which some stretches are code."""
    facts = Counter(code for stretch in codes if (code := _folded_code(stretch)))
    for sign, pattern in (("://", _URL), ("www.", _URL), ("@", _EMAIL), ("", _MONTH_AND_DAY)):
        if sign in text and (found := pattern.findall(text)):
            facts.update(found)
            text = pattern.sub(",", text)
    numbers, between, end = [], [], 0
    for match in _NUMBER.finditer(text):
        numbers.append(_with_letters_before(match))
        between.append(text[end : match.start()])
        end = match.end()
    facts.update(numbers)
    facts.update(_NAME.findall(",".join([*between, text[end:]])))
    return facts


def _with_letters_before(match: re.Match) -> str:
    """Return a number with the letters that it ends a word of, as in "t3" and "US$5"."""
    text, start = match.string, match.start()
    while start and text[start - 1].isalpha():
        start -= 1
    return text[start : match.end()]


def _shown(markdown: str) -> tuple[str, list[str], list[str]]:
    """Return the text that a reader of the Markdown sees, the code spans in it, and where its links lead."""
    codes: list[str] = []
    targets: list[str] = []

    def show(match: re.Match) -> str:
        kind = match.lastgroup
        if kind == "code":
            codes.append(code := match["code"].replace("\\|", "|"))
            return code
        if kind == "target":
            targets.append(match["target"])
        return match["listing"] or match["literal"] or ""

    return _MARKDOWN.sub(show, markdown), codes, targets
