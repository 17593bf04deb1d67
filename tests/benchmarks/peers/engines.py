"""The peers by name, and what of PyPI each group of them needs. An engine keeps its rows in a folder; ids are the
numbers of the texts. It is asked in a process that did not build it, unless it has no `open`.
"""

from tests.benchmarks.peers import hybrid, keyword, vectors

ENGINES = {
    "bm25s": keyword.Bm25s,
    "tantivy": keyword.Tantivy,
    "sqlite fts5": keyword.Fts5,
    "numpy": vectors.Numpy,
    "faiss": vectors.Faiss,
    "usearch": vectors.Usearch,
    "sqlite-vec": vectors.SqliteVec,
    "chromadb": vectors.Chroma,
    "qdrant local": vectors.Qdrant,
    "lancedb": hybrid.Lance,
    "lancedb hybrid": hybrid.LanceHybrid,
    "milvus-lite": hybrid.Milvus,
    "txtai": hybrid.Txtai,
    "haystack": hybrid.Haystack,
    "llama-index": hybrid.LlamaIndex,
}
# The environment each peer runs in: what is installed there stands in requirements/<environment>.txt.
ENVIRONMENTS = {
    "keyword": ("bm25s", "tantivy", "sqlite fts5"),
    "vectors": ("numpy", "faiss", "usearch", "sqlite-vec", "chromadb"),
    "lancedb": ("lancedb", "lancedb hybrid"),
    "databases": ("qdrant local", "milvus-lite"),
    "txtai": ("txtai",),
    "frameworks": ("haystack", "llama-index"),
}


def environment_of(name: str) -> str:
    """Return the environment that the peer runs in."""
    return next(environment for environment, names in ENVIRONMENTS.items() if name in names)
