"""Converts the pages of three peers' own test suites and counts what renders as their authors want it.

    python -m tests.benchmarks.bench_convert [suite to show the misses of]

Both sides are rendered by the same reader and compared as HTML, because the texts differ by dialect. What a suite's own
options change cannot all be matched: each suite has cases that contradict another's. Then the time of whole pages,
beside three other libraries where they are installed (requirements-bench.txt); they convert only, ours also selects.
"""

import gzip
import importlib
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from bs4 import BeautifulSoup
from markdown_it import MarkdownIt

from crawler.markup.convert import landmark_markdown, to_markdown
from crawler.markup.select import select_content
from crawler.web.decode import decode_text

SUITES = ("turndown", "turndown-plugin-gfm", "markdownify", "league-html-to-markdown")
FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "converter"
PAGES = FOLDER.parent / "extraction" / "wcxb" / "html"
# Why ours is otherwise: rule -> suite -> names of cases.
RULES = json.loads((Path(__file__).parent / "conversion_rules.json").read_text())
EVERY = 10  # of the annotated pages is timed
RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def rendered(markdown: str) -> str:
    """Return what a reader sees, as HTML without the blanks and the looseness of lists that no reader sees."""
    soup = BeautifulSoup(RENDERER.render(markdown), "lxml")
    for paragraph in soup.select("li > p"):
        paragraph.insert_after("\n")
        paragraph.unwrap()
    html = re.sub(r"\s+", " ", soup.body.decode_contents() if soup.body else "")
    return re.sub(
        r" ?(</?(?:p|h\d|li|ul|ol|blockquote|pre|table|thead|tbody|tr|t[dh]|hr|br)\b[^>]*>) ?", r"\1", html
    ).strip()


def misses(suite: str) -> tuple[list[tuple[str, str, str, str]], int]:
    """Return the cases (name, HTML, wanted, ours) that render otherwise than the suite wants, and how many it has."""
    cases = json.loads((FOLDER / f"{suite}.json").read_text())["cases"]
    missed = []
    for case in cases:
        ours = to_markdown(select_content(case["html"], ""))
        # GitHub strikes through between single tildes too; the reader we compare with wants two.
        wanted = re.sub(r"(?<![~\\])~(?!~)", "~~", case["md"]) if suite.endswith("gfm") else case["md"]
        if rendered(ours) != rendered(wanted):
            missed.append((case["name"], case["html"], case["md"], ours))
    return missed, len(cases)


def rules_of(suite: str, name: str) -> list[str]:
    """Return the rules of ours that make the suite's case of this name come out otherwise."""
    return [rule for rule, suites in RULES.items() if name in suites.get(suite, ())]


def names_ruled(suite: str) -> set[str]:
    """Return the names of the suite's cases that the rules speak of."""
    return {name for suites in RULES.values() for name in suites.get(suite, ())}


def convert_page(html: str) -> None:
    content = select_content(html, "https://example.com/")
    to_markdown(content)
    landmark_markdown(content)


def converters() -> dict[str, Callable[[str], object] | None]:
    """Return what converts a page, by name; None where the library is not installed."""
    found: dict[str, Callable[[str], object] | None] = {"sitewise": convert_page}
    for library, function in (("markdownify", "markdownify"), ("html2text", "html2text"), ("trafilatura", "extract")):
        try:
            found[library] = getattr(importlib.import_module(library), function)
        except ImportError:
            found[library] = None
    return found


def print_speed() -> None:
    """Print what a page takes each library on average, in turns on the same pages."""
    paths = sorted(PAGES.glob("*.html.gz"))[::EVERY]
    pages = [decode_text(gzip.decompress(path.read_bytes()), "text/html") for path in paths]
    functions = converters()
    seconds = dict.fromkeys(functions, 0.0)
    for html in pages:
        for name, convert in functions.items():
            if convert:
                start = time.process_time()
                convert(html)
                seconds[name] += time.process_time() - start
    for name, convert in functions.items():
        figure = (
            f"{1000 * seconds[name] / len(pages):7.1f} ms a page, {seconds[name] / seconds['sitewise']:5.2f} of ours"
        )
        print(f"{name:26} {figure if convert else 'is not installed'}")


def main() -> None:
    shown = sys.argv[1:]
    for suite in SUITES:
        missed, total = misses(suite)
        print(f"{suite:26} {total - len(missed):4} of {total} render as wanted")
        counts = Counter(rules_of(suite, name)[0] for name, *_ in missed)
        for rule, count in counts.most_common():
            print(f"  {count:3} otherwise: {rule}")
        for name, html, wanted, ours in missed if suite in shown else ():
            print(f"--- {name}\n{html}\n=== wanted\n{wanted}\n=== ours\n{ours}\n")
    print_speed()


if __name__ == "__main__":
    main()
