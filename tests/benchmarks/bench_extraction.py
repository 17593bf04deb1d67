"""Selects and converts annotated pages, and prints how much of what must be there is, and of what must not.

python -m tests.benchmarks.bench_extraction [wcxb] [trafilatura]
"""

import sys
from pathlib import Path

from crawler.markup.convert import plain_words, to_markdown
from crawler.markup.select import select_content
from crawler.web.decode import decode_text

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "extraction"
SETS = ("wcxb", "trafilatura")


def words_of_page(html: bytes, url: str) -> str:
    """Return the words that an import of the page would store."""
    content = select_content(decode_text(html, "text/html"), url)
    return plain_words(to_markdown(content))


def measure(*sets: str) -> dict[tuple[str, str], dict[str, float]]:
    """Return the scores of each set by (set, kind of page), as its authors count them; they are printed too."""
    sys.path.insert(0, str(FOLDER))
    from score import report

    return report(words_of_page, "sitewise", sets or SETS)


if __name__ == "__main__":
    measure(*sys.argv[1:])
