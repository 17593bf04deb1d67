"""Which page comes next: each address of the site once, in the order found, up to the limits of the import.

The rows of the import's pages are the frontier: a taken-up import goes on where it was. What belongs to the site is
site.py's question, how an address is written page_urls.py's.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import takewhile
from urllib.parse import urlsplit

from django.db.models import QuerySet

from crawler.models import URL_LENGTH, Import, Page
from crawler.web.page_urls import has_repeating_path
from crawler.web.path_patterns import NOT_INCLUDED, PathPatterns
from crawler.web.site import OUT_OF_SCOPE, ListRules, SiteRules
from crawler.web.traps import TRAPS, trap_in

State = Page.State

REPEATING_PATH = "repeating path"
TOO_DEEP = "too deep"
ALIKE_QUERIES = "like other queries"
NOT_ASKED = (REPEATING_PATH, TOO_DEEP, ALIKE_QUERIES, NOT_INCLUDED, *TRAPS)
WRITTEN_OTHERWISE = "written otherwise"
LISTED = "is_listed"  # in the report of a page that waits

BATCH = 500
UPCOMING = 20
MAX_DEPTH = 100
# Addresses an import may note for each page it may read: a site of endless links ends here.
ADDRESSES_PER_PAGE = 20
# When this many queries of one path in a row have led to texts known already, its other queries are not asked.
MAX_ALIKE_QUERIES = 20
READ_STATES = (State.READ, State.DONE, State.SAME)
# Addresses remembered as noted, so that a menu's are not written again for each page: some megabytes at most.
MAX_REMEMBERED = 20_000


class Frontier:
    """The pages of one import that are still to be read; iterating gives each and expects its state to change."""

    def __init__(self, job: Import, rules: SiteRules | ListRules):
        self._job, self._rules = job, rules
        # Where the start itself repeats a part of its path, that is how the site is made.
        self._refuses_repeats = not has_repeating_path(rules.start_url)
        self._patterns = PathPatterns(job.include_paths, job.exclude_paths)
        self._max_depth = MAX_DEPTH if job.max_depth is None else min(job.max_depth, MAX_DEPTH)
        self._noted: set[str] = set()
        self._address_count = job.pages.count()
        self._sure_visits = 0
        # Pages that were asked for and not stored yet: by key, their addresses.
        self.in_hand: dict[int, str] = {}
        self._stored_otherwise: set[int] = set()
        self._upcoming: deque[Page] = deque()

    @property
    def known_count(self) -> int:
        """How many addresses are noted, as far as is known at once."""
        return self._address_count

    def __iter__(self) -> Iterator[Page | None]:
        """Yield each page to read; None where one in hand must be stored first, as it may lead to more."""
        while (page := self._next()) or self.in_hand:
            yield page

    def add(self, urls: Iterable[str], depth: int, is_listed: bool = False) -> None:
        """Note the addresses that belong to the site and are new; `is_listed` as in `pages_of`."""
        self.store(self.pages_of(urls, depth, is_listed))

    def pages_of(self, urls: Iterable[str], depth: int, is_listed: bool = False) -> list[Page]:
        """Return a page, not saved, for each address that belongs to the site.

        Those not to be asked are skipped, with the reason. `is_listed` says that the owner lists them, in a sitemap:
        what looks like a trap in a link is meant there.
        """
        addresses = dict.fromkeys(map(self._rules.address_of, urls))
        fresh = (address for address in addresses if address and address not in self._noted)
        return [page for address in fresh if (page := self._page(address, depth, is_listed))]

    def store(self, pages: list[Page]) -> None:
        """Save those of the pages whose address is new."""
        if not pages:
            return
        self._remember(page.url for page in pages)
        room = self._job.max_pages * ADDRESSES_PER_PAGE - self._address_count
        if len(pages) > room:
            self._job.add_note(
                f"More than {self._job.max_pages * ADDRESSES_PER_PAGE:,} addresses were found; the rest was left out."
            )
        Page.objects.bulk_create(pages[: max(room, 0)], batch_size=BATCH, ignore_conflicts=True)
        self._address_count = self._job.pages.count()

    def add_known(self, urls: Iterable[str]) -> None:
        """Note the addresses that an earlier import stored; one that is written otherwise today leads to that form."""
        addresses = {url: self._rules.address_of(url) for url in urls}
        rewritten = [
            Page(job=self._job, url=url, final_url=address, state=State.SAME, reason=WRITTEN_OTHERWISE)
            for url, address in addresses.items()
            if address not in (None, url) and self._rules.refusal(address) != OUT_OF_SCOPE
        ]
        Page.objects.bulk_create(rewritten, batch_size=BATCH, ignore_conflicts=True)
        self._sure_visits = 0
        self.add(addresses, depth=1, is_listed=True)

    def second_tries(self) -> Iterator[Page | None]:
        """Yield the pages that failed in a way that may pass, and expects that they do not fail so again."""
        failed = self._job.pages.filter(state=State.FAILED, report__is_retryable=True).order_by("id")
        while not self._is_full() and (page := failed.first()):
            yield page
            while self.in_hand:
                yield None

    def note_stored(self, page: Page) -> None:
        """Note that another page has led to this one, so that it need not be read by its own address."""
        self._stored_otherwise.add(page.pk)

    def was_stored(self, page: Page) -> bool:
        """Return whether another page has led to this one since this import was taken up."""
        return page.pk in self._stored_otherwise

    def refusal_by_patterns(self, address: str) -> str | None:
        """Return why the owner's patterns keep the address out of the import, or None if they do not."""
        parts = urlsplit(address)
        return self._patterns.refusal(f"{parts.path}?{parts.query}" if parts.query else parts.path)

    def is_read(self, url: str) -> bool:
        """Return whether this import has had the page of this address already."""
        return self._job.pages.filter(url=self._rules.address_of(url), state__in=READ_STATES).exists()

    @property
    def read_count(self) -> int:
        """How many addresses have answered with a page."""
        return self._job.pages.filter(state__in=READ_STATES).count()

    @property
    def progress(self) -> dict[str, int]:
        """The import's counts: addresses that are settled, and all that will be as far as is known."""
        settled = self._job.pages.exclude(state=State.FOUND).count()
        will_be_read = min(self.left.count(), max(self._job.max_pages - self.read_count, 0))
        return {"done_count": settled, "total_count": settled + will_be_read}

    @property
    def left(self) -> QuerySet[Page]:
        """The pages that wait to be read."""
        return self._job.pages.filter(state=State.FOUND).order_by("id")

    def _page(self, address: str, depth: int, is_listed: bool) -> Page | None:
        refusal = self._rules.refusal(address)
        if refusal == OUT_OF_SCOPE:
            self._remember([address])
            return None
        if len(address) > URL_LENGTH:
            self._job.add_note(f"Addresses of more than {URL_LENGTH:,} characters were left out.")
            return None
        is_start = address == self._rules.address_of(self._rules.start_url)
        refusal = refusal or (None if is_start else self.refusal_by_patterns(address))
        reason = refusal or self._trap(address, depth, is_listed) or ""
        return Page(
            job=self._job,
            url=address,
            depth=depth,
            state=State.SKIPPED if reason else State.FOUND,
            reason=reason,
            report={LISTED: True} if is_listed else {},
        )

    def _trap(self, address: str, depth: int, is_listed: bool) -> str | None:
        if self._refuses_repeats and not is_listed and has_repeating_path(address):
            return REPEATING_PATH
        if depth > self._max_depth:
            return TOO_DEEP
        return None if is_listed else trap_in(address)

    def _next(self) -> Page | None:
        if self._is_full():
            return None
        while page := self._first_left():
            alike = self._alike_count(page)
            if alike + self._alike_in_hand(page) < MAX_ALIKE_QUERIES or self._is_meant(page):
                return self._upcoming.popleft()
            if alike < MAX_ALIKE_QUERIES:
                return None
            self._upcoming.popleft()
            Page.objects.filter(pk=page.pk).update(state=State.SKIPPED, reason=ALIKE_QUERIES)
        return None

    def _first_left(self) -> Page | None:
        """Return the first page that waits and is not in hand. Some are looked up at once: that takes a step's time."""
        while self._upcoming and self.was_stored(self._upcoming[0]):
            self._upcoming.popleft()
        if not self._upcoming:
            self._upcoming.extend(self.left.exclude(pk__in=self.in_hand)[:UPCOMING])
        return self._upcoming[0] if self._upcoming else None

    def _remember(self, addresses: Iterable[str]) -> None:
        if len(self._noted) > MAX_REMEMBERED:
            self._noted.clear()
        self._noted.update(addresses)

    def _is_full(self) -> bool:
        """Return whether the limit of pages is reached.

        A visit reads at most two, the page and where it redirects to: until half of the room is used none are counted.
        """
        if self._sure_visits == 0:
            room = self._job.max_pages - self.read_count - 2 * len(self.in_hand)
            self._sure_visits = (max(room, 0) + 1) // 2
        if self._sure_visits == 0:
            return True
        self._sure_visits -= 1
        return False

    def _alike_count(self, page: Page) -> int:
        """Return how many other queries of its path have told nothing new since the last that did."""
        path, mark, _ = page.url.partition("?")
        if not mark:
            return 0
        # "@" is the character after "?": the range holds all queries of the path, and the index serves it.
        queries = self._job.pages.filter(url__gte=f"{path}?", url__lt=f"{path}@", state__in=READ_STATES)
        newest = queries.exclude(reason=WRITTEN_OTHERWISE).order_by("-id").values_list("state", flat=True)
        return sum(1 for _ in takewhile(lambda state: state == State.SAME, newest[:MAX_ALIKE_QUERIES]))

    def _is_meant(self, page: Page) -> bool:
        """Return whether the owner lists the page or the model has learnt from it: then it is asked in any case."""
        return LISTED in page.report or self._job.model.snippets.filter(uri=page.url).exists()

    def _alike_in_hand(self, page: Page) -> int:
        """Return how many queries of its path are in hand, which may tell nothing new either."""
        path, mark, _ = page.url.partition("?")
        return sum(url.startswith(f"{path}?") for url in self.in_hand.values()) if mark else 0
