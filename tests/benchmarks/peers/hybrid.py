"""Peers with both legs, each as its own documentation has it used; lancedb without its words, too."""

import os
from pathlib import Path

import numpy as np

TOP = 10


class Lance:
    """lancedb with its defaults: no index of the vectors, so they are scanned exactly."""

    leg = "vector"
    modules = ("lancedb", "pyarrow")
    keeps = "on disk, with the texts"

    def __init__(self, folder: Path, dimensions: int):
        import lancedb
        import pyarrow

        self._pyarrow, self._database, self._dimensions = pyarrow, lancedb.connect(folder), dimensions

    def _table_of(self, ids: list[int], texts: list[str], vectors: np.ndarray):
        flat = self._pyarrow.array(vectors.ravel(), self._pyarrow.float32())
        rows = self._pyarrow.FixedSizeListArray.from_arrays(flat, self._dimensions)
        return self._pyarrow.table({"id": self._pyarrow.array(ids), "text": texts, "vector": rows})

    def add(self, ids: list[int], texts: list[str], vectors: np.ndarray) -> None:
        rows = self._table_of(ids, texts, vectors)
        if "bench" in self._database.table_names():
            self._table.add(rows)
        else:
            self._table = self._database.create_table("bench", rows)
            self._index()

    def _index(self) -> None:
        pass

    def update(self, number: int, text: str, vector: np.ndarray) -> None:
        change = self._table.merge_insert("id").when_matched_update_all()
        change.execute(self._table_of([number], [text], vector[None]))

    def open(self) -> None:
        self._table = self._database.open_table("bench")

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        return [row["id"] for row in self._search(text, vector).limit(TOP).select(["id"]).to_list()]

    def _search(self, text: str, vector: np.ndarray):
        return self._table.search(vector).distance_type("cosine")


class LanceHybrid(Lance):
    """lancedb with its full-text index beside the vectors, fused by its default reranker (RRF)."""

    leg = "hybrid"
    keeps = "on disk; words of new rows are scanned until the index is optimised"

    def _index(self) -> None:
        self._table.create_fts_index("text")

    def _search(self, text: str, vector: np.ndarray):
        return self._table.search(query_type="hybrid").vector(vector).text(text).distance_type("cosine")


class Milvus:
    """milvus-lite, the local file of pymilvus: dense vectors and BM25 in one collection, fused by RRF."""

    leg = "hybrid"
    modules = ("pymilvus", "milvus_lite")
    keeps = "on disk, with the texts; one process at a time"

    def __init__(self, folder: Path, dimensions: int):
        from pymilvus import MilvusClient

        self._client = MilvusClient(str(folder / "milvus.db"))
        if not self._client.has_collection("bench"):
            self._create(dimensions)

    def _create(self, dimensions: int) -> None:
        from pymilvus import DataType, Function, FunctionType

        schema = self._client.create_schema(auto_id=False)
        schema.add_field("id", DataType.INT64, is_primary=True)
        schema.add_field("text", DataType.VARCHAR, max_length=65_535, enable_analyzer=True)
        schema.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimensions)
        schema.add_function(Function("bm25", FunctionType.BM25, ["text"], ["words"]))
        indexes = self._client.prepare_index_params()
        indexes.add_index("vector", index_type="AUTOINDEX", metric_type="COSINE")
        indexes.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
        self._client.create_collection("bench", schema=schema, index_params=indexes)

    def add(self, ids: list[int], texts: list[str], vectors: np.ndarray) -> None:
        for start in range(0, len(ids), 1_000):
            part = slice(start, start + 1_000)
            rows = zip(ids[part], texts[part], vectors[part], strict=True)
            self._client.upsert("bench", [{"id": a, "text": b, "vector": c.tolist()} for a, b, c in rows])
        self._client.flush("bench")

    def update(self, number: int, text: str, vector: np.ndarray) -> None:
        self._client.upsert("bench", [{"id": number, "text": text, "vector": vector.tolist()}])

    def open(self) -> None:
        self._client.load_collection("bench")

    def close(self) -> None:
        self._client.close()

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        from pymilvus import AnnSearchRequest, RRFRanker

        legs = [
            AnnSearchRequest([vector.tolist()], "vector", {"metric_type": "COSINE"}, limit=TOP),
            AnnSearchRequest([text], "words", {"metric_type": "BM25"}, limit=TOP),
        ]
        found = self._client.hybrid_search("bench", legs, RRFRanker(), limit=TOP, output_fields=["id"])
        return [hit["id"] for hit in found[0]]


VECTORS: dict[str, np.ndarray] = {}


def vectors_of(texts: list[str]) -> np.ndarray:
    """Return the vectors of texts: what txtai calls for them."""
    return np.stack([VECTORS[text] for text in texts])


class Txtai:
    """txtai's embeddings with `hybrid`, its defaults otherwise; without its language models, as vectors are given."""

    leg = "hybrid"
    modules = ("txtai", "faiss")
    keeps = "in memory; written anew as a whole"

    def __init__(self, folder: Path, dimensions: int):
        os.environ["ALLOW_RESOLVE_TRANSFORM"] = "True"
        from txtai import Embeddings

        self._folder, self._is_new = folder / "txtai", True
        self._rows = Embeddings(method="external", transform=f"{__name__}.vectors_of", hybrid=True)

    def add(self, ids: list[int], texts: list[str], vectors: np.ndarray) -> None:
        VECTORS.update(zip(texts, vectors, strict=True))
        write = self._rows.index if self._is_new else self._rows.upsert
        write([(number, text, None) for number, text in zip(ids, texts, strict=True)])
        self._is_new = False
        self._rows.save(str(self._folder))
        VECTORS.clear()

    def update(self, number: int, text: str, vector: np.ndarray) -> None:
        self.add([number], [text], vector[None])

    def open(self) -> None:
        self._rows.load(str(self._folder))
        self._is_new = False

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        VECTORS[text] = vector
        return [number for number, _ in self._rows.search(text, TOP)]


class Haystack:
    """haystack's store in memory, its two retrievers joined by reciprocal rank fusion."""

    leg = "hybrid"
    modules = ("haystack", "haystack.components.joiners", "haystack.components.retrievers.in_memory")
    keeps = "in memory alone"

    def __init__(self, folder: Path, dimensions: int):
        from haystack import Document
        from haystack.components.joiners import DocumentJoiner
        from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
        from haystack.document_stores.in_memory import InMemoryDocumentStore
        from haystack.document_stores.types import DuplicatePolicy

        self._document, self._overwrite = Document, DuplicatePolicy.OVERWRITE
        self._store = InMemoryDocumentStore(embedding_similarity_function="cosine")
        self._words = InMemoryBM25Retriever(self._store, top_k=TOP)
        self._vectors = InMemoryEmbeddingRetriever(self._store, top_k=TOP)
        self._joiner = DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=TOP)

    def add(self, ids: list[int], texts: list[str], vectors: np.ndarray) -> None:
        documents = [
            self._document(id=str(number), content=text, embedding=vector.tolist())
            for number, text, vector in zip(ids, texts, vectors, strict=True)
        ]
        self._store.write_documents(documents, self._overwrite)

    def update(self, number: int, text: str, vector: np.ndarray) -> None:
        self.add([number], [text], vector[None])

    open = None  # it lives in memory

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        legs = self._words.run(query=text), self._vectors.run(query_embedding=vector.tolist())
        found = self._joiner.run(documents=[leg["documents"] for leg in legs])["documents"]
        return [int(document.id) for document in found]


class LlamaIndex:
    """llama-index: its vector index in memory and its BM25 retriever, fused by reciprocal rank; BM25 is made anew."""

    leg = "hybrid"
    modules = ("llama_index.core", "llama_index.retrievers.bm25")
    keeps = "in memory alone"

    def __init__(self, folder: Path, dimensions: int):
        from llama_index.core import MockEmbedding, VectorStoreIndex
        from llama_index.core.schema import QueryBundle, TextNode

        self._node, self._bundle, self._nodes = TextNode, QueryBundle, {}
        self._index = VectorStoreIndex([], embed_model=MockEmbedding(embed_dim=dimensions))

    def add(self, ids: list[int], texts: list[str], vectors: np.ndarray) -> None:
        nodes = [
            self._node(id_=str(number), text=text, embedding=vector.tolist())
            for number, text, vector in zip(ids, texts, vectors, strict=True)
        ]
        self._index.insert_nodes(nodes)
        self._nodes |= {node.id_: node for node in nodes}
        self._fuse()

    def update(self, number: int, text: str, vector: np.ndarray) -> None:
        self._index.delete_nodes([str(number)])
        self.add([number], [text], vector[None])

    def _fuse(self) -> None:
        from llama_index.core.llms import MockLLM
        from llama_index.core.retrievers import QueryFusionRetriever
        from llama_index.retrievers.bm25 import BM25Retriever

        words = BM25Retriever.from_defaults(nodes=list(self._nodes.values()), similarity_top_k=TOP)
        legs = [self._index.as_retriever(similarity_top_k=TOP), words]
        self._retriever = QueryFusionRetriever(
            legs, llm=MockLLM(), similarity_top_k=TOP, num_queries=1, mode="reciprocal_rerank", use_async=False
        )

    open = None  # it lives in memory

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        return [int(hit.node.id_) for hit in self._retriever.retrieve(self._bundle(text, embedding=vector.tolist()))]
