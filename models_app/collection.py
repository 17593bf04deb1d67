"""Reads a collection of judged questions from a folder: documents, questions, and which document answers which.

The files are those of BEIR: corpus.jsonl.gz, queries.jsonl(.gz) and qrels.tsv. What is wrong is named with its line.
"""

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tenants.texts import storable

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels.tsv"
SHAPES = {CORPUS: '{"id": "...", "title": "...", "text": "..."}', QUERIES: '{"id": "...", "text": "..."}'}


class CollectionRefused(ValueError):
    """The folder holds no collection that can be asked."""


@dataclass(frozen=True)
class Document:
    """A text to be found, with its title (may be empty)."""

    id: str
    title: str
    text: str


@dataclass(frozen=True)
class Question:
    """A question, and the relevance of each document that answers it: at least one, each over 0."""

    id: str
    text: str
    judged: dict[str, int]


@dataclass(frozen=True)
class Collection:
    """Documents, and the questions on them that have an answer among them."""

    documents: tuple[Document, ...]
    questions: tuple[Question, ...]


def read_collection(folder: Path) -> Collection:
    """Return the collection of the folder; raises CollectionRefused, which says what to mend in which line.

    A question that no document answers is left out: no ranking is right for it.
    """
    if not folder.is_dir():
        raise CollectionRefused(f"{folder} is no folder: name one with {CORPUS}.gz, {QUERIES}(.gz) and {QRELS}.")
    documents = {row["id"]: Document(row["id"], row["title"], row["text"]) for row in _rows(folder, CORPUS)}
    texts = {row["id"]: row["text"] for row in _rows(folder, QUERIES)}
    judged = _read_judgments(folder / QRELS, texts.keys(), documents.keys())
    questions = (Question(key, text, judged[key]) for key, text in texts.items() if key in judged)
    return Collection(tuple(documents.values()), tuple(questions))


def _rows(folder: Path, name: str) -> list[dict[str, str]]:
    """Return the objects of a file with one in each line, every id once."""
    path = next((each for each in (folder / f"{name}.gz", folder / name) if each.is_file()), None)
    if path is None:
        raise CollectionRefused(f"{folder} has no {name}.gz and no {name}: each line of it is {SHAPES[name]}.")
    rows, lines = [], {}
    for number, line in _lines(path):
        rows.append(row := _row(line, name, f"{path}, line {number}"))
        if row["id"] in lines:
            first = lines[row["id"]]
            raise CollectionRefused(f"{path}, line {number}: the id “{row['id']}” stands in line {first} already.")
        lines[row["id"]] = number
    if not rows:
        raise CollectionRefused(f"{path} is empty: each line of it is {SHAPES[name]}.")
    return rows


def _row(line: str, name: str, place: str) -> dict[str, str]:
    try:
        given = json.loads(line)
    except ValueError as error:
        raise CollectionRefused(f"{place}: this is no JSON ({error}); it should be {SHAPES[name]}.") from error
    given = {"title": "", **given} if isinstance(given, dict) else {}
    row = {key: given.get(key) for key in ("id", "title", "text")}
    if wrong := [key for key, value in row.items() if not isinstance(value, str)] or (not row["id"] and ["id"]):
        raise CollectionRefused(f"{place}: “{wrong[0]}” is no text; the line should be {SHAPES[name]}.")
    return {key: storable(value) for key, value in row.items()}


def _read_judgments(path: Path, questions, documents) -> dict[str, dict[str, int]]:
    """Return the relevance of documents by question, without those that are not over 0."""
    if not path.is_file():
        raise CollectionRefused(f"{path} is missing: its first line is “qid docid rel”, with a tab between.")
    judged: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        question, document, relevance = _judgment(line, number, f"{path}, line {number}")
        if number == 1:
            continue
        for kind, key, known in (("question", question, questions), ("document", document, documents)):
            if key not in known:
                raise CollectionRefused(f"{path}, line {number}: there is no {kind} “{key}”. Add it, or drop the line.")
        if relevance > 0:
            judged.setdefault(question, {})[document] = relevance
    if not judged:
        raise CollectionRefused(f"{path} judges no document as relevant (rel over 0), so nothing can be scored.")
    return judged


def _judgment(line: str, number: int, place: str) -> tuple[str, str, int]:
    """Return the fields of a line; those of the first are the columns' names, with a relevance of 0."""
    fields = line.split("\t")
    if len(fields) != 3:
        raise CollectionRefused(f"{place}: there are {len(fields)} fields; it should be qid, docid, rel, tabs between.")
    try:
        relevance = int(fields[2])
    except ValueError:
        relevance = None
    if number == 1:
        if relevance is not None:
            raise CollectionRefused(f"{place}: this is a judgment; write a line “qid docid rel” above, tabs between.")
        return fields[0], fields[1], 0
    if relevance is None:
        raise CollectionRefused(f"{place}: the relevance “{fields[2]}” is no whole number.")
    return storable(fields[0]), storable(fields[1]), relevance


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    opened = gzip.open if path.suffix == ".gz" else open
    number = 0
    try:
        with opened(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise CollectionRefused(f"{path}, line {number}: this is no UTF-8 ({error.reason}).") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CollectionRefused(f"{path}, behind line {number}: this is no whole gzip file ({error}).") from error
