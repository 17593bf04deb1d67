"""The process that reads one file: `python -m crawler.documents.child KIND EXTENT NAME`, the file on standard input.

It limits itself before it looks at the file, knows neither settings nor database, and answers one JSON document.
"""

import json
import resource
import sys
import traceback
from collections.abc import Callable
from html import escape
from importlib import import_module
from pathlib import PurePosixPath

from crawler.documents.reading import DocumentUnreadable, Extent, Reading

MAX_MEMORY_BYTES = 1_000_000_000  # of address space, of which code takes a fifth
MAX_CPU_SECONDS = 100
MAX_CHARACTERS = 10_000_000

# Each is loaded when it is needed: what one of them pulls in is large.
READERS = {
    "pdf": "crawler.documents.pdf:read_pdf",
    "docx": "crawler.documents.word:read_docx",
    "pptx": "crawler.documents.slides:read_pptx",
    "xlsx": "crawler.documents.sheets:read_xlsx",
}


def main() -> None:
    """Read the file and print what it says, or why it cannot be read."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kind, extent, name = sys.argv[1], Extent(sys.argv[2]), bytes.fromhex(sys.argv[3]).decode()
    try:
        answer = read(sys.stdin.buffer.read(), kind, extent, name)
    except DocumentUnreadable as error:
        answer = {"unreadable": error.message}
    except MemoryError:
        answer = {"unreadable": "needs more memory than a file may take. Split it into several"}
    except Exception:  # of whatever kind a library meets in a broken file
        traceback.print_exc()
        answer = {"unreadable": "is damaged, or not what it says it is"}
    json.dump(answer, sys.stdout)


def read(body: bytes, kind: str, extent: Extent, name: str) -> dict:
    """Return what there is to say of the file, with the names of the fields of Document."""
    return _answer(_reader(kind)(body, extent) if kind in READERS else _read_text(body, kind), name)


def _reader(kind: str) -> Callable:
    module, _, function = READERS[kind].partition(":")
    return getattr(import_module(module), function)


def _read_text(body: bytes, kind: str) -> Reading:
    from crawler.web.decode import decode_text

    text = decode_text(body, kind="html" if kind == "html" else "text")
    if kind == "html":
        return Reading(html=text)
    if kind == "markdown":
        return Reading(markdown=text)
    paragraphs = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n\n").split("\n\n")
    return Reading(html="".join(f"<p>{'<br>'.join(map(escape, each.split(chr(10))))}</p>" for each in paragraphs))


def _answer(reading: Reading, name: str) -> dict:
    """Return what a document says, in the Markdown that pages are turned into too."""
    markdown, title = reading.markdown, reading.title
    if not markdown:
        markdown, html_title = _converted(reading.html, name)
        title = title or html_title
    warnings = list(reading.warnings)
    if len(markdown) > MAX_CHARACTERS:
        markdown = markdown[:MAX_CHARACTERS].rpartition("\n")[0]
        warnings.append(f"It is very long: only its first {MAX_CHARACTERS:,} characters were read.")
    return {
        "title": title or _first_heading(markdown) or PurePosixPath(name).stem.replace("_", " "),
        "markdown": markdown,
        "warnings": warnings,
        "part_count": reading.part_count,
        "is_partial": reading.is_partial,
    }


def _converted(html: str, name: str) -> tuple[str, str]:
    from crawler.markup.convert import landmark_markdown, to_markdown
    from crawler.markup.select import select_content

    content = select_content(html, "")
    markdown = to_markdown(content, images=False)
    # A file stands alone: what a site says around its pages is said here or nowhere.
    around = landmark_markdown(content, images=False)
    has_title = "<title" in html[:100_000].lower()
    return "\n\n".join(filter(None, [markdown, *around])), content.title if has_title else ""


def _first_heading(markdown: str) -> str:
    headings = (line.lstrip("#").strip() for line in markdown.split("\n", 400)[:400] if line.startswith("#"))
    return next(filter(None, headings), "")


if __name__ == "__main__":
    main()
