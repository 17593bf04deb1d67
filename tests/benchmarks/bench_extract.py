"""Asks narrow questions and counts how often the answer stands in what the extractive answer quotes.

    python -m tests.benchmarks.bench_extract

The 20 articles of squad-articles, six paragraphs a snippet; the right snippet is put first, second or third among those
of its article, so that retrieval has no part in the figures. To compare: the first 900 characters of the first snippet.
"""

import csv
import gzip
import json
import os
import random
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from chat.context import Context, PackedHit  # noqa: E402
from chat.extract import QUOTE_CHARACTERS, extract_answer  # noqa: E402
from models_app.retrieval import RetrievedSnippet  # noqa: E402

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "retrieval" / "squad-articles"
PARAGRAPHS_A_SNIPPET = 6
QUESTIONS = 400
HITS = 3


def load() -> tuple[dict[str, list[str]], list[tuple[str, str, str, int]]]:
    """Return each article's snippets, and questions with their answer, article and the place of the right snippet."""
    articles, place = defaultdict(list), {}
    with gzip.open(FOLDER / "corpus.jsonl.gz", "rt") as lines:
        for paragraph in map(json.loads, lines):
            paragraphs = articles[paragraph["title"]]
            place[paragraph["id"]] = paragraph["title"], len(paragraphs) // PARAGRAPHS_A_SNIPPET
            paragraphs.append(paragraph["text"])
    with (FOLDER / "qrels.tsv").open() as lines:
        right = {row["qid"]: row["docid"] for row in csv.DictReader(lines, delimiter="\t")}
    with gzip.open(FOLDER / "queries.jsonl.gz", "rt") as lines:
        questions = [(asked["text"], asked["answer"], *place[right[asked["id"]]]) for asked in map(json.loads, lines)]
    return {title: snippets_of(paragraphs) for title, paragraphs in articles.items()}, questions


def snippets_of(paragraphs: list[str]) -> list[str]:
    starts = range(0, len(paragraphs), PARAGRAPHS_A_SNIPPET)
    return ["\n\n".join(paragraphs[start : start + PARAGRAPHS_A_SNIPPET]) for start in starts]


def context(question: str, title: str, texts: list[str]) -> Context:
    scores = {"keyword_rank": None, "bm25": None, "semantic_rank": None, "cosine": None, "distance": None}
    packed = [
        PackedHit(RetrievedSnippet(rank, rank, title, text, "", token_count=0, fused_score=None, **scores), True, 0, "")
        for rank, text in enumerate(texts, start=1)
    ]
    return Context("", tuple(packed), 0, 0, "hybrid", question)


def measure(right_rank: int, articles: dict[str, list[str]], questions: list[tuple[str, str, str, int]]) -> None:
    quoted = first = characters = quotes = 0
    for question, answer, title, position in questions:
        others = [text for number, text in enumerate(articles[title]) if number != position]
        texts = others[: HITS - 1]
        texts.insert(right_rank - 1, articles[title][position])
        parts = extract_answer(context(question, title, texts))
        text = "\n".join(part.text for part in parts)
        quoted += answer in text
        first += answer in texts[0][:QUOTE_CHARACTERS]
        characters, quotes = characters + len(text), quotes + len(parts)
    n = len(questions)
    print(f"{right_rank:>10}{quoted / n:>9.3f}{first / n:>12.3f}{characters // n:>12}{quotes / n:>8.2f}")


def main() -> None:
    articles, questions = load()
    sample = random.Random(1).sample(questions, QUESTIONS)
    print("right rank   quoted   beginning  characters  quotes")
    for right_rank in range(1, HITS + 1):
        measure(right_rank, articles, sample)


if __name__ == "__main__":
    main()
