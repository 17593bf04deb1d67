"""Keeps what a site says around its pages, once for the site: its own snippets, and what they say no more.

What several pages say, or one in but a few words, stands under the address where the site starts; what else a single
one says stands under that page's.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from urllib.parse import urlsplit

from crawler.markup.markdown import plain_words
from crawler.models import Import, Page
from crawler.page_pool import PagePool, result_of
from crawler.page_split import PageToSplit, sections_of
from crawler.repeated import NOTHING_REPEATED, RepeatedBlocks, survey_pages, words_of
from crawler.site_blocks import SiteBlock, blocks_kept, join_blocks, lines_kept, pieces_kept, site_blocks
from crawler.site_pages import Site, bare, page_texts
from crawler.titles import bare_site_name, find_site_name, without_site_name
from models_app.jobs import Lease
from models_app.models import TrainingSnippet
from models_app.sections import Section
from models_app.snippets import Replaced, replace_page_snippets, retire_pages
from models_app.standing import known_hashes
from tenants.store import tenant_atomic

Source = TrainingSnippet.Source

BATCH = 500
SHOWN_CHARACTERS = 60
# Of what one page alone says around its text, for a snippet of its own: a label such as "Your message" lies near any
# short question, and then comes before what answers it.
FEWEST_WORDS = 8
MOST_SHOWN = 3
MOST_REMOVED = 1_000  # blocks whose words are remembered until it is known that the site says them nowhere
SOURCE_LINE = "\n\nSource: "
COUNTED = ("added", "changed", "removed", "conflicts")


@dataclass(frozen=True)
class KnownSite:
    """What the pages of a site are split with: what it repeats around them, and the name at the end of its titles."""

    repeated: RepeatedBlocks = NOTHING_REPEATED
    name: str = ""


class SiteChanges:
    """What an import does to the sites' own snippets, counted on its row, so that a taken-up import tells all of it."""

    def __init__(self, job: Import):
        self._job = job
        self._before = Counter(job.changes.get("site_snippets") or {})
        self._now: Counter[str] = Counter()

    def note(self, replaced: Replaced) -> None:
        """Count what was replaced, in the transaction that does it."""
        self._now.update(asdict(replaced))
        if any(getattr(replaced, name) for name in COUNTED):
            self.save()

    def save(self) -> None:
        """Note the counts on the import."""
        total = {name: self._before[name] + self._now[name] for name in COUNTED}
        # What was written before the import was taken up is met again as kept.
        total["kept"] = max(self._now["kept"] - self._before["added"] - self._before["changed"], 0)
        self._job.note_progress(changes={**self._job.changes, "site_snippets": total})


class SiteSnippets:
    """The own snippets of one site, on their way to say what its pages say around their text now."""

    def __init__(self, job: Import, lease: Lease, site: Site, changes: SiteChanges, pool: PagePool):
        self.job, self.lease, self.site, self.changes, self.pool = job, lease, site, changes, pool
        self.model = job.model
        self.site_name = find_site_name(self._titles())
        self._kept: set[str] = set()  # addresses
        self._removed: dict[bytes, str] = {}

    def keep(self) -> KnownSite:
        """Replace the site's snippets by what it says around its pages now; returns what is known of the site."""
        survey = survey_pages(page_texts(self.site, self.lease))
        elsewhere = self._kept_elsewhere()
        held = blocks_kept(elsewhere)
        shared: list[SiteBlock] = []
        own_count = 0
        # Where nothing repeats, the others have nothing to keep.
        pages = page_texts(self.site, self.lease, are_all=bool(survey.repeated.keys))
        blocks = site_blocks(pages, survey, held, pieces_kept(elsewhere))
        for url, found in groupby(blocks, attrgetter("url")):
            own = []
            for block in found:
                (shared if self._is_shared(block) else own).append(block)
            if self.site.start_url and sum(len(words_of(block.markdown).split()) for block in own) < FEWEST_WORDS:
                shared += own
            elif own:
                self._replace(url, own)
                own_count += len(own)
        if self.site.start_url:
            self._replace(self.site.start_url, shared)
        self._retire()
        self._tell(shared, own_count)
        return KnownSite(RepeatedBlocks(survey.repeated.keys | held), self.site_name)

    def _is_shared(self, block: SiteBlock) -> bool:
        start = self.site.start_url
        return bool(start) and (block.page_count > 1 or block.url == start)

    def _replace(self, url: str, blocks: list[SiteBlock]) -> None:
        """Make the site's snippets under the address those of the blocks."""
        sections = self._sections(join_blocks(blocks), url)
        with tenant_atomic():
            self.lease.check()
            before = self._completions(url)
            self.changes.note(replace_page_snippets(self.model, url, sections, Source.SITE))
            self._note_removed(before, self._completions(url))
        self._kept.add(url)

    def _sections(self, markdown: str, url: str) -> list[Section]:
        citation = f"{SOURCE_LINE}{url}" if self.job.insert_source_url else ""
        known = known_hashes(self.model, url, Source.SITE)
        threshold = self.model.split_threshold
        asked = PageToSplit(markdown, self._title(url), threshold, citation, known=known)
        return result_of(self.pool.submit(sections_of, asked), sections_of, asked).sections

    def _title(self, url: str) -> str:
        own = Page.objects.filter(pk=self.site.pages.get(url)).values_list("title", flat=True).first() or ""
        is_start = url == self.site.start_url
        name = (is_start and bare_site_name(self.site_name)) or without_site_name(own, self.site_name)
        return f"{name}: header, menu and footer of the {'site' if is_start else 'page'}".lstrip(": ")

    def _retire(self) -> None:
        """Remove what stands under addresses that the site says nothing under any more."""
        stored = self.model.snippets.filter(source=Source.SITE).order_by("uri").values_list("uri", flat=True).distinct()
        former = self._former_addresses()
        for uri in list(stored):
            if uri in self._kept or not (uri in self.site.pages or uri in self.site.gone or bare(uri) in former):
                continue
            with tenant_atomic():
                self.lease.check()
                before = self._completions(uri)
                self.changes.note(Replaced(removed=retire_pages(self.model, [uri], Source.SITE)))
                self._note_removed(before, self._completions(uri))

    def _former_addresses(self) -> set[str]:
        """Return, bare, where the site's own snippets stood when it started elsewhere.

        That is before it moved to TLS, to or from www, or to another start page; and under the address of all that was
        to be imported, which may be no page.
        """
        starts = self.model.imports.values_list("scope", "start_url") if self.site.start_url else ()
        own = bare(self.site.scope)
        return {bare(uri) for scope, start in starts if bare(scope) == own for uri in (scope, start)}

    def _kept_elsewhere(self) -> list[str]:
        """Return, for single pages, what the model holds of their host under other addresses than theirs."""
        if self.site.start_url:
            return []
        rows = self.model.snippets.filter(source=Source.SITE).values_list("uri", "completion")
        own = self.site.pages.keys() | self.site.gone
        return [text for uri, text in rows if uri not in own and urlsplit(f"//{bare(uri)}").netloc == self.site.name]

    def _titles(self) -> Iterator[str]:
        keys = list(self.site.pages.values())
        for start in range(0, len(keys), BATCH):
            titles = dict(Page.objects.filter(pk__in=keys[start : start + BATCH]).values_list("pk", "title"))
            yield from (titles[key] for key in keys[start : start + BATCH] if key in titles)

    def _completions(self, url: str) -> list[str]:
        return list(self.model.snippets.filter(uri=url, source=Source.SITE).values_list("completion", flat=True))

    def _note_removed(self, before: list[str], after: list[str]) -> None:
        """Remember what the site's snippets under one address say no more: it may stand under another."""
        if before == after:
            return
        left = lines_kept(after)
        for key, line in lines_kept(_uncited(before)).items():
            if key not in left and len(self._removed) < MOST_REMOVED:
                self._removed[key] = line

    def _tell(self, shared: list[SiteBlock], own_count: int) -> None:
        """Note in the import what is kept, and what the site's snippets say no more."""
        if shared and self.job.kind != Import.Kind.PAGES:
            self.job.add_note(_kept_note(shared))
        if own_count and self.site.start_url and self.job.kind != Import.Kind.PAGES:
            kept = (
                "1 block that only one page says" if own_count == 1 else f"{own_count:,} blocks that one page each says"
            )
            self.job.add_note(f"{kept} around its own text {'is' if own_count == 1 else 'are'} kept under its address.")
        if not self._removed:
            return
        standing = self.model.snippets.filter(source=Source.SITE).values_list("completion", flat=True)
        for text in standing.iterator():
            for key in lines_kept([text]):
                self._removed.pop(key, None)
        if self._removed:
            self.job.add_note(_removed_note(list(self._removed.values())))


def _uncited(texts: Iterable[str]) -> Iterator[str]:
    return (text.rpartition(SOURCE_LINE)[0] or text for text in texts)


def _kept_note(blocks: list[SiteBlock]) -> str:
    """Return a sentence that names those of the blocks that stand on most pages, and where."""
    told = [(_shown(block.markdown), block) for block in blocks]
    most = sorted(((words, block) for words, block in told if words), key=lambda shown: -shown[1].page_count)
    shown = "; ".join(f"“{words}” ({_places(block)})" for words, block in most[:MOST_SHOWN])
    kept = "1 block that stands" if len(blocks) == 1 else f"{len(blocks):,} blocks that stand"
    verb = "is" if len(blocks) == 1 else "are"
    return f"{kept} around the pages’ own text {verb} kept apart, once for the site: {shown or 'images'}."


def _removed_note(lines: list[str]) -> str:
    """Return a sentence that tells what the site's own snippets say no more."""
    shown = [words for line in lines if (words := _shown(line))]
    told = "; ".join(f"“{words}”" for words in shown[:MOST_SHOWN])
    more = f" and {len(shown) - MOST_SHOWN:,} more" if len(shown) > MOST_SHOWN else ""
    return f"The snippets of what the site says around its pages no longer hold: {told or 'an image'}{more}."


def _shown(markdown: str) -> str:
    return plain_words(markdown)[:SHOWN_CHARACTERS]


def _places(block: SiteBlock) -> str:
    return f"on {block.url}" if block.page_count == 1 else f"on {block.page_count:,} pages, first {block.url}"
