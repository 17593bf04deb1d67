"""Reads dates and times of day, whichever language, order and punctuation they are written in.

A date that can be read two ways (12/07/2026) is both, as a source and in an answer.
"""

import re
from collections.abc import Iterator

from chat.facts.fact import Fact, Keys, Unread, keys
from chat.facts.words import MONTHS

_WORD = r"[^\W\d_]{3,12}"
_OF = r"(?:\s*(?:of|de|del|d'|di|do)\s+|[.,]?\s{0,2})"
_ORDINAL = r"(?:\.|st|nd|rd|th|er|°|[oa](?= ))?"  # º and ª are letters by now
YEAR_FIRST = re.compile(r"([0-9](?<![\d.]\d)\d{3})([-/.])(\d{1,2})\2(\d{1,2})(?!\d)")
YEAR_LAST = re.compile(r"([0-9](?<![\d./-]\d)\d?)([./-])(\d{1,2})\2(\d{4}|\d{2})(?![\d/-]|\.\d)")
CJK = re.compile(r"(?:([0-9]{4})年)?([0-9]{1,2})月([0-9]{1,2})日")
DAY_AND_MONTH = re.compile(
    rf"([0-9](?<![\d.,/:]\d)\d?){_ORDINAL}(?:\s?(?:-|to|bis|au|al|until|and|und|et|y|e)\s?(\d{{1,2}}){_ORDINAL})?"
    rf"{_OF}({_WORD})\b(?:{_OF}(\d{{4}})(?!\d))?"
)
MONTH_AND_DAY = re.compile(
    rf"\b({_WORD})\.?\s(\d{{1,2}})(?:st|nd|rd|th)?(?:\s?(?:-|to)\s?(\d{{1,2}})(?:st|nd|rd|th)?)?(?![\d:.]\d|\d|%)"
    r"(?:,?\s(\d{4})(?!\d))?"
)
MONTH_AND_YEAR = re.compile(rf"\b({_WORD}){_OF}((?:19|20)\d\d)(?!\d)")
WORD_BEFORE = re.compile(r"([^\W\d_]{3,12})\.? $")
SHORT_GERMAN = re.compile(r"(?<![\d.,])(\d{1,2})\.(\d{1,2})\.(?!\d)")
CLOCK = re.compile(
    r"([0-9](?<![\d:.]\d)\d?)(?::|\s?h\s?|(?:\.(?=\d\d\s?(?:uhr|[ap]\.?m\b|-\s?\d{1,2}[.:]\d\d(?!\d)))))(\d\d)(?![\d:]|\.\d)"
    r"(?:\s?(uhr\b|h\b|([ap])\.?m\b\.?))?",
    re.IGNORECASE,
)
FULL_HOUR = re.compile(r"([0-9](?<![\d:.,]\d)\d?)\s?(?:uhr\b|o'clock\b|([ap])\.?m\b\.?)", re.IGNORECASE)
LONGEST_MONTH = 14
FIRST_AFTERNOON_HOURS = 6  # "9:00 to 5:00" ends in the afternoon


def date_facts(unread: Unread) -> Iterator[Fact]:
    """Yield the dates, and blot them out."""
    for match in unread.take(YEAR_FIRST):
        yield from _dated(unread, match, [[(match[1], match[3], match[4])]])
    for match in unread.take(YEAR_LAST):
        year = match[4] if len(match[4]) == 4 else f"20{match[4]}"
        orders = [(year, match[3], match[1])]
        if match[2] != ".":
            orders.append((year, match[1], match[3]))
        yield from _dated(unread, match, [orders])
    for match in unread.take(CJK) if "月" in unread.text else ():
        yield from _dated(unread, match, [[(match[1], match[2], match[3])]])
    for match in unread.take(DAY_AND_MONTH):
        if month := _month_of(match[3]):
            is_other_month = bool(match[2]) and _follows_month(unread.text, match.start())  # "May 1 and 14 July"
            days = (match[2],) if is_other_month else (match[1], match[2])
            start = match.start(2) if is_other_month else match.start()
            yield from _dated(unread, match, [[(match[4], month, day)] for day in days if day], start)
    for match in unread.take(MONTH_AND_DAY):
        if month := _month_of(match[1]):
            yield from _dated(unread, match, [[(match[4], month, day)] for day in (match[2], match[3]) if day])
    for match in unread.take(MONTH_AND_YEAR):
        if month := _month_of(match[1]):
            text = unread.blot(*match.span())
            needs = (keys(f"month {match[2]}-{month}"),)
            yield Fact("date", text, keys(f"month {match[2]}-{month}", f"number {match[2]}"), needs)


def short_date(match: re.Match) -> Keys:
    """Return what "7.12." gives as a date; it may be a number at a sentence's end as well."""
    day, month = int(match[1]), int(match[2])
    return keys(f"day {month}-{day}", f"yearless {month}-{day}") if _is_date(month, day) else keys()


def _month_of(word: str) -> int:
    """Return the month of this name, or 0; the verb "may" is none."""
    return 0 if word == "may" else MONTHS.get(word.lower(), 0)


def _follows_month(text: str, place: int) -> bool:
    before = WORD_BEFORE.search(text, max(0, place - LONGEST_MONTH), place)
    return bool(before and _month_of(before[1]))


def _dated(unread: Unread, match: re.Match, dates: list[list[tuple]], start: int | None = None) -> Iterator[Fact]:
    """Yield one fact for each list of ways (year, month, day) that a date can be read, if it is one in any of them."""
    start = match.start() if start is None else start
    text = unread.text[start : match.end()]
    found = [fact for ways in dates if (fact := _date_of(text, ways))]
    if found:
        unread.blot(start, match.end())
        yield from found


def _date_of(text: str, ways: list[tuple]) -> Fact | None:
    gives: set[str] = set()
    needs: list[Keys] = []
    for year, month, day in ((int(year or 0), int(month), int(day)) for year, month, day in ways):
        if not _is_date(month, day):
            continue
        gives |= {f"day {month}-{day}", f"ordinal {day}"}
        if year:
            gives |= {f"date {year}-{month}-{day}", f"month {year}-{month}", f"number {year}"}
            needs += [keys(f"date {year}-{month}-{day}"), keys(f"yearless {month}-{day}", f"number {year}")]
        else:
            gives.add(f"yearless {month}-{day}")
            needs.append(keys(f"day {month}-{day}"))
    return Fact("date", text.strip(), frozenset(gives), tuple(needs)) if needs else None


def _is_date(month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= 31


def time_facts(unread: Unread) -> Iterator[Fact]:
    """Yield the times of day, and blot them out."""
    for match in unread.take(CLOCK):
        hour, minute = int(match[1]), int(match[2])
        if hour <= 24 and minute < 60:
            yield _time_of(unread.blot(*match.span()), hour, minute, match[4] or "")
    for match in unread.take(FULL_HOUR):
        if int(match[1]) <= 24:
            yield _time_of(unread.blot(*match.span()), int(match[1]), 0, match[2] or "")


def _time_of(text: str, said_hour: int, minute: int, half: str) -> Fact:
    hour = said_hour % 12 + 12 * (half.lower() == "p") if half else said_hour % 24
    time = f"time {hour}:{minute}"
    gives, needs = {time}, [keys(time)]
    if not half and hour <= FIRST_AFTERNOON_HOURS:
        gives.add(f"time {hour + 12}:{minute}")
    if minute == 0:
        gives.add(f"number {said_hour}")
        needs += [keys(f"alone {said_hour}"), keys(f"alone {hour}"), keys(f"hour {hour}")]
    return Fact("time", text.rstrip("."), frozenset(gives), tuple(needs))
