"""Reads files that are no web pages: PDF, Office, text. Their parsers run in a process of their own, with limits.

A file may be broken or made to do harm: whatever it does to a parser ends in DocumentUnreadable, not in a dead worker.
How each format is read stands in pdf.py, word.py, slides.py and sheets.py; the process itself is child.py.
"""

import json
import logging
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath

from crawler.documents.reading import DocumentUnreadable
from crawler.web.decode import DOCUMENT_KINDS, sniff_kind

__all__ = [
    "Document",
    "DocumentUnreadable",
    "ReadingTooSlow",
    "kind_of",
    "read_document",
]

logger = logging.getLogger(__name__)

PROJECT = Path(__file__).resolve().parent.parent.parent

_ENVIRONMENT = {"PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}
READ_SECONDS = 120
PREVIEW_SECONDS = 10

# Of text only the name says how it is meant: a Markdown file and a list of sentences look alike.
_TEXT_ENDINGS = {
    "csv": "csv",
    "htm": "html",
    "html": "html",
    "json": "json",
    "jsonl": "jsonl",
    "markdown": "markdown",
    "md": "markdown",
    "ndjson": "jsonl",
    "tsv": "csv",
    "xhtml": "html",
    "yaml": "yaml",
    "yml": "yaml",
}
_ENCRYPTED_OFFICE = "EncryptedPackage".encode("utf-16-le")
READABLE = "PDF, Word (.docx), PowerPoint (.pptx), Excel (.xlsx), HTML, Markdown, text, CSV, JSON, JSON lines and YAML"


class ReadingTooSlow(DocumentUnreadable):
    """The file was not read within its time; with more of it, it may be."""


@dataclass(frozen=True)
class Document:
    """A file's text as Markdown. `part_count` is its pages, slides or sheets (0: it has none of these)."""

    title: str
    markdown: str
    warnings: tuple[str, ...] = ()
    part_count: int = 0
    is_partial: bool = False  # only its beginning was asked for, and there is more


def kind_of(body: bytes, name: str = "") -> str:
    """Return what a file is by its bytes, and only among kinds of text by its name.

    Errors: DocumentUnreadable for an empty file, and for a kind that is not read.
    """
    if not body.strip(b"\0 \t\r\n\f\xef\xbb\xbf"):
        raise DocumentUnreadable("is empty")
    kind = sniff_kind(body)
    # PDF readers look for the mark in the first 1,024 bytes (PDF 1.7, implementation note 13).
    if kind == "pdf" or b"%PDF-" in body[:1024]:
        return "pdf"
    if kind in DOCUMENT_KINDS:
        return kind
    if kind == "zip":
        raise DocumentUnreadable(_what_is_zipped(body))
    if kind == "office":
        if _ENCRYPTED_OFFICE in body:
            raise DocumentUnreadable("is password protected. Save it without a password")
        raise DocumentUnreadable("has the format of Office before 2007. Save it as .docx, .pptx or .xlsx, or as PDF")
    if kind not in ("html", "markdown", "text", "xml"):
        raise DocumentUnreadable(f"is of a kind that is not read ({kind}). Read are {READABLE}")
    ending = PurePosixPath(name.lower()).suffix.lstrip(".")
    meant = _TEXT_ENDINGS.get(ending, "text")
    return "html" if kind == "html" and meant == "text" else meant


def read_document(body: bytes, kind: str, name: str, is_preview: bool = False) -> Document:
    """Return the document's title and its text as Markdown; of a preview only the beginning of a long one.

    Errors: DocumentUnreadable for what has no text, is encrypted, or breaks the limits of size, time and memory.
    """
    answer = _answer_of_reader(body, kind, name, is_preview)
    answer["warnings"] = tuple(answer["warnings"])
    document = Document(**answer)
    if not document.markdown.strip():
        raise DocumentUnreadable("has no text")
    return document


def _what_is_zipped(body: bytes) -> str:
    """Return why a zip file that is no document of Office is not read."""
    try:
        with zipfile.ZipFile(BytesIO(body)) as package:
            names = set(package.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError, OSError):
        return "is damaged: its end is missing, or it is no file of this kind"
    if {"mimetype", "content.xml"} <= names:
        return "is an OpenDocument file. Save it as .docx, .pptx, .xlsx or PDF"
    return "is an archive. Unpack it, and upload the files that are in it"


def _answer_of_reader(body: bytes, kind: str, name: str, is_preview: bool) -> dict:
    """Return what the reader's process says of the file. It gets the file and no word of this process' settings."""
    extent = "preview" if is_preview else "whole"
    seconds = PREVIEW_SECONDS if is_preview else READ_SECONDS
    try:
        ended = subprocess.run(  # noqa: S603 - the kind is one of ours, the name is in hexadecimal
            [sys.executable, "-m", "crawler.documents.child", kind, extent, name.encode("utf-8", "replace").hex()],
            input=body,
            capture_output=True,
            timeout=seconds,
            cwd=PROJECT,
            env=_ENVIRONMENT,
            check=False,
        )
        answer = json.loads(ended.stdout) if ended.returncode == 0 else {}
    except subprocess.TimeoutExpired as error:
        raise ReadingTooSlow("takes too long to read. Split it, or save it anew as a simpler file") from error
    except ValueError:
        answer = {}
    if ended.stderr:
        logger.warning("%s could not be read: %s", name, ended.stderr.decode("utf-8", "replace")[-2_000:])
    if not answer:
        raise DocumentUnreadable("is damaged, or needs more memory than a file may take")
    if "unreadable" in answer:
        raise DocumentUnreadable(answer["unreadable"])
    return answer
