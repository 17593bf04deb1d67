"""Remembers how the LLM sorted a page, so that the page can be split again when it changed without asking anew.

A plan holds the sections' titles, and of each part its place on the page and a hash of its text. Parts that are the
same keep their section; a changed part takes the place of the one that stood between the same neighbours.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from hashlib import sha256
from itertools import takewhile

from crawler.split.subjects import Section, Unit, said_by

# Of a page's parts: when more are new or changed, the page is another one, and the LLM is asked anew.
MOST_NEW = 0.3
# A page of so few parts may change in all of them and still be about the same.
FEW_PARTS = 3
HASH_CHARACTERS = 16
# Pairs of parts that are compared, between what both pages begin and end with; beyond it is another page.
MOST_COMPARED = 4_000_000


def plan_of(sections: Sequence[Section], units: Sequence[Unit]) -> list[dict]:
    """Return what is kept of the sections. Shape: {"title", "parts": [[place, hash], ...]} each."""
    return [
        {"title": section.title, "parts": [[number, _hash(units[number])] for number in section.numbers]}
        for section in sections
    ]


def sections_again(plan: Sequence[dict], units: list[Unit], page_title: str) -> list[Section] | None:
    """Return the plan's sections with the units that stand in them now, in the page's order.

    A new heading begins a section of its own. A title whose facts its section no longer says is dropped, and so is that
    of a section all of whose parts are new. None where so much of the page is new that the LLM should be asked.
    """
    homes, new = _homes(plan, [_hash(unit) for unit in units])
    if len(plan) < 2 or homes is None or len(new) > max(1, MOST_NEW * len(units)):
        return None
    numbers = defaultdict(list)
    for number, home in enumerate(_with_new_sections(homes, units)):
        numbers[home].append(number)
    sections = []
    for home, chosen in numbers.items():
        title = plan[home]["title"] if home >= 0 else ""
        is_other = len(chosen) > 1 and new.issuperset(chosen)
        is_true = title and not said_by(chosen, units, page_title).unsaid_facts(title)
        sections.append(Section(title if is_true and not is_other else "", tuple(chosen)))
    return sections


def title_again(plan: Sequence[dict], units: list[Unit], page_title: str) -> str | None:
    """Return the title that a small page was given, "" where it kept its own; None where it has to be asked for."""
    if len(plan) != 1:
        return None
    title, known = plan[0]["title"], [text_hash for _, text_hash in plan[0]["parts"]]
    hashes = [_hash(unit) for unit in units]
    if not title:
        return "" if hashes == known else None
    if set(hashes).isdisjoint(known) and len(units) > FEW_PARTS:
        return None
    return None if said_by(range(len(units)), units, page_title).unsaid_facts(title) else title


def _hash(unit: Unit) -> str:
    return sha256(" ".join(unit.text.split()).encode()).hexdigest()[:HASH_CHARACTERS]


def _homes(plan: Sequence[dict], new: list[str]) -> tuple[list[int | None] | None, set[int]]:
    """Return the plan's section of each part, None for one that came between, and which parts are new or changed.

    In place of the sections None, where the parts are too many to be compared.
    """
    parts = sorted(
        (place, text_hash, home) for home, section in enumerate(plan) for place, text_hash in section["parts"]
    )
    old, old_homes = [text_hash for _, text_hash, _ in parts], [home for _, _, home in parts]
    start = _count_shared(old, new)
    end = _count_shared(old[start:][::-1], new[start:][::-1])
    old_stop, new_stop = len(old) - end, len(new) - end
    if (old_stop - start) * (new_stop - start) > MOST_COMPARED:
        return None, set()
    middle, changed = _matched(old[start:old_stop], old_homes[start:old_stop], new[start:new_stop])
    return [*old_homes[:start], *middle, *old_homes[old_stop:]], {start + number for number in changed}


def _count_shared(old: Sequence[str], new: Sequence[str]) -> int:
    """Return with how many of the same both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _matched(old: list[str], old_homes: list[int], new: list[str]) -> tuple[list[int | None], set[int]]:
    """Return the section of each new part, and which of them are new: a part that only moved is not."""
    homes: list[int | None] = [None] * len(new)
    changed: set[int] = set()
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    moved = defaultdict(deque)
    for place in (place for kind, i1, i2, _, _ in steps if kind != "equal" for place in range(i1, i2)):
        moved[old[place]].append(old_homes[place])
    for kind, i1, i2, j1, j2 in steps:
        for number in range(j1, j2):
            # Of as many as before each takes its counterpart's place; else they share the places that there were.
            counterpart = i1 + (number - j1) * (i2 - i1) // (j2 - j1)
            if kind == "equal":
                homes[number] = old_homes[counterpart]
            elif moved[new[number]]:
                homes[number] = moved[new[number]].popleft()
            else:
                homes[number] = old_homes[counterpart] if kind == "replace" else None
                changed.add(number)
    return homes, changed


def _with_new_sections(homes: list[int | None], units: list[Unit]) -> Iterator[int]:
    """Yield each part's section: what came between goes with the part before it, or below a heading of its own.

    New sections have negative numbers.
    """
    previous = next((home for home in homes if home is not None), 0)
    for number, home in enumerate(homes):
        if home is not None:
            previous = home
        elif units[number].kind == "heading":
            previous = -1 - number
        yield previous
