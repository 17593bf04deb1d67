"""Writes the network of multilingual-e5-small as an ONNX graph with weights of eight bits.

Built once at set-up. One text a run: rows of word, position and type embeddings in, one row a token out.
The operators are the fused ones of onnxruntime, so that a session has nothing left to optimise when it starts.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .e5_pack import E5Pack

OPSET = 17
IR_VERSION = 9
FUSED = "com.microsoft"  # the domain of onnxruntime's own operators
INT8_LARGEST = 127
INPUT, OUTPUT = "embeddings", "token_states"


def write_graph(pack: E5Pack, path: Path) -> None:
    """Write the graph and, beside it, its weights, kept apart so that a session maps them instead of copying."""
    onnx.save(
        _GraphWriter(pack).model(),
        path,
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=f"{path.stem}.weights",
        size_threshold=1024,
    )


def quantise(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (inputs, outputs) weights as int8 and the scale of each output, symmetric around zero."""
    scales = np.maximum(np.abs(weights).max(axis=0), np.finfo(np.float32).tiny) / INT8_LARGEST
    return np.rint(weights / scales).astype(np.int8), scales.astype(np.float32)


class _GraphWriter:
    def __init__(self, pack: E5Pack):
        self._pack = pack
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def model(self) -> onnx.ModelProto:
        pack = self._pack
        self._constant("split_heads", np.array([0, pack.heads, pack.width // pack.heads], np.int64))
        self._constant("join_heads", np.array([0, pack.width], np.int64))
        states = self._node("LayerNormalization", INPUT, *self._norm("emb.ln"), epsilon=pack.epsilon, axis=-1)
        for layer in range(pack.layers):
            states = self._layer(states, f"l{layer}.", OUTPUT if layer == pack.layers - 1 else None)
        rows = ["tokens", pack.width]
        graph = helper.make_graph(
            self._nodes,
            "multilingual-e5-small",
            [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, rows)],
            [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, rows)],
            self._constants,
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(FUSED, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)

    def _layer(self, states: str, prefix: str, output: str | None) -> str:
        """Add one transformer layer: attention, then two dense steps, each added to what went in and normalised."""
        pack = self._pack
        attended = self._dense(self._attention(states, prefix), f"{prefix}ao", pack.width, pack.width)
        states = self._add_and_norm(attended, states, f"{prefix}aln")
        inner = self._dense(states, f"{prefix}fi", pack.inner_width, pack.width)
        inner = self._node("Gelu", inner, domain=FUSED)
        return self._add_and_norm(
            self._dense(inner, f"{prefix}fo", pack.width, pack.inner_width), states, f"{prefix}oln", output
        )

    def _attention(self, states: str, prefix: str) -> str:
        pack = self._pack
        # Queries, keys and values in one product. The queries' weights carry the factor 1 / sqrt(head width).
        shrink = (pack.width // pack.heads) ** -0.5
        parts = [(name, shrink if name == "q" else 1.0) for name in "qkv"]
        weights = [pack.weights(f"{prefix}{n}.w", pack.width, pack.width).T * factor for n, factor in parts]
        bias = [pack.floats(f"{prefix}{n}.b", pack.width) * factor for n, factor in parts]
        mixed = self._product(states, f"{prefix}qkv", np.concatenate(weights, axis=1), np.concatenate(bias))
        query, key, value = self._split(mixed, 3)
        by_head, by_head_transposed = [1, 0, 2], [1, 2, 0]
        query, value = self._heads(query, by_head), self._heads(value, by_head)
        shares = self._node("Softmax", self._node("MatMul", query, self._heads(key, by_head_transposed)), axis=-1)
        context = self._node("Transpose", self._node("MatMul", shares, value), perm=by_head)
        return self._node("Reshape", context, "join_heads")

    def _heads(self, states: str, order: list[int]) -> str:
        return self._node("Transpose", self._node("Reshape", states, "split_heads"), perm=order)

    def _dense(self, states: str, name: str, outputs: int, inputs: int) -> str:
        weights = self._pack.weights(f"{name}.w", outputs, inputs).T
        return self._product(states, name, weights, self._pack.floats(f"{name}.b", outputs))

    def _product(self, states: str, name: str, weights: np.ndarray, bias: np.ndarray) -> str:
        quantised, scales = quantise(weights)
        constants = [
            self._constant(f"{name}.w", quantised),
            self._constant(f"{name}.scales", scales),
            "",  # no zero points: the weights are symmetric
            self._constant(f"{name}.b", bias.astype(np.float32)),
        ]
        return self._node("DynamicQuantizeMatMul", states, *constants, domain=FUSED)

    def _add_and_norm(self, states: str, skipped: str, name: str, output: str | None = None) -> str:
        constants = self._norm(name)
        return self._node(
            "SkipLayerNormalization",
            states,
            skipped,
            *constants,
            domain=FUSED,
            epsilon=self._pack.epsilon,
            output=output,
        )

    def _norm(self, name: str) -> list[str]:
        return [
            self._constant(f"{name}.{part}", self._pack.floats(f"{name}.{part}", self._pack.width)) for part in "wb"
        ]

    def _split(self, states: str, count: int) -> list[str]:
        names = [f"{states}.{part}" for part in range(count)]
        self._nodes.append(helper.make_node("Split", [states], names, axis=-1))
        return names

    def _constant(self, name: str, values: np.ndarray) -> str:
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def _node(self, operator: str, *inputs: str, output: str | None = None, domain: str = "", **attributes) -> str:
        output = output or f"step{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, list(inputs), [output], domain=domain, **attributes))
        return output
