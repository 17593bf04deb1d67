"""Counts what the verbatim guard flags in answers of known right and wrong facts, and how long it takes.

    python -m tests.benchmarks.bench_guard

60 answers in seven languages stand on twelve texts; in guard_answers.jsonl ⟦right⟧ and ⟪wrong⟫ facts are marked. A
wrong fact is one that its text does not hold in any place; one that is true of something else there cannot be seen.
"""

import json
import os
import re
import statistics
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from chat.guard import forget_sources, unsupported  # noqa: E402

HERE = Path(__file__).parent
MARKED = re.compile("⟦([^⟧]+)⟧|⟪([^⟫]+)⟫")
LARGE_CONTEXT_CHARACTERS = 8_000  # of 2,000 tokens
LARGE_ANSWER_CHARACTERS = 2_000


@dataclass(frozen=True)
class Judged:
    """An answer with what is right and wrong in it; and what the guard flagged of each."""

    text: str
    source: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]


def answers() -> list[Judged]:
    sources = json.loads((HERE / "guard_sources.json").read_text())
    rows = [json.loads(line) for line in (HERE / "guard_answers.jsonl").read_text().splitlines()]
    return [judged(row["answer"], sources[row["source"]]) for row in rows]


def judged(marked: str, source: str) -> Judged:
    right, wrong = (tuple(filter(None, found)) for found in zip(*MARKED.findall(marked), strict=True))
    return Judged(MARKED.sub(lambda match: match[1] or match[2], marked), source, right, wrong)


def is_flagged(fact: str, flagged: set[str]) -> bool:
    """Return whether the guard flags the fact: read by itself, it has the text of a flag."""
    return any(text in fact or fact in text for text in flagged)


def measure() -> tuple[Counter, list[str]]:
    """Return how many right and wrong facts there are and were flagged, and the guard's mistakes."""
    counts, mistakes = Counter(), []
    for answer in answers():
        flagged = {flag.text for flag in unsupported(answer.text, [answer.source])}
        for kind, facts in (("right", answer.right), ("wrong", answer.wrong)):
            for fact in facts:
                is_found = is_flagged(fact, {flag.text for flag in unsupported(fact, [answer.source])} & flagged)
                counts[kind] += 1
                counts[f"{kind} flagged"] += is_found
                if is_found == (kind == "right"):
                    mistakes.append(f"{kind}: {fact} | {sorted(flagged)}")
    return counts, mistakes


def milliseconds(answer: str, sources: list[str], is_first: bool = True) -> float:
    if is_first:
        forget_sources()
    began = time.thread_time()  # others may use the machine meanwhile
    unsupported(answer, sources)
    return (time.thread_time() - began) * 1_000


def main() -> None:
    counts, mistakes = measure()
    print(*mistakes, sep="\n")
    recall, alarms = counts["wrong flagged"] / counts["wrong"], counts["right flagged"] / counts["right"]
    print(
        f"{counts['wrong']} wrong facts, recall {recall:.3f}; {counts['right']} right ones, false alarms {alarms:.3f}"
    )
    times = [milliseconds(answer.text, [answer.source]) for answer in answers()]
    print(f"each answer with its source: median {statistics.median(times):.2f} ms, longest {max(times):.2f} ms")
    sources = [answer.source for answer in answers()[::5]]
    context = "\n\n".join(sources)[:LARGE_CONTEXT_CHARACTERS]
    long_answer = "\n\n".join(answer.text for answer in answers())[:LARGE_ANSWER_CHARACTERS]
    times = [milliseconds(long_answer, [context]) for _ in range(50)]
    print(f"2,000 tokens of context, an answer of 500: median {statistics.median(times):.2f} ms", end=", ")
    times = [milliseconds(long_answer, [context], is_first=False) for _ in range(50)]
    print(f"{statistics.median(times):.2f} ms once the context was read")


if __name__ == "__main__":
    main()
