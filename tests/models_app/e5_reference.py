"""multilingual-e5-small written out plainly in numpy, in full precision: what the local embedder is held against."""

from itertools import pairwise

import numpy as np

from models_app.e5_pack import E5Pack


class ReferencePieces:
    """The most probable pieces of a text, by a dictionary of all of them."""

    def __init__(self, pack: E5Pack):
        self._pack = pack
        blob = bytes(pack.piece_bytes)
        names = [blob[start:end].decode() for start, end in pairwise(pack.piece_offsets.tolist())]
        scores = zip(pack.piece_scores.tolist(), range(len(names)), strict=True)
        self._known = dict(zip(names, scores, strict=True))
        for mark in ("<s>", "<pad>", "</s>", "<unk>", "<mask>"):
            del self._known[mark]
        self._unknown = (float(pack.piece_scores.min()) - 10, pack.unknown)

    def ids(self, text: str) -> list[int]:
        ids = [self._pack.begin]
        for word in text.translate(self._pack.replacements).split():
            ids += _best_pieces("▁" + word, self._known, self._unknown)
        return [*ids, self._pack.end]


def _best_pieces(word: str, known: dict, unknown: tuple[float, int]) -> list[int]:
    best = [(0.0, [])]
    for end in range(1, len(word) + 1):
        candidates = []
        for start in range(max(0, end - 16), end):
            score, piece = known.get(word[start:end], unknown if end - start == 1 else (None, None))
            if score is not None:
                candidates.append((best[start][0] + score, best[start][1], piece))
        score, before, piece = max(candidates, key=lambda candidate: candidate[0])
        repeats_unknown = piece == unknown[1] and before[-1:] == [piece]
        best.append((score, before if repeats_unknown else [*before, piece]))
    return best[-1][1]


class ReferenceNetwork:
    """The twelve layers, with unquantised activations and the pack's weights as floats."""

    def __init__(self, pack: E5Pack):
        self._pack = pack
        self._weights: dict[str, np.ndarray] = {}

    def embed(self, ids: list[int]) -> np.ndarray:
        pack = self._pack
        states = self._weight("emb.word", pack.vocabulary)[ids]
        states = states + self._weight("emb.pos", pack.positions)[: len(ids)] + self._weight("emb.type", 2)[0]
        states = self._norm(states, "emb.ln")
        for layer in range(pack.layers):
            states = self._layer(states, f"l{layer}")
        mean = states.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def _layer(self, states: np.ndarray, name: str) -> np.ndarray:
        query, key, value = (self._heads(self._dense(states, f"{name}.{part}")) for part in "qkv")
        shares = np.exp(query @ key.transpose(0, 2, 1) * query.shape[-1] ** -0.5)
        shares /= shares.sum(axis=-1, keepdims=True)
        context = (shares @ value).transpose(1, 0, 2).reshape(states.shape)
        states = self._norm(self._dense(context, f"{name}.ao") + states, f"{name}.aln")
        inner = gelu(self._dense(states, f"{name}.fi"))
        return self._norm(self._dense(inner, f"{name}.fo") + states, f"{name}.oln")

    def _heads(self, states: np.ndarray) -> np.ndarray:
        return states.reshape(len(states), self._pack.heads, -1).transpose(1, 0, 2)

    def _dense(self, states: np.ndarray, name: str) -> np.ndarray:
        bias = self._pack.floats(f"{name}.b")
        return states @ self._weight(f"{name}.w", len(bias)).T + bias

    def _weight(self, name: str, rows: int) -> np.ndarray:
        if name not in self._weights:
            self._weights[name] = self._pack.weights(name, rows)
        return self._weights[name]

    def _norm(self, states: np.ndarray, name: str) -> np.ndarray:
        centred = states - states.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self._pack.epsilon)
        scale, shift = (self._pack.floats(f"{name}.{part}") for part in "wb")
        return centred / spread * scale + shift


def gelu(x: np.ndarray) -> np.ndarray:
    """Return x times the normal distribution up to x, by formula 7.1.26 of Abramowitz and Stegun (error under 2e-7)."""
    z = np.abs(x) / np.sqrt(2)
    t = 1 / (1 + 0.3275911 * z)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return x * (1 + np.copysign(1 - series * np.exp(-z * z), x)) / 2
