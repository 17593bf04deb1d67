"""What the readers of documents have in common: how much they read, and what they return or raise."""

import re
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from html import escape
from io import BytesIO

from bs4 import BeautifulSoup
from lxml import etree

MAX_PARTS = 10_000
MAX_UNPACKED_BYTES = 300_000_000
_WORDS = re.compile(r"\w+")
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_DTD_MARKS = (b"<!DOCTYPE", b"<!ENTITY")


class DocumentUnreadable(Exception):
    """The file gives no text; the message completes the sentence that begins with its name, as in `is encrypted`."""

    def __init__(self, message: str):
        super().__init__(message)
        self.message = message


class Extent(StrEnum):
    """How much of a file is asked for."""

    WHOLE = "whole"
    PREVIEW = "preview"

    def limit(self, whole: int, preview: int) -> int:
        return whole if self is Extent.WHOLE else preview


@dataclass(frozen=True)
class Reading:
    """What a document says, as HTML (or Markdown, where it is written so), before it is converted."""

    html: str = ""
    markdown: str = ""
    title: str = ""
    warnings: list[str] = field(default_factory=list)
    part_count: int = 0
    is_partial: bool = False


def open_package(body: bytes) -> zipfile.ZipFile:
    """Return an Office file's parts, once it is clear that they unpack to a bounded size and define no entities.

    Python's zipfile unpacks no more of a part than its declared size. Errors: DocumentUnreadable.
    """
    try:
        package = zipfile.ZipFile(BytesIO(body))
        parts = package.infolist()
        if len(parts) > MAX_PARTS or sum(part.file_size for part in parts) > MAX_UNPACKED_BYTES:
            raise DocumentUnreadable(f"unpacks to more than {MAX_UNPACKED_BYTES // 1_000_000} MB, which is too large")
        if any(part.flag_bits & 1 for part in parts):
            raise DocumentUnreadable("is password protected. Save it without a password")
        for part in parts:
            if part.filename.endswith((".xml", ".rels")):
                with package.open(part) as opened:
                    start = opened.read(2_000)
                if any(mark in start for mark in _DTD_MARKS):
                    raise DocumentUnreadable("holds definitions that no Office program writes")
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, OSError, zlib.error) as error:
        raise DocumentUnreadable("is damaged") from error
    return package


def parsed(package: zipfile.ZipFile, name: str) -> etree._Element:
    """Return the root of one of the package's parts, whatever is wrong with its markup."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True, recover=True)
    root = etree.fromstring(package.read(name), parser)
    if root is None:
        raise DocumentUnreadable("is damaged")
    return root


def title_of(package: zipfile.ZipFile) -> str:
    """Return the title in the package's properties, or ""."""
    if "docProps/core.xml" not in package.namelist():
        return ""
    return " ".join((parsed(package, "docProps/core.xml").findtext(f".//{_TITLE}") or "").split())


def left_out_html(package: zipfile.ZipFile, parts: re.Pattern, namespace: str, html: str) -> str:
    """Return the paragraphs of the parts that have a word which the HTML has not: what the library did not read.

    Text stands in elements `t` of any namespace (of words and of formulas), paragraphs are `p` of the one given.
    """
    shown = set(_WORDS.findall(BeautifulSoup(html, "lxml").get_text(" ").casefold()))
    found: dict[str, None] = {}
    for name in sorted(filter(parts.match, package.namelist())):
        for paragraph in parsed(package, name).iter(f"{{{namespace}}}p"):
            texts = [each.text or "" for each in paragraph.iter("{*}t")]
            text = " ".join("".join(texts).split())
            words = set(_WORDS.findall(text.casefold()))
            # A number alone is a page's.
            if not words <= shown and not text.isdigit():
                found[text] = None
                shown |= words
    return "".join(f"<p>{escape(text)}</p>" for text in found)


def table_html(rows: Sequence[Sequence[str]], has_head: bool = True) -> str:
    """Return rows of texts as a table, the first row as its head if it has one."""
    lines = []
    for number, row in enumerate(rows):
        name = "td" if number or not has_head else "th"
        lines.append("".join(f"<{name}>{escape(cell).replace(chr(10), '<br>')}</{name}>" for cell in row))
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
