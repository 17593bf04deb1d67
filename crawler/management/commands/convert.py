"""Shows what an import would store of a page: the Markdown of its own content. Needs no database and no network."""

import base64
import binascii
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from crawler.markup.convert import plain_words, to_markdown
from crawler.markup.select import Content, select_content
from crawler.web.decode import TEXT_KINDS, decode_text, sniff_kind
from tenants.texts import json_line, printable

CONTENT_TYPE = "text/html"


class NotAPage(Exception):
    """The bytes, or the line that should hold them, are no web page."""


class Command(BaseCommand):
    help = "Print the Markdown that an import would store of an HTML file, or of many pages with --batch."
    requires_system_checks = []

    def add_arguments(self, parser):
        parser.add_argument("file", metavar="FILE", nargs="?", help="The page's HTML, in whatever encoding it came.")
        parser.add_argument("--url", default="", help="The page's address, against which its links are resolved.")
        parser.add_argument("--no-images", action="store_true", help="Leave images out.")
        parser.add_argument("--json", action="store_true", help="Print one JSON document, with title and warnings.")
        parser.add_argument(
            "--batch",
            action="store_true",
            help="Read JSON lines {id, url, html_base64} on standard input, write JSON lines {id, markdown, text}.",
        )

    def handle(self, *, file, url, no_images, batch, json, **options):
        if bool(file) == batch:
            raise CommandError("Give either one FILE, or --batch and the pages on standard input.")
        if batch:
            self._convert_lines(sys.stdin.buffer, not no_images)
        else:
            self.stdout.write(_convert_file(Path(file), url, not no_images, json))

    def _convert_lines(self, lines: Iterable[bytes], images: bool) -> None:
        for answer in convert_lines(lines, images):
            self.stdout.write(json_line(answer))
            self.stdout.flush()


def convert_lines(lines: Iterable[bytes], images: bool) -> Iterator[dict]:
    """Yield for each line {id, url, html_base64} its {id, markdown, text}, or {id, error} and go on."""
    for line in lines:
        if not line.strip():
            continue
        number = None
        try:
            asked = _read_line(line)
            number = _id_of(asked)
            markdown = to_markdown(_read_page(_bytes_of(asked), str(asked.get("url") or "")), images)
            yield {"id": number, "markdown": markdown, "text": plain_words(markdown)}
        except NotAPage as error:
            yield {"id": number, "error": str(error)}
        except Exception as error:
            # Thousands of pages may wait behind this one: whatever is wrong with it is told, and the next has its turn.
            yield {"id": number, "error": f"{type(error).__name__}: {error}"}


def _convert_file(path: Path, url: str, images: bool, as_json: bool) -> str:
    try:
        content = _read_page(path.read_bytes(), url)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from error
    except NotAPage as error:
        raise CommandError(f"{path}: {error}") from error
    markdown = to_markdown(content, images)
    if not as_json:
        return printable(markdown)
    document = {
        "url": url,
        "title": content.title,
        "markdown": markdown,
        "text": plain_words(markdown),
        "selected_by": content.selected_by,
        "warnings": list(content.warnings),
    }
    return json_line(document)


def _read_line(line: bytes) -> dict:
    try:
        asked = json.loads(line)
    except ValueError as error:
        raise NotAPage(f"not a line of JSON: {error}") from error
    if not isinstance(asked, dict):
        raise NotAPage("not a JSON object with id, url and html_base64")
    return asked


def _id_of(asked: dict) -> str | int | None:
    number = asked.get("id")
    if not isinstance(number, str | int | None):
        raise NotAPage("id is neither a text nor a whole number")
    return number


def _bytes_of(asked: dict) -> bytes:
    try:
        return base64.b64decode(asked["html_base64"], validate=True)
    except KeyError as error:
        raise NotAPage("html_base64 is missing") from error
    except (TypeError, ValueError, binascii.Error) as error:
        raise NotAPage(f"html_base64 cannot be decoded: {error}") from error


def _read_page(body: bytes, url: str) -> Content:
    kind = sniff_kind(body, CONTENT_TYPE)
    if body.strip() and kind not in TEXT_KINDS:
        raise NotAPage(f"not html: {kind}")
    return select_content(decode_text(body, CONTENT_TYPE), url)
