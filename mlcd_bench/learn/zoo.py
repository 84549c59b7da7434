"""Builds small ONNX models of five families, without downloads; a seed determines the weights.

Every input and output has the batch as its first axis, named 'batch'. If `sequence` is None, that axis is variable,
too, and named 'sequence'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mlcd.core.errors import MissingExtra

if TYPE_CHECKING:
    from onnx import ModelProto

BATCH, SEQUENCE = "batch", "sequence"
LONGEST = 512
"""Positions of a transformer with variable sequence length."""

OPSET, IR_VERSION = 17, 8
"""Opset supported by all recent servers; 17 is the first with LayerNormalization."""


def cnn(
    widths: Sequence[int] = (16, 32, 64),
    *,
    blocks: int = 1,
    style: str = "residual",
    size: int = 32,
    channels: int = 3,
    classes: int = 10,
    seed: int = 0,
) -> ModelProto:
    """Images to classes: stages of `blocks` blocks, each stage at half the size of the one before.

    `style`: 'plain' (a convolution), 'residual' (two and a short cut), 'mobile' (depthwise and pointwise).
    """
    graph = _Graph(seed)
    now, width = graph.convolution("image", channels, widths[0], act="Relu"), widths[0]
    for stage, wide in enumerate(widths):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            now, width = _BLOCKS[style](graph, now, width, wide, stride), wide
    pooled = graph.add("Flatten", graph.add("GlobalAveragePool", now), axis=1)
    answer = graph.linear(pooled, width, classes)
    return graph.model("cnn", {"image": ("float32", (BATCH, channels, size, size))}, {answer: (BATCH, classes)})


def transformer(
    layers: int = 2,
    width: int = 64,
    *,
    heads: int = 4,
    feed_forward: int = 4,
    vocabulary: int = 1_000,
    sequence: int | None = 32,
    classes: int = 2,
    seed: int = 0,
) -> ModelProto:
    """Tokens to classes: an encoder with attention; its feed-forward part is `feed_forward` times as wide."""
    graph = _Graph(seed)
    words = graph.add("Gather", graph.weight(vocabulary, width), "tokens")
    now = graph.normalised(graph.add("Add", words, graph.positions("tokens", sequence, width)), width)
    for _ in range(layers):
        now = graph.normalised(graph.add("Add", now, _attention(graph, now, width, heads)), width)
        wide = graph.gelu(graph.linear(now, width, feed_forward * width))
        now = graph.normalised(graph.add("Add", now, graph.linear(wide, feed_forward * width, width)), width)
    answer = graph.linear(graph.add("ReduceMean", now, axes=[1], keepdims=0), width, classes)
    return graph.model("transformer", _tokens(sequence), {answer: (BATCH, classes)})


def recurrent(
    cell: str = "LSTM",
    width: int = 64,
    *,
    layers: int = 1,
    vocabulary: int = 1_000,
    sequence: int | None = 32,
    classes: int = 2,
    bidirectional: bool = False,
    seed: int = 0,
) -> ModelProto:
    """Tokens to classes: layers of `cell`, which is 'LSTM', 'GRU' or 'RNN'."""
    graph = _Graph(seed)
    ways, gates = (2 if bidirectional else 1), {"LSTM": 4, "GRU": 3, "RNN": 1}[cell]
    now, inner = graph.add("Gather", graph.weight(vocabulary, width), "tokens"), width
    now = graph.add("Transpose", now, perm=[1, 0, 2])  # the operators need time first
    for _ in range(layers):
        weights = graph.weight(ways, gates * width, inner), graph.weight(ways, gates * width, width)
        direction = "bidirectional" if bidirectional else "forward"
        now = graph.add(cell, now, *weights, hidden_size=width, direction=direction)
        now, inner = graph.add("Transpose", now, perm=[0, 2, 1, 3]), ways * width
        now = graph.add("Reshape", now, graph.integers(0, 0, inner))
    last = graph.add("Gather", now, graph.integers(-1, scalar=True), axis=0)
    answer = graph.linear(last, inner, classes)
    return graph.model("recurrent", _tokens(sequence), {answer: (BATCH, classes)})


def generator(latent: int = 64, width: int = 16, *, size: int = 32, channels: int = 3, seed: int = 0) -> ModelProto:
    """Noise to images of `size` (4, 8, 16 ...): the half of a GAN that is served."""
    doublings = (size // 4).bit_length() - 1
    if size != 4 << doublings:
        raise ValueError(f"size {size}: expected 4, 8, 16, 32 ...")
    graph, wide = _Graph(seed), width << max(doublings - 1, 0)
    now = graph.add("Reshape", graph.linear("noise", latent, wide * 16), graph.integers(0, wide, 4, 4))
    for step in range(doublings):
        narrow = channels if step == doublings - 1 else wide // 2
        now = graph.add("Relu", graph.batch_normalised(now, wide))
        now = graph.add("ConvTranspose", now, graph.weight(wide, narrow, 4, 4), strides=[2, 2], pads=[1, 1, 1, 1])
        wide = narrow
    if not doublings:
        now = graph.convolution(now, wide, channels)
    image = graph.add("Tanh", now)
    return graph.model("generator", {"noise": ("float32", (BATCH, latent))}, {image: (BATCH, channels, size, size)})


def recommender(
    tables: int = 8,
    rows: int = 1_000,
    width: int = 16,
    *,
    dense: int = 13,
    layers: Sequence[int] = (128, 64),
    interactions: bool = True,
    seed: int = 0,
) -> ModelProto:
    """Numbers and ids to a click's odds: a vector from each table, products of all pairs (as in DLRM), then an MLP."""
    graph = _Graph(seed)
    ids = graph.several("Split", "ids", graph.integers(*[1] * tables), count=tables, axis=1) if tables > 1 else ["ids"]
    vectors = [graph.add("Gather", graph.weight(rows, width), each) for each in ids]
    vectors.append(graph.add("Unsqueeze", graph.linear("dense", dense, width, act="Relu"), graph.integers(1)))
    stacked = graph.add("Concat", *vectors, axis=1)
    now, inner = graph.add("Flatten", stacked, axis=1), (tables + 1) * width
    if interactions:
        pairs = graph.add("MatMul", stacked, graph.add("Transpose", stacked, perm=[0, 2, 1]))
        now = graph.add("Concat", now, graph.add("Flatten", pairs, axis=1), axis=1)
        inner += (tables + 1) ** 2
    for wide in layers:
        now, inner = graph.linear(now, inner, wide, act="Relu"), wide
    odds = graph.add("Sigmoid", graph.linear(now, inner, 1))
    inputs = {"dense": ("float32", (BATCH, dense)), "ids": ("int64", (BATCH, tables))}
    return graph.model("recommender", inputs, {odds: (BATCH, 1)})


@dataclass
class _Graph:
    """Nodes and weights as they are added; `model` closes it."""

    seed: int
    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """One operator more; the name of its (first) output."""
        return self.several(kind, *inputs, count=1, **attributes)[0]

    def several(self, kind: str, *inputs: str, count: int, **attributes: Any) -> list[str]:
        """One operator more; the names of its outputs."""
        name = f"{kind.lower()}_{len(self.nodes)}"
        outputs = [name if count == 1 else f"{name}_{i}" for i in range(count)]
        self.nodes.append(_onnx().helper.make_node(kind, inputs, outputs, name=name, **attributes))
        return outputs

    def constant(self, values: Any) -> str:
        """An array that the model carries."""
        name = f"weight_{len(self.weights)}"
        self.weights.append(_onnx().numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def weight(self, *shape: int) -> str:
        """Random weights, scaled so that what goes through them keeps its size."""
        inner = int(np.prod(shape[1:])) if len(shape) == 4 else shape[-1]
        return self.constant((self.random.standard_normal(shape) / np.sqrt(inner)).astype(np.float32))

    def integers(self, *values: int, scalar: bool = False) -> str:
        """Sizes or indices."""
        return self.constant(np.array(values[0] if scalar else values, dtype=np.int64))

    def linear(self, source: str, inner: int, outer: int, *, act: str = "") -> str:
        """source x W + b over the last axis."""
        product = self.add("MatMul", source, self.constant(self._dense(inner, outer)))
        done = self.add("Add", product, self.constant(np.zeros(outer, np.float32)))
        return self.add(act, done) if act else done

    def convolution(
        self, source: str, inner: int, outer: int, *, kernel: int = 3, stride: int = 1, groups: int = 1, act: str = ""
    ) -> str:
        """A convolution and its batch normalisation."""
        done = self.add(
            "Conv",
            source,
            self.weight(outer, inner // groups, kernel, kernel),
            strides=[stride, stride],
            pads=[kernel // 2] * 4,
            group=groups,
        )
        done = self.batch_normalised(done, outer)
        return self.add(act, done) if act else done

    def batch_normalised(self, source: str, width: int) -> str:
        """As trained: with a mean and variance of its own."""
        ones, zeros = np.ones(width, np.float32), np.zeros(width, np.float32)
        scale, bias = self.constant(ones), self.constant(zeros)
        mean, variance = (0.1 * self.random.standard_normal(width)).astype(np.float32), ones
        return self.add("BatchNormalization", source, scale, bias, self.constant(mean), self.constant(variance))

    def normalised(self, source: str, width: int) -> str:
        """Layer normalisation over the last axis."""
        ones, zeros = np.ones(width, np.float32), np.zeros(width, np.float32)
        return self.add("LayerNormalization", source, self.constant(ones), self.constant(zeros), axis=-1)

    def gelu(self, source: str) -> str:
        """x (1 + erf(x / sqrt 2)) / 2, in the operators that exporters write."""
        inside = self.add("Erf", self.add("Mul", source, self.constant(np.float32(np.sqrt(0.5)))))
        one, half = self.constant(np.float32(1.0)), self.constant(np.float32(0.5))
        return self.add("Mul", self.add("Mul", source, self.add("Add", inside, one)), half)

    def positions(self, tokens: str, sequence: int | None, width: int) -> str:
        """A vector a position; as many as there are tokens."""
        table = self.weight(sequence or LONGEST, width)
        if sequence is not None:
            return table
        length = self.add("Gather", self.add("Shape", tokens), self.integers(1))
        return self.add("Slice", table, self.integers(0), length, self.integers(0))

    def model(
        self,
        name: str,
        inputs: Mapping[str, tuple[str, tuple[int | str, ...]]],
        outputs: Mapping[str, tuple[int | str, ...]],
    ) -> ModelProto:
        """The whole, checked."""
        onnx = _onnx()
        kinds = {"float32": onnx.TensorProto.FLOAT, "int64": onnx.TensorProto.INT64}
        value_info = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph(
            self.nodes,
            name,
            [value_info(each, kinds[kind], shape) for each, (kind, shape) in inputs.items()],
            [value_info(each, kinds["float32"], shape) for each, shape in outputs.items()],
            self.weights,
        )
        opsets = [onnx.helper.make_opsetid("", OPSET)]
        model: ModelProto = onnx.helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="mlcd"
        )
        onnx.checker.check_model(model)
        return model

    def _dense(self, inner: int, outer: int) -> Any:
        return (self.random.standard_normal((inner, outer)) / np.sqrt(inner)).astype(np.float32)


def _tokens(sequence: int | None) -> dict[str, tuple[str, tuple[int | str, ...]]]:
    return {"tokens": ("int64", (BATCH, SEQUENCE if sequence is None else sequence))}


def _attention(graph: _Graph, source: str, width: int, heads: int) -> str:
    """softmax(Q K' / sqrt d) V, in heads."""
    apart = graph.integers(0, 0, heads, width // heads)
    axes = {"query": [0, 2, 1, 3], "key": [0, 2, 3, 1], "value": [0, 2, 1, 3]}
    parts = {
        name: graph.add("Transpose", graph.add("Reshape", graph.linear(source, width, width), apart), perm=order)
        for name, order in axes.items()
    }
    scores = graph.add("MatMul", parts["query"], parts["key"])
    scores = graph.add("Mul", scores, graph.constant(np.float32((width // heads) ** -0.5)))
    mixed = graph.add("MatMul", graph.add("Softmax", scores, axis=-1), parts["value"])
    joined = graph.add("Reshape", graph.add("Transpose", mixed, perm=[0, 2, 1, 3]), graph.integers(0, 0, width))
    return graph.linear(joined, width, width)


def _plain(graph: _Graph, source: str, inner: int, outer: int, stride: int) -> str:
    return graph.convolution(source, inner, outer, stride=stride, act="Relu")


def _residual(graph: _Graph, source: str, inner: int, outer: int, stride: int) -> str:
    done = graph.convolution(source, inner, outer, stride=stride, act="Relu")
    done = graph.convolution(done, outer, outer)
    same = stride == 1 and inner == outer
    short_cut = source if same else graph.convolution(source, inner, outer, kernel=1, stride=stride)
    return graph.add("Relu", graph.add("Add", done, short_cut))


def _mobile(graph: _Graph, source: str, inner: int, outer: int, stride: int) -> str:
    done = graph.convolution(source, inner, inner, stride=stride, groups=inner, act="Relu")
    return graph.convolution(done, inner, outer, kernel=1, act="Relu")


_BLOCKS = {"plain": _plain, "residual": _residual, "mobile": _mobile}


def _onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise MissingExtra("building a model", "serve") from None
    return onnx
