"""The embedding model that runs in this process: multilingual-e5-small on onnxruntime, with one thread.

It loads at the first use and gives its memory back on `unload`. All that is large is mapped from files, so that
the processes of a machine share it.
"""

import gc
import threading
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from models_app.e5_pack import E5Pack, dequantise
from models_app.memory import drop_pages, return_free_memory
from models_app.model_files import EmbedderFiles, embedder_files
from models_app.pieces import Pieces

if TYPE_CHECKING:
    import onnxruntime

# The model was trained with one of these in front of every text.
QUESTION_PREFIX = "query: "
PASSAGE_PREFIX = "passage: "


class LocalEmbedder:
    """Turns texts into unit vectors. Safe to use from several threads.

    Texts run one by one. On one core a batch saves time below 64 tokens only (32 tokens: 6 ms alone, 4 ms in a batch
    of 8; 256 tokens: 41 and 48 ms). It takes more memory, and makes a vector depend on its neighbours, since the
    activations of one run are quantised together.
    """

    dimensions = 384
    token_limit = 512  # prefix, begin and end mark included; what is longer is cut off
    # One vector says less of a longer text: tests/crawler/test_real_sites.py has 7 right first hits with windows of 256
    # to 384 tokens and 6 with 512, for the same time in all; smaller ones are more vectors to scan.
    window_tokens = 320

    def __init__(self, files: EmbedderFiles):
        self._files = files
        self._lock = threading.Lock()
        self._network: _Network | None = None

    def embed_passages(self, texts: list[str]) -> np.ndarray:
        """Return one unit row of float32 for each text, shape (len(texts), 384)."""
        network = self._loaded()
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            vectors[row] = network.embed(PASSAGE_PREFIX + text, self.token_limit)
        return_free_memory()
        return vectors

    def embed_question(self, text: str) -> np.ndarray:
        """Return the unit vector of a question, shape (384,)."""
        return self._loaded().embed(QUESTION_PREFIX + text, self.token_limit)

    def count_tokens(self, text: str) -> int:
        """Return how many of `token_limit` tokens the whole text would take as a passage."""
        return self._loaded().pieces.count(PASSAGE_PREFIX + text)

    def fits_window(self, text: str) -> bool:
        """Return whether the whole text, as a passage, is at most `window_tokens`; a longer one is not read on."""
        return len(self._loaded().pieces.ids(PASSAGE_PREFIX + text, self.window_tokens + 1)) <= self.window_tokens

    def unload(self) -> None:
        """Drop the model and return its memory; the next use loads it again."""
        with self._lock:
            self._network = None
        gc.collect()  # its cache of words refers to itself
        return_free_memory()

    def _loaded(self) -> "_Network":
        with self._lock:
            if self._network is None:
                self._network = _Network(self._files)
            return self._network


@cache
def local_embedder() -> LocalEmbedder:
    """Return this process's embedder. Raises ModelFilesMissing before the set-up has fetched the model."""
    return LocalEmbedder(embedder_files())


class _Network:
    def __init__(self, files: EmbedderFiles):
        self._pack = pack = E5Pack(files.weights)
        self.pieces = Pieces(pack, files.piece_index)
        self._words = pack.blocks("emb.word", rows=pack.vocabulary)
        # Every token is of the first type, so its vector is added to the positions once and for all.
        first_type = pack.floats("emb.type")[: pack.width]
        self._positions = pack.floats("emb.pos").reshape(pack.positions, -1) + first_type
        self._session = _open_session(files)
        self._input_name = self._session.get_inputs()[0].name

    def embed(self, text: str, token_limit: int) -> np.ndarray:
        ids = self.pieces.ids(text, token_limit)
        rows = dequantise(self._words[ids]) + self._positions[: len(ids)]
        # Words lie all over the file: left mapped, it would come to count 45 MB in each process.
        drop_pages(self._pack.mapping)
        drop_pages(self.pieces.mapping)
        (states,) = self._session.run(None, {self._input_name: rows})
        mean = states.mean(axis=0)
        return mean / np.linalg.norm(mean)


def _open_session(files: EmbedderFiles) -> "onnxruntime.InferenceSession":
    import onnxruntime  # 20 MB, which a process that never embeds does without

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    options.enable_cpu_mem_arena = False  # the arena keeps the largest text's memory for good
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # it was written fused
    # Repacked weights would be a private copy of 22 MB in each process for 10 % of the time of a passage.
    options.add_session_config_entry("session.disable_prepacking", "1")
    return onnxruntime.InferenceSession(files.network, options, providers=["CPUExecutionProvider"])
