"""What an import says of itself as a whole: its counts, why pages gave nothing, how long it still takes, what it cost.

And of the site it read: which pages carry its text, and which are empty, nearly empty, or say what others say.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from urllib.parse import urlencode

from django.db.models import Count, Q, QuerySet, Sum

from crawler.models import Import, Page
from crawler.outcome import row_count
from crawler.pages import NEEDS_SCRIPTS

State = Page.State

# A page of fewer words seldom answers anything: a gallery, a form, a redirect in words.
NEARLY_EMPTY_WORDS = 30
LARGEST_SHOWN = 10
EXAMPLES_SHOWN = 5
TROUBLES_SHOWN = 3  # of each reason
# A pace measured over less than this says nothing.
MIN_PACE_SECONDS = 6
MIN_PACE_STEPS = 3
PRICED_TOKENS = 1_000_000
# Reasons that say too little by themselves.
REASONS = {
    "timeout": "did not answer in time",
    "dns": "host name not found",
    "tls": "no secure connection",
    "connection": "no connection",
    "connection lost": "connection broke off",
    "out of scope": "outside the imported part",
    "disallowed by robots": "robots.txt forbids it",
    "no text": "no text on the page",
    "not converted": "markup could not be converted",
    "no vectors": "no vectors could be made",
    "repeating path": "path repeats itself, perhaps without end",
    "like other queries": "one of many queries that say the same",
    "login required": "asks to log in",
    "status 404": "not there (404)",
    "status 410": "gone (410)",
    "empty": "an empty page",
    NEEDS_SCRIPTS: "empty until scripts draw it",
}


@dataclass(frozen=True)
class Trouble:
    """Pages of one import that gave nothing, for one reason."""

    reason: str
    count: int
    examples: tuple[dict, ...] = ()  # pk, url, report__message

    @property
    def label(self) -> str:
        kind = self.reason.removeprefix("not html: ")
        return REASONS.get(self.reason, self.reason if kind == self.reason else f"no web page but {kind}")


@dataclass(frozen=True)
class TimeLeft:
    """How long the present phase still takes at the pace seen since somebody looks; unknown at first."""

    query: str  # what the page that polls sends back: since when it looks, and where the import was then
    seconds: float | None = None

    @classmethod
    def of(cls, job: Import, shown: Mapping[str, str], now: datetime) -> "TimeLeft":
        """Return the time left, against what was `shown` when the look at this phase began."""
        told = _told(shown)
        is_same = (shown.get("state"), shown.get("phase")) == (job.state, job.phase)
        since, done = told if told and is_same and told[1] <= job.done_count else (now.timestamp(), job.done_count)
        query = urlencode({"state": job.state, "phase": job.phase, "since": f"{since:.1f}", "done": done})
        seconds, steps = now.timestamp() - since, job.done_count - done
        if job.state != Import.State.RUNNING or seconds < MIN_PACE_SECONDS or steps < MIN_PACE_STEPS:
            return cls(query)
        return cls(query, max(job.total_count - job.done_count, 0) * seconds / steps)

    @property
    def words(self) -> str:
        """The time as people say what they estimate, or "" while it is unknown."""
        if self.seconds is None:
            return ""
        minutes = round(self.seconds / 60)
        if self.seconds < 60:
            return f"{max(5, round(self.seconds / 5) * 5)} s"
        return f"{minutes} min" if minutes < 90 else f"{round(minutes / 60)} h"


def _told(shown: Mapping[str, str]) -> tuple[float, int] | None:
    try:
        return float(shown["since"]), int(shown["done"])
    except (KeyError, ValueError):
        return None


@dataclass(frozen=True)
class Money:
    """What an import's LLM calls cost at the model's prices, and what unchanged pages saved."""

    spent: Decimal
    saved: Decimal


def money_of(job: Import) -> Money | None:
    """Return what the import cost, where the model's prices are set."""
    prices = job.model.input_price, job.model.output_price
    if not job.usage or None in prices:
        return None

    def cost(prefix: str) -> Decimal:
        tokens = (job.usage.get(f"{prefix}{kind}_tokens", 0) for kind in ("input", "output"))
        return sum((Decimal(count) * price for count, price in zip(tokens, prices, strict=True)), Decimal()) / (
            PRICED_TOKENS
        )

    return Money(cost(""), cost("saved_"))


def counts_of(job: Import) -> dict:
    """Return how many pages are in each state, how many were found and read, and how many rows of files came in."""
    counts = dict.fromkeys(State.values, 0) | job.pages_by_state()
    waiting = job.uploads.exclude(name__in=job.pages.values("url")).count() if job.is_open else 0
    return {
        "counts": counts,
        "found_count": sum(counts.values()) + waiting,
        "read_count": counts[State.READ] + counts[State.DONE] + counts[State.SAME],
        "row_count": row_count(job),
    }


def troubles_of(job: Import) -> tuple[list[Trouble], list[Trouble]]:
    """Return why pages were skipped and why they failed, the commonest first; with examples once it has ended."""
    rows = job.pages.filter(state__in=(State.SKIPPED, State.FAILED)).order_by().values_list("state", "reason")
    counted = rows.annotate(count=Count("pk")).order_by("-count", "reason")
    found = {State.SKIPPED: [], State.FAILED: []}
    for state, reason, count in counted:
        alike = job.pages.filter(state=state, reason=reason).values("pk", "url", "report__message").order_by("pk")
        found[state].append(Trouble(reason, count, () if job.is_open else tuple(alike[:TROUBLES_SHOWN])))
    return found[State.SKIPPED], found[State.FAILED]


@dataclass(frozen=True)
class SiteOverview:
    """Which pages carry a site's text, and which want a look."""

    word_count: int
    page_count: int
    largest: list[dict]  # pk, url, title, word_count, snippet_count
    shells: QuerySet
    nearly_empty: QuerySet
    same: QuerySet

    @property
    def other_count(self) -> int:
        return self.page_count - len(self.largest)

    @property
    def other_words(self) -> int:
        return self.word_count - sum(page["word_count"] for page in self.largest)

    @property
    def most_words(self) -> int:
        """The longest bar's words: those of one page, or of all the smaller ones together."""
        return max([self.other_words, *(page["word_count"] for page in self.largest)], default=0)


def site_overview(job: Import) -> SiteOverview:
    """Return the overview of what the import has read."""
    pages = job.pages.defer("markdown", "landmarks", "source", "plan")
    own = pages.filter(state__in=(State.READ, State.DONE))
    total = own.aggregate(words=Sum("word_count"), pages=Count("pk"))
    names = "pk", "url", "title", "word_count", "snippet_count"
    return SiteOverview(
        word_count=total["words"] or 0,
        page_count=total["pages"],
        largest=list(own.filter(word_count__gt=0).order_by("-word_count", "pk").values(*names)[:LARGEST_SHOWN]),
        shells=shells_of(pages),
        nearly_empty=nearly_empty_of(pages),
        same=pages.filter(state=State.SAME),
    )


def shells_of(pages: QuerySet) -> QuerySet:
    """Narrow to pages whose text only scripts would bring, and which were not drawn."""
    is_not_drawn = Q(report__rendered=False) | Q(report__rendered__isnull=True)
    return pages.filter(Q(reason=NEEDS_SCRIPTS) | Q(report__needs_scripts=True) & is_not_drawn)


def nearly_empty_of(pages: QuerySet) -> QuerySet:
    """Narrow to imported pages with hardly any text; of imports before words were counted, to none."""
    return pages.filter(state__in=(State.READ, State.DONE), word_count__range=(1, NEARLY_EMPTY_WORDS - 1))
