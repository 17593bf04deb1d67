"""Lays the texts, the questions and their vectors into a folder, where the engines' processes read them."""

import json
from collections import Counter
from pathlib import Path

import numpy as np

from tests.benchmarks.synthetic import make_question_vectors, make_questions, make_texts, make_vectors

INSERTED = UPDATED = 100  # texts beyond the collection: those that are inserted, and those that take others' place
BM25_K1, BM25_B = 1.2, 0.75


class Collection:
    """So many texts with vectors of so many dimensions, and questions about them."""

    def __init__(self, folder: Path, texts: int, dimensions: int, questions: int):
        self.folder, self.texts, self.dimensions, self.questions = folder, texts, dimensions, questions

    def write(self) -> None:
        spare = INSERTED + UPDATED
        written = [f"{each.title}\n{each.text}" for each in make_texts(self.texts + spare)]
        self._dump("texts.json", written)
        self._dump("questions.json", make_questions(self.questions, self.texts))
        vectors = make_vectors(self.texts + spare, self.dimensions)
        asked = make_question_vectors(self.questions, self.dimensions, self.texts)
        np.save(self.folder / "vectors.npy", vectors)
        np.save(self.folder / "questions.npy", asked)

    def nearest(self, count: int) -> list[list[int]]:
        """Return the texts nearest to each question, so many."""
        vectors = np.load(self.folder / "vectors.npy", mmap_mode="r")[: self.texts]
        asked = np.load(self.folder / "questions.npy")
        return [np.argsort(-(vectors @ each), kind="stable")[:count].tolist() for each in asked]

    def best_by_words(self, count: int) -> list[list[int]]:
        """Return the texts that BM25 ranks first for each question, so many: words as they stand, none left out."""
        texts = [text.split() for text in json.loads((self.folder / "texts.json").read_text())[: self.texts]]
        questions = [set(text.split()) for text in json.loads((self.folder / "questions.json").read_text())]
        lengths = np.array([len(words) for words in texts])
        counts = _counts(texts, set().union(*questions))
        lengthened = BM25_K1 * (1 - BM25_B + BM25_B * lengths / lengths.mean())
        points = {}
        for word, (rows, frequencies) in counts.items():
            weight = np.log(1 + (len(texts) - len(rows) + 0.5) / (len(rows) + 0.5))
            points[word] = rows, weight * frequencies * (BM25_K1 + 1) / (frequencies + lengthened[rows])
        return [_best(points, words, len(texts), count) for words in questions]

    def _dump(self, name: str, what: list[str]) -> None:
        (self.folder / name).write_text(json.dumps(what))


def _counts(texts: list[list[str]], words: set[str]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return of each of these words the texts that have it, and how often they do."""
    found = {}
    for number, text in enumerate(texts):
        for word, frequency in Counter(filter(words.__contains__, text)).items():
            rows, frequencies = found.setdefault(word, ([], []))
            rows.append(number)
            frequencies.append(frequency)
    return {word: tuple(map(np.array, lists)) for word, lists in found.items()}


def _best(points: dict[str, tuple[np.ndarray, np.ndarray]], words: set[str], texts: int, count: int) -> list[int]:
    scores = np.zeros(texts)
    for word in words & points.keys():
        rows, own = points[word]
        scores[rows] += own
    best = np.argsort(-scores, kind="stable")[:count]
    return best[scores[best] > 0].tolist()
