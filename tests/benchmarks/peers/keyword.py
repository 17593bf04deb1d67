"""Peers for the keyword leg, each as its own documentation has it used."""

import json
from pathlib import Path

import numpy as np

TOP = 10


class Bm25s:
    """bm25s with stop words and stemmer as in its README; a change is a new index."""

    leg = "keyword"
    modules = ("bm25s", "Stemmer")
    keeps = "in memory; a change is a new index"

    def __init__(self, folder: Path, dimensions: int):
        import bm25s
        import Stemmer

        self._bm25s, self._stemmer, self._folder, self._texts = bm25s, Stemmer.Stemmer("english"), folder, []

    def add(self, ids: list[int], texts: list[str], vectors: np.ndarray) -> None:
        self._texts += texts
        self._retriever = self._bm25s.BM25()
        self._retriever.index(self._tokens(self._texts), show_progress=False)
        self._retriever.save(self._folder)
        (self._folder / "texts.json").write_text(json.dumps(self._texts))

    def update(self, number: int, text: str, vector: np.ndarray) -> None:
        self._texts[number] = text
        self.add([], [], vector)

    def open(self) -> None:
        self._retriever = self._bm25s.BM25.load(self._folder)
        self._texts = json.loads((self._folder / "texts.json").read_text())

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        found, _ = self._retriever.retrieve(self._tokens([text]), k=TOP, show_progress=False)
        return found[0].tolist()

    def _tokens(self, texts: list[str]):
        return self._bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)


class Tantivy:
    """tantivy with its English stemmer, one thread writing; searched by terms joined with OR, as its parser does."""

    leg = "keyword"
    modules = ("tantivy",)
    keeps = "on disk, out of step with the rows"

    def __init__(self, folder: Path, dimensions: int):
        import tantivy

        self._tantivy = tantivy
        schema = tantivy.SchemaBuilder()
        schema.add_integer_field("id", stored=True, indexed=True)
        schema.add_text_field("text", tokenizer_name="en_stem")
        self._index, self._writer = tantivy.Index(schema.build(), path=str(folder)), None

    def add(self, ids: list[int], texts: list[str], vectors: np.ndarray) -> None:
        for number, text in zip(ids, texts, strict=True):
            self._writing().add_document(self._tantivy.Document(id=number, text=text))
        self._commit()

    def update(self, number: int, text: str, vector: np.ndarray) -> None:
        self._writing().delete_documents_by_term("id", number)
        self._writing().add_document(self._tantivy.Document(id=number, text=text))
        self._commit()

    def _writing(self):
        self._writer = self._writer or self._index.writer(num_threads=1)
        return self._writer

    def _commit(self) -> None:
        self._writing().commit()
        self._index.reload()

    def close(self) -> None:
        if self._writer:
            self._writer.wait_merging_threads()

    def open(self) -> None:
        self._index.reload()

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        searcher = self._index.searcher()
        query, _ = self._index.parse_query_lenient(text, ["text"])
        return [searcher.doc(address)["id"][0] for _, address in searcher.search(query, TOP).hits]


class Fts5:
    """SQLite's own full-text table with its stemmer and its bm25(), the rows beside it."""

    leg = "keyword"
    modules = ("sqlite3",)
    keeps = "on disk, in step with the rows"

    def __init__(self, folder: Path, dimensions: int):
        import sqlite3

        self._database = sqlite3.connect(folder / "fts5.sqlite3")
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")
        self._database.execute("CREATE VIRTUAL TABLE IF NOT EXISTS bench USING fts5(text, tokenize='porter')")

    def add(self, ids: list[int], texts: list[str], vectors: np.ndarray) -> None:
        with self._database:
            rows = zip([number + 1 for number in ids], texts, strict=True)
            self._database.executemany("INSERT INTO bench (rowid, text) VALUES (?, ?)", rows)

    def update(self, number: int, text: str, vector: np.ndarray) -> None:
        with self._database:
            self._database.execute("UPDATE bench SET text = ? WHERE rowid = ?", (text, number + 1))

    def open(self) -> None:
        """It is open."""

    def close(self) -> None:
        self._database.close()

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        words = " OR ".join(f'"{word}"' for word in text.split())
        found = "SELECT rowid FROM bench WHERE bench MATCH ? ORDER BY rank LIMIT ?"
        return [row[0] - 1 for row in self._database.execute(found, (words, TOP))]
