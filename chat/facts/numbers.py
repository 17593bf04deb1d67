"""Reads numbers with what makes them a price, a percentage or a measure, in digits and in words, and codes with digits.

Thousands may be parted by commas, points, blanks or apostrophes, decimals by a point or a comma.
"""

import re
from collections.abc import Iterator
from decimal import Decimal

from chat.facts.dates import SHORT_GERMAN, short_date
from chat.facts.fact import BLOT, Fact, Unread, keys
from chat.facts.words import (
    ARTICLES,
    CURRENCIES,
    CURRENCY_SIGNS,
    ENGLISH_TENS,
    NUMBER_WORDS,
    PERCENT,
    PERCENT_AFTER,
    SCALES,
    UNITS,
)

NUMBER = re.compile(r"[0-9](?:\d{0,2}(?: \d{3})+(?!\d)(?:[.,]\d{1,2}(?!\d))?|\d*(?:[.,']\d+)*)")
WORD = re.compile(r"[^\W\d_]+")
AFTER = re.compile(r"(?:[.,]?-{1,2})?(?: ?-? ?)([^\W\d_]+\$?|[%€$£¥₹₺₽₩])(?:\.? ?([^\W\d_]+|[€$£]))?")
BEFORE = re.compile(r"([€$£¥₹₺₽₩]|(?<![^\W\d_])[A-Za-z]{2,3}\$?\.?) ?$")
ALONE = re.compile(
    r" ?(?:-|to|or|bis|oder|à|ou|a|o|tot|of) ?[\d\x01]"
)  # what follows counts something, but for a range
LEAST_PHONE_DIGITS = 7
HALF = ["and", "a", "half"]
CODE_BEFORE = re.compile(r"[A-Za-zÀ-ɏΑ-ωА-я](?:[\w-]*[A-Za-zÀ-ɏΑ-ωА-я0-9_])?[-_#]?$|[A-Za-z]\w*[-_]$")
CODE_AFTER = re.compile(r"(?:[-_.]?\w+)*")
LONGEST_BEFORE = 40
LONGEST_CURRENCY = 6
LEAST_TELLING_DIGITS = 3
LEAST_NAME_LETTERS = 3  # "Python3" may be "Python 3" elsewhere, but E-09 is no 9
GROUP = 3
BUT_ALNUM = re.compile(r"[^\w]|_")
BUT_LETTERS = re.compile(r"[\W\d_]")


def number_facts(unread: Unread) -> Iterator[Fact]:
    """Yield what digits say; URLs, phones, dates and times were read before."""
    text = unread.text
    end = 0
    for match in NUMBER.finditer(text):
        if match.start() < end:  # a part of the code before it
            continue
        before = text[max(0, match.start() - LONGEST_BEFORE) : match.start()].rpartition(BLOT)[2]
        if code := _code_at(match, before):
            yield code
            end = match.end() + len(CODE_AFTER.match(text, match.end())[0])
            continue
        yield _quantity(match[0], _values(match[0]), before, text[match.end() : match.end() + LONGEST_BEFORE], match)


def word_facts(unread: Unread, is_source: bool) -> Iterator[Fact]:
    """Yield the numbers written as words; in an answer only those that count something, and no one."""
    as_written = WORD.findall(unread.text)
    words = [word.lower() for word in as_written]
    for place, word in enumerate(words):
        if word in NUMBER_WORDS:
            written, value, after = as_written[place], Decimal(NUMBER_WORDS[word]), as_written[place + 1 : place + 6]
            if place and words[place - 1] in ENGLISH_TENS and value < 10:
                value, written = value + ENGLISH_TENS[words[place - 1]], f"{as_written[place - 1]}-{written}"
            if after[:3] == HALF:
                value, after = value + Decimal("0.5"), after[3:]
            fact = _quantity(written, [_canonical(value)], "", f" {' '.join(after)}", None)
            counts = fact.kind in ("price", "percentage", "measure")
            if (counts and (is_source or value > 1)) or (is_source and not counts):
                yield fact
        elif is_source and word in ARTICLES and words[place + 1 : place + 2] and words[place + 1] in UNITS:
            yield Fact("measure", word, keys(f"{UNITS[words[place + 1]]} 1"), ())
    if is_source:
        yield from _named_units(unread.text, words)


def _named_units(text: str, words: list[str]) -> Iterator[Fact]:
    """Yield what a source says its numbers are in: the head of a table may do so for all of them."""
    currencies = {CURRENCIES[word] for word in CURRENCIES.keys() & set(words)}
    currencies |= {currency for sign, currency in CURRENCY_SIGNS.items() if sign in text}
    for currency in currencies:
        yield Fact("price", currency, keys(f"named {currency}"), ())
    if "%" in text or not PERCENT.isdisjoint(words):
        yield Fact("percentage", "%", keys("named percent"), ())


def _code_at(match: re.Match, before: str) -> Fact | None:
    """Return the code that these digits are a part of, such as HB-2041 or A4; None when they are a number."""
    if not before or not (before[-1].isalpha() or before[-1] in "-_#"):
        return None
    head = CODE_BEFORE.search(before)
    if not head or head[0].lower().strip("-_#$") in CURRENCIES or head[0].lower() == "v":
        return None
    if before[-1] in "-_#" and not head[0].rstrip("-_#"):
        return None
    tail = CODE_AFTER.match(match.string, match.end())[0].rstrip(".-_")
    written = f"{head[0]}{match[0]}{tail}"
    name = BUT_ALNUM.sub("", written).lower()
    gives, needs = {f"code {name}"}, [keys(f"code {name}")]
    for value in _values(match[0]):
        gives.add(f"number {value}")
        if len(match[0]) >= LEAST_TELLING_DIGITS or len(BUT_LETTERS.sub("", head[0])) >= LEAST_NAME_LETTERS:
            needs.append(keys(f"number {value}"))
    return Fact("code", written, frozenset(gives), tuple(needs))


def _quantity(written: str, values: list[str], before: str, after: str, match: re.Match | None) -> Fact:
    """Return the fact of a number: a price, a percentage, a measure, or nothing but the number."""
    following = AFTER.match(after)
    word, second = ((following[place] or "").lower() for place in (1, 2)) if following else ("", "")
    text = f"{written}{following[0][: following.end(1)]}" if following else written
    needed = values
    if word in SCALES:
        needed = [_canonical(Decimal(value) * SCALES[word]) for value in values if _is_plain(value)]
        values, word = [*values, *needed], second
        text = f"{written}{following[0]}" if second in CURRENCIES else text
    gives = {f"number {value}" for value in values}
    gives |= {f"number {'.'.join(value.split()[1].split('.')[:2])}" for value in values if not _is_plain(value)}
    ahead = _currency_ahead(before, word)
    if ahead or word in CURRENCIES:
        currency = CURRENCIES[_folded(ahead)] if ahead else CURRENCIES[word]
        text = f"{ahead}{written}" if ahead else text
        return _measured(Fact("price", text, frozenset(gives), ()), f"price {currency}", needed, f"named {currency}")
    if word in PERCENT or (word in ("per", "pour", "por") and second in PERCENT_AFTER):
        return _measured(Fact("percentage", text, frozenset(gives), ()), "percent", needed, "named percent")
    if word in UNITS:
        return _measured(Fact("measure", text, frozenset(gives), ()), UNITS[word], needed)
    gives |= {f"bare {value}" for value in values}
    if not word or ALONE.match(after):
        gives |= {f"alone {value}" for value in values}
    needs = [keys(f"number {value}") for value in needed]
    for value in needed:
        if len(value) >= LEAST_PHONE_DIGITS and value.isdecimal():
            gives |= {f"home {value}"}
            needs += [keys(f"home {value}"), keys(f"end {value}")]
    if match and (short := SHORT_GERMAN.match(match.string, match.start())) and (date := short_date(short)):
        gives |= date
        needs.append(frozenset(key for key in date if key.startswith("day")))
    return Fact("number", written, frozenset(gives), tuple(needs))


def _currency_ahead(before: str, word_after: str) -> str:
    """Return the currency that stands before a number, unless the one after it is nearer."""
    ahead = BEFORE.search(before[-LONGEST_CURRENCY:])
    if not ahead or _folded(ahead[0]) not in CURRENCIES or (word_after in CURRENCIES and ahead[0].endswith(" ")):
        return ""
    return ahead[0]


def _folded(currency: str) -> str:
    return currency.lower().rstrip(". ")


def _measured(fact: Fact, unit: str, values: list[str], named: str = "") -> Fact:
    """Return the fact as one of a unit; where a source names the unit elsewhere, as tables do, the number will do."""
    gives = fact.gives | {f"{unit} {value}" for value in values} | ({named} if named else frozenset())
    needs = [keys(f"{unit} {value}") for value in values]
    needs += [keys(f"alone {value}", named) if named else keys(f"bare {value}") for value in values]
    if unit == "hour":
        needs += [keys(f"time {value}:0") for value in values]
    return Fact(fact.kind, fact.text.strip(), frozenset(gives), tuple(needs))


def _values(written: str) -> list[str]:
    """Return the number's values in plain form; several where it can be read in several ways."""
    if written.isdecimal():
        return [written.lstrip("0") or "0"]
    text = written.replace(" ", "").replace("'", "")
    marks = [sign for sign in text if sign in ".,"]
    parts = re.split("[.,]", text)
    are_groups = all(len(part) == GROUP for part in parts[1:]) and len(parts[0]) <= GROUP and not text.startswith("0")
    if not marks or (are_groups and len(set(marks)) == 1):
        return [_canonical(Decimal("".join(parts)))]
    if len(marks) == 1 or (len(set(marks)) == 2 and marks.count(marks[-1]) == 1):
        return [_canonical(Decimal(f"{''.join(parts[:-1])}.{parts[-1]}"))]
    if "." not in marks:
        return [_canonical(Decimal(part)) for part in parts]  # an enumeration without blanks
    return [f"version {text}"]


def _is_plain(value: str) -> bool:
    return not value.startswith("version")


def _canonical(number: Decimal) -> str:
    plain = f"{number:f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain
