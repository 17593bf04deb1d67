"""Judges by its address alone whether a link leads into a trap: pages without end that tell nothing new, or an action.

Only links are judged so; what an owner lists in a sitemap or types is meant. What a reader misses by it stands in the
import's report, page by page.
"""

import re
from datetime import date
from urllib.parse import SplitResult, unquote_plus, urlsplit

ACTION = "an action, no page"
OTHER_VIEW = "another view of a page"
COMBINED_FILTERS = "combined filters"
FAR_DATE = "a date far away"
TRAPS = (ACTION, OTHER_VIEW, COMBINED_FILTERS, FAR_DATE)

ACTION_NAME = re.compile(r"(add|remove)[-_](to[-_])?(cart|basket|wish-?list|compare|item)", re.I)
ACTION_CHOICE = re.compile(r"action|do|task", re.I)
ACTION_VALUE = re.compile(r"(edit|delete|remove|login|log-?out|sign-?out|register|submit|vote|report|raw)", re.I)
LEAVING_SEGMENT = re.compile(r"(log|sign)[-_]?(out|off)(\.\w+)?", re.I)

# How a list is sorted, cut and shown: its first page, in the site's own order, tells the same.
VIEW_NAME = re.compile(
    r"sort(ed)?([-_]?(by|order|dir|direction|key|field))?|order[-_]?(by|dir)|(page|items|results)?[-_]?per[-_]?page"
    r"|page[-_]?size|replytocom|print(able)?",
    re.I,
)
DIRECTION_NAME, DIRECTION_VALUE = re.compile(r"order|dir|direction", re.I), re.compile(r"(asc|desc)(ending)?", re.I)
LOOK_NAME = re.compile(r"view|display|layout|mode|style", re.I)
LOOK_VALUE = re.compile(r"grid|list|gallery|tiles?|table|compact|print", re.I)
# Apache's lists of files, by name, date, size and description, up and down.
FILE_LIST_ORDER = re.compile(r"C=[NMSD];O=[AD]")
# One filter is often a category of its own; with two of them the number of pages multiplies.
FILTER_NAME = re.compile(r"(filter|facet|refine|attribute|attr|f)([-_\[].*)?|pa_.*", re.I)
MAX_FILTERS = 1

# Archives go back as far as a site does; a calendar has a page for each month and day that ever was or will be.
MAX_YEARS_AHEAD = 2
MAX_CALENDAR_YEARS_BACK = 5
CALENDAR_WORD = re.compile(r"calend|kalender|\bevents?\b|agenda|\btermine\b|veranstaltung|\bschedule\b|evenement", re.I)
PATH_DATE = re.compile(r"(?<=/)([12]\d{3})[/-](?:0?[1-9]|1[0-2])(?=[/.-]|$)")
YEAR_NAME = re.compile(r"(?:\w*[-_])?(?:year|yr|jahr|annee|ano|anno)", re.I)
MONTH_NAME = re.compile(r"(?:\w*[-_])?(?:month|mon|monat|mois|mes|week|day|tag)", re.I)
YEAR_VALUE = re.compile(r"([12]\d{3})")
DATE_VALUES = (
    re.compile(r"([12]\d{3})[-/.]\d{1,2}(?:[-/.]\d{1,2})?(?:[T ].*)?"),
    re.compile(r"(?:\d{1,2}[-/.]){1,2}([12]\d{3})"),
)
DATE_NAME = re.compile(r".*(date|month|day|cal|datum|monat).*", re.I)
DIGITS_VALUE = re.compile(r"([12]\d{3})(?:0[1-9]|1[0-2])(?:[0-3]\d)?")


def trap_in(url: str) -> str | None:
    """Return what kind of trap the link's address looks like, one of TRAPS, or None for a page like any other."""
    parts = urlsplit(url)
    parameters = [
        (unquote_plus(name), unquote_plus(value))
        for name, _, value in (parameter.partition("=") for parameter in parts.query.split("&") if parameter)
    ]
    if _is_action(parts.path, parameters):
        return ACTION
    if FILE_LIST_ORDER.fullmatch(parts.query) or any(_is_view(name, value) for name, value in parameters):
        return OTHER_VIEW
    if sum(bool(FILTER_NAME.fullmatch(name)) for name, _ in parameters) > MAX_FILTERS:
        return COMBINED_FILTERS
    return FAR_DATE if _is_far_date(parts, parameters) else None


def _is_action(path: str, parameters: list[tuple[str, str]]) -> bool:
    """Return whether following the link would do something, such as filling a cart or leaving a session."""
    return bool(LEAVING_SEGMENT.fullmatch(path.rstrip("/").rpartition("/")[2])) or any(
        ACTION_NAME.fullmatch(name) or (ACTION_CHOICE.fullmatch(name) and ACTION_VALUE.fullmatch(value))
        for name, value in parameters
    )


def _is_view(name: str, value: str) -> bool:
    return bool(
        VIEW_NAME.fullmatch(name)
        or (DIRECTION_NAME.fullmatch(name) and DIRECTION_VALUE.fullmatch(value))
        or (LOOK_NAME.fullmatch(name) and LOOK_VALUE.fullmatch(value))
    )


def _is_far_date(parts: SplitResult, parameters: list[tuple[str, str]]) -> bool:
    years = [int(year) for year in PATH_DATE.findall(parts.path)]
    years += [year for name, value in parameters if (year := _year_in(name, value))]
    if not years:
        return False
    this_year = date.today().year
    if max(years) > this_year + MAX_YEARS_AHEAD:
        return True
    names = [name for name, _ in parameters]
    is_calendar = CALENDAR_WORD.search(f"{parts.path} {' '.join(names)}") or (
        any(map(YEAR_NAME.fullmatch, names)) and any(map(MONTH_NAME.fullmatch, names))
    )
    return bool(is_calendar) and min(years) < this_year - MAX_CALENDAR_YEARS_BACK


def _year_in(name: str, value: str) -> int | None:
    """Return the year of the date that a parameter names, if it does."""
    if YEAR_NAME.fullmatch(name):
        patterns = (YEAR_VALUE,)
    else:
        patterns = (*DATE_VALUES, DIGITS_VALUE) if DATE_NAME.fullmatch(name) else DATE_VALUES
    matches = (pattern.fullmatch(value) for pattern in patterns)
    return next((int(match[1]) for match in matches if match), None)
