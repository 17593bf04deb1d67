"""Lays the texts, the questions and their vectors into a folder, where the engines' processes read them."""

import json
from pathlib import Path

import numpy as np

from tests.benchmarks.synthetic import make_question_vectors, make_questions, make_texts, make_vectors

INSERTED = UPDATED = 100  # texts beyond the collection: those that are inserted, and those that take others' place


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

    def _dump(self, name: str, what: list[str]) -> None:
        (self.folder / name).write_text(json.dumps(what))
