"""What one page says, ready to be stored: of HTML as it was selected and converted."""

import re
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from urllib.parse import unquote, urlsplit

from crawler.loss import loss_at_reading
from crawler.markup.convert import landmark_markdown, to_markdown
from crawler.markup.select import select_content
from crawler.models import TITLE_LENGTH
from crawler.repeated import IMAGE, LINK_TARGET
from crawler.same_text import same_text
from crawler.shown_text import ShownText
from models_app.page_texts import ShownPage

# The pages of a site are much alike and read again once an import: more effort saves little disk.
COMPRESSION_LEVEL = 3
WORD = re.compile(r"[^\W_]\S*")


@dataclass(frozen=True)
class PageContent:
    """What a page says, as its row keeps it; `links` and `is_followed` say where a crawl goes on from it.

    `lack` tells, for people, why nothing of its own text was had.
    """

    title: str
    markdown: str
    url: str = ""
    kind: str = "html"
    source: bytes = b""
    landmarks: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    canonical: str = ""
    is_login_wall: bool = False
    needs_scripts: bool = False
    is_shell: bool = False
    is_followed: bool = True
    lack: str = ""
    shown: ShownPage | None = None
    report: dict = field(default_factory=dict)

    @cached_property
    def words(self) -> str:
        """What a reader sees of it, in one line; parsing it as Markdown would take as long as converting it did."""
        shown = LINK_TARGET.sub("]", IMAGE.sub("", self.markdown))
        return " ".join(shown.split()) if WORD.search(shown) else ""

    @cached_property
    def word_count(self) -> int:
        return len(WORD.findall(self.words))

    @cached_property
    def content_hash(self) -> str:
        """What is equal for two pages that say the same; empty for a page without words.

        A title that was taken from the address, for want of another, does not count.
        """
        path = " ".join(unquote(urlsplit(self.url).path).split())
        title = self.title if self.kind == "html" and self.title not in (path, self.url) else ""
        return hash_of_words(f"{title} {same_text(self.markdown, self.url, self.canonical)}" if self.words else "")

    def made_ahead(self) -> "PageContent":
        """Return the content with all made that takes time: a transaction that stores it is short."""
        _ = self.word_count, self.content_hash
        return self


def read_html(html: str, url: str, robots_header: str, with_images: bool) -> PageContent:
    """Return what the HTML of the page at the URL says: as it came, or what scripts have made of it."""
    content = select_content(html, url)
    markdown = to_markdown(content, with_images)
    landmarks = landmark_markdown(content, with_images)
    shown = ShownText(content)
    said_to_robots = {word.strip() for word in robots_header.lower().replace(":", ",").split(",")}
    is_nofollow = content.is_nofollow or not said_to_robots.isdisjoint({"nofollow", "none"})
    return PageContent(
        title=content.title[:TITLE_LENGTH],
        markdown=markdown,
        url=url,
        source=zlib.compress(html.encode("utf-8", "replace"), COMPRESSION_LEVEL),
        landmarks=landmarks,
        links=() if is_nofollow else content.links,
        canonical=content.canonical or "",
        is_login_wall=content.is_login_wall,
        needs_scripts=content.needs_scripts,
        is_shell=content.is_shell,
        is_followed=not is_nofollow,
        shown=shown.page(),
        report={
            "selected_by": content.selected_by,
            "warnings": list(content.warnings),
            "language": content.language,
            # Said to search engines: an owner who imports their own site wants these pages too.
            "is_noindex": content.is_noindex or not said_to_robots.isdisjoint({"noindex", "none"}),
            "is_nofollow": is_nofollow,
            "needs_scripts": content.needs_scripts,
            "loss": loss_at_reading(shown, markdown, landmarks),
        },
    ).made_ahead()


def hash_of_words(words: str) -> str:
    """Return what is equal for two pages that show the same words; empty for a page without any."""
    return sha256(words.encode()).hexdigest() if words else ""


def source_html(source: bytes) -> str:
    """Return the HTML of a page as it was read and stored."""
    return zlib.decompress(source).decode()
