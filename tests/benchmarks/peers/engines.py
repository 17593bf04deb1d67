"""The peers, each as its own documentation has it used, behind the few calls that are timed.

Runs in the peers' environment. An engine keeps its rows in a folder; ids are the numbers of the texts.
"""

import os
from pathlib import Path

import numpy as np

TOP = 10
KEYWORD, VECTOR, HYBRID = "keyword", "vector", "hybrid"


class Bm25s:
    """bm25s with stop words and stemmer as in its README; a change is a new index."""

    leg = KEYWORD

    def __init__(self, folder: Path, dimensions: int):
        import bm25s
        import Stemmer

        self._bm25s, self._stemmer, self._folder, self._texts = bm25s, Stemmer.Stemmer("english"), folder, []

    def add(self, ids: list[int], texts: list[str], vectors: np.ndarray) -> None:
        self._texts += texts
        self._retriever = self._bm25s.BM25()
        self._retriever.index(self._tokens(self._texts), show_progress=False)
        self._retriever.save(self._folder)

    def update(self, number: int, text: str, vector: np.ndarray) -> None:
        self._texts[number] = text
        self.add([], [], vector)

    def open(self) -> None:
        self._retriever = self._bm25s.BM25.load(self._folder)

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        found, _ = self._retriever.retrieve(self._tokens([text]), k=TOP, show_progress=False)
        return found[0].tolist()

    def _tokens(self, texts: list[str]):
        return self._bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)


class Tantivy:
    """tantivy with its English stemmer, one thread writing; searched by terms joined with OR, as its parser does."""

    leg = KEYWORD

    def __init__(self, folder: Path, dimensions: int):
        import tantivy

        self._tantivy, self._folder = tantivy, folder
        schema = tantivy.SchemaBuilder()
        schema.add_integer_field("id", stored=True, indexed=True)
        schema.add_text_field("text", tokenizer_name="en_stem")
        self._index = tantivy.Index(schema.build(), path=str(folder))

    def add(self, ids: list[int], texts: list[str], vectors: np.ndarray) -> None:
        writer = self._index.writer(num_threads=1)
        for number, text in zip(ids, texts, strict=True):
            writer.add_document(self._tantivy.Document(id=number, text=text))
        self._commit(writer)

    def update(self, number: int, text: str, vector: np.ndarray) -> None:
        writer = self._index.writer(num_threads=1)
        writer.delete_documents_by_term("id", number)
        writer.add_document(self._tantivy.Document(id=number, text=text))
        self._commit(writer)

    def _commit(self, writer) -> None:
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()

    def open(self) -> None:
        self._index.reload()

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        searcher = self._index.searcher()
        query, _ = self._index.parse_query_lenient(text, ["text"])
        return [searcher.doc(address)["id"][0] for _, address in searcher.search(query, TOP).hits]


class Faiss:
    """faiss without an approximation: a flat index of inner products with ids."""

    leg = VECTOR

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

    leg = VECTOR

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


class Chroma:
    """chromadb on disk with its defaults: texts and vectors in one collection, an approximate graph."""

    leg = VECTOR

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
        pass

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        found = self._rows.query(query_embeddings=vector[None], n_results=TOP, include=["distances"])
        return [int(each) for each in found["ids"][0]]


class Lance:
    """lancedb with its defaults: no index of the vectors, so they are scanned exactly."""

    leg = VECTOR

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

    leg = HYBRID

    def _index(self) -> None:
        self._table.create_fts_index("text")

    def _search(self, text: str, vector: np.ndarray):
        return self._table.search(query_type="hybrid").vector(vector).text(text).distance_type("cosine")


class Haystack:
    """haystack's store in memory, its two retrievers joined by reciprocal rank fusion."""

    leg = HYBRID
    most_texts = 10_000  # it keeps a vector as a Python list, 36 bytes a number

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

    leg = HYBRID
    most_texts = 10_000  # it keeps a vector as a Python list

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


ENGINES = {
    "bm25s": Bm25s,
    "tantivy": Tantivy,
    "faiss": Faiss,
    "usearch": Usearch,
    "chromadb": Chroma,
    "lancedb": Lance,
    "lancedb hybrid": LanceHybrid,
    "haystack": Haystack,
    "llama-index": LlamaIndex,
}


def make(name: str, folder: Path, dimensions: int):
    """Return the engine with this name, its rows in the folder."""
    os.environ |= {"LANCE_CPU_THREADS": "1", "HAYSTACK_TELEMETRY_ENABLED": "False"}
    return ENGINES[name](folder, dimensions)
