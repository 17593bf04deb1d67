"""Peers for the semantic leg, each as its own documentation has it used."""

from pathlib import Path

import numpy as np

TOP = 10


class Numpy:
    """A matrix in memory and a product with it: the floor below what scans exactly."""

    leg = "vector"
    modules = ("numpy",)
    keeps = "in memory; written anew as a whole"

    def __init__(self, folder: Path, dimensions: int):
        self._file, self._matrix = folder / "matrix.npy", np.empty((0, dimensions), np.float32)

    def add(self, ids: list[int], texts: list[str], vectors: np.ndarray) -> None:
        self._matrix = np.concatenate([self._matrix, vectors])
        np.save(self._file, self._matrix)

    def update(self, number: int, text: str, vector: np.ndarray) -> None:
        self._matrix[number] = vector
        np.save(self._file, self._matrix)

    def open(self) -> None:
        self._matrix = np.load(self._file)

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        cosines = self._matrix @ vector
        best = np.argpartition(-cosines, TOP)[:TOP]
        return best[np.argsort(-cosines[best])].tolist()


class Faiss:
    """faiss without an approximation: a flat index of inner products with ids."""

    leg = "vector"
    modules = ("faiss",)
    keeps = "in memory; written anew as a whole"

    def __init__(self, folder: Path, dimensions: int):
        import faiss

        faiss.omp_set_num_threads(1)
        self._faiss, self._file = faiss, str(folder / "flat.faiss")
        self._index = faiss.IndexIDMap2(faiss.IndexFlatIP(dimensions))

    def add(self, ids: list[int], texts: list[str], vectors: np.ndarray) -> None:
        self._index.add_with_ids(vectors, np.asarray(ids, np.int64))
        self._faiss.write_index(self._index, self._file)

    def update(self, number: int, text: str, vector: np.ndarray) -> None:
        self._index.remove_ids(np.array([number], np.int64))
        self.add([number], [text], vector[None])

    def open(self) -> None:
        self._index = self._faiss.read_index(self._file)

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        return self._index.search(vector[None], TOP)[1][0].tolist()


class Usearch:
    """usearch with its defaults: a graph of neighbours, half precision, approximate."""

    leg = "vector"
    modules = ("usearch.index",)
    keeps = "in memory; written anew as a whole"

    def __init__(self, folder: Path, dimensions: int):
        from usearch.index import Index

        self._file, self._index = folder / "graph.usearch", Index(ndim=dimensions, metric="cos")

    def add(self, ids: list[int], texts: list[str], vectors: np.ndarray) -> None:
        self._index.add(np.asarray(ids, np.uint64), vectors, threads=1)
        self._index.save(self._file)

    def update(self, number: int, text: str, vector: np.ndarray) -> None:
        self._index.remove(number)
        self.add([number], [text], vector[None])

    def open(self) -> None:
        self._index.load(self._file)

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        return self._index.search(vector, TOP, threads=1).keys.tolist()


class SqliteVec:
    """sqlite-vec's table of vectors, scanned exactly; through apsw, as not every Python's sqlite3 loads extensions."""

    leg = "vector"
    modules = ("sqlite_vec", "apsw")
    keeps = "on disk, in step with the rows"

    def __init__(self, folder: Path, dimensions: int):
        import apsw
        import sqlite_vec

        self._database = apsw.Connection(str(folder / "vec.sqlite3"))
        self._database.enable_load_extension(True)
        self._database.load_extension(sqlite_vec.loadable_path())
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")
        column = f"vector float[{dimensions}] distance_metric=cosine"
        self._database.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS bench USING vec0({column})")

    def add(self, ids: list[int], texts: list[str], vectors: np.ndarray) -> None:
        with self._database:
            rows = ((number + 1, vector.tobytes()) for number, vector in zip(ids, vectors, strict=True))
            self._database.executemany("INSERT INTO bench (rowid, vector) VALUES (?, ?)", rows)

    def update(self, number: int, text: str, vector: np.ndarray) -> None:
        with self._database:
            self._database.execute("UPDATE bench SET vector = ? WHERE rowid = ?", (vector.tobytes(), number + 1))

    def open(self) -> None:
        """It is open."""

    def close(self) -> None:
        self._database.close()

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        found = "SELECT rowid FROM bench WHERE vector MATCH ? AND k = ? ORDER BY distance"
        return [row[0] - 1 for row in self._database.execute(found, (vector.tobytes(), TOP))]


class Chroma:
    """chromadb on disk with its defaults: texts and vectors in one collection, an approximate graph."""

    leg = "vector"
    modules = ("chromadb",)
    keeps = "on disk, with the texts"

    def __init__(self, folder: Path, dimensions: int):
        import chromadb

        client = chromadb.PersistentClient(str(folder), chromadb.Settings(anonymized_telemetry=False))
        self._rows = client.get_or_create_collection(
            "bench", embedding_function=None, configuration={"hnsw": {"space": "cosine", "num_threads": 1}}
        )

    def add(self, ids: list[int], texts: list[str], vectors: np.ndarray) -> None:
        for start in range(0, len(ids), 5_000):
            part = slice(start, start + 5_000)
            self._rows.add(ids=[str(each) for each in ids[part]], documents=texts[part], embeddings=vectors[part])

    def update(self, number: int, text: str, vector: np.ndarray) -> None:
        self._rows.update(ids=[str(number)], documents=[text], embeddings=vector[None])

    def open(self) -> None:
        """It is open."""

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        found = self._rows.query(query_embeddings=vector[None], n_results=TOP, include=["distances"])
        return [int(each) for each in found["ids"][0]]


class Qdrant:
    """qdrant-client's local mode, in a folder."""

    leg = "vector"
    modules = ("qdrant_client",)
    keeps = "on disk, read into memory"
    most_texts = 20_000  # beyond, it warns itself: a server is meant then

    def __init__(self, folder: Path, dimensions: int):
        from qdrant_client import QdrantClient, models

        self._models, self._client = models, QdrantClient(path=str(folder))
        if not self._client.collection_exists("bench"):
            space = models.VectorParams(size=dimensions, distance=models.Distance.COSINE)
            self._client.create_collection("bench", vectors_config=space)

    def add(self, ids: list[int], texts: list[str], vectors: np.ndarray) -> None:
        rows = zip(ids, texts, vectors, strict=True)
        points = [self._models.PointStruct(id=each, vector=vector.tolist(), payload={"text": text})
                  for each, text, vector in rows]  # fmt: skip
        self._client.upsert("bench", points)

    def update(self, number: int, text: str, vector: np.ndarray) -> None:
        self.add([number], [text], vector[None])

    def open(self) -> None:
        """It is open."""

    def close(self) -> None:
        self._client.close()

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        found = self._client.query_points("bench", query=vector, limit=TOP, with_payload=False)
        return [point.id for point in found.points]
