"""Attention in the forms of exporters: heads, scales, masks from positions, and the Attention node."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto

from tests.pulse.cases.build import Case, Feeds, floats, model, node, rng

WIDTH, HEADS = 8, 2


class AttentionBuilder:
    """Nodes under construction; every method gives the name of a wire. The input is x [1, T, 8]."""

    def __init__(self, frames_axis: int = 1) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Any] = {}
        self.frames_axis = frames_axis
        self.frame_count = ""

    def add(self, op: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        name = name or f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(node(op, " ".join(inputs), name, **attributes))
        return name

    def constant(self, value: Any, dtype: type = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def integers(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def number(self, value: int) -> str:
        return self.constant(value, np.int64)

    def weights(self, *shape: int) -> str:
        return self.constant(floats((len(self.constants), shape), *shape) * shape[-2] ** -0.5)

    def frames(self) -> str:
        """Return the number of frames of x."""
        if not self.frame_count:
            self.frame_count = self.add("Gather", self.add("Shape", "x"), self.number(self.frames_axis))
        return self.frame_count

    def square(self) -> str:
        """Return the shape T, T."""
        frames = self.add("Unsqueeze", self.frames(), self.integers(0))
        return self.add("Concat", frames, frames, axis=0)

    def positions(self) -> tuple[str, str]:
        """0, 1 … as a column and as a row."""
        steps = self.add("Range", self.number(0), self.frames(), self.number(1))
        return self.add("Unsqueeze", steps, self.integers(1)), self.add("Unsqueeze", steps, self.integers(0))

    def distances(self) -> str:
        """Return the number of frames from column j to row i."""
        return self.add("Sub", *self.positions())

    def is_between(self, x: str, low: int, high: int) -> str:
        lower = self.add("GreaterOrEqual", x, self.number(low))
        return self.add("And", lower, self.add("LessOrEqual", x, self.number(high)))

    def linear(self, x: str, out: int = WIDTH) -> str:
        return self.add("MatMul", x, self.weights(WIDTH, out))

    def model(self, feeds: Feeds, opset: int = 17, outputs: str = "y", streams: bool = True) -> ModelProto:
        stream = dict.fromkeys(feeds, self.frames_axis) if streams else None
        return model(self.nodes, feeds, self.constants, opset, stream, outputs)


Mask = Callable[[AttentionBuilder, str], str]


def add_mask(graph: AttentionBuilder, scores: str, visible: str, low: float = -np.inf) -> str:
    """Where(seen, 0, low), added."""
    return graph.add("Add", scores, graph.add("Where", visible, graph.constant(0.0), graph.constant(low)))


def window(back: int, ahead: int, low: float = -np.inf) -> Mask:
    return lambda g, scores: add_mask(g, scores, g.is_between(g.distances(), -ahead, back), low)


def trilu(back: int) -> Mask:
    """A band as the difference of two triangles of ones."""

    def mask(graph: AttentionBuilder, scores: str) -> str:
        square = graph.add("ConstantOfShape", graph.square())
        square = graph.add("Add", square, graph.constant(1.0))
        lower = graph.add("Trilu", square, upper=0)
        band = graph.add("Trilu", lower, graph.number(-back), upper=1)
        return graph.add(
            "Where", graph.add("Equal", band, graph.constant(0.0)), graph.constant(-np.inf), scores
        )

    return mask


def fill_mask(back: int, ahead: int) -> Mask:
    """``masked_fill`` with a large negative number, before the scale."""

    def mask(graph: AttentionBuilder, scores: str) -> str:
        hidden = graph.add("Not", graph.is_between(graph.distances(), -ahead, back))
        chosen = graph.add("Where", hidden, graph.constant(-1e9), scores)
        return graph.add("Div", chosen, graph.constant(1.5))

    return mask


def inverted_mask(back: int, ahead: int) -> Mask:
    """Add ``(1 - mask) * -10000`` to the scores."""

    def mask(graph: AttentionBuilder, scores: str) -> str:
        visible = graph.add("Cast", graph.is_between(graph.distances(), -ahead, back), to=1)
        hidden = graph.add("Mul", graph.add("Sub", graph.constant(1.0), visible), graph.constant(-10000.0))
        return graph.add("Add", scores, graph.add("Unsqueeze", hidden, graph.integers(0, 1)))

    return mask


def chunks(size: int, left: int) -> Mask:
    """Each frame sees its chunk and some chunks before it."""

    def mask(graph: AttentionBuilder, scores: str) -> str:
        rows, columns = (graph.add("Div", steps, graph.number(size)) for steps in graph.positions())
        visible = graph.is_between(graph.add("Sub", rows, columns), 0, left)
        return graph.add("Where", visible, scores, graph.constant(-np.inf))

    return mask


def slopes(back: int, ahead: int) -> Mask:
    """A penalty for distance, one for each head."""

    def mask(graph: AttentionBuilder, scores: str) -> str:
        distance = graph.add("Cast", graph.add("Abs", graph.distances()), to=1)
        bias = graph.add("Mul", distance, graph.constant([[[-0.5]], [[-0.125]]]))
        return add_mask(
            graph, graph.add("Add", scores, bias), graph.is_between(graph.distances(), -ahead, back)
        )

    return mask


def column_slopes(back: int) -> Mask:
    """A penalty that grows with the column alone, which a softmax cannot tell from one for distance."""

    def mask(graph: AttentionBuilder, scores: str) -> str:
        _, columns = graph.positions()
        bias = graph.add("Mul", graph.add("Cast", columns, to=1), graph.constant([[[0.5]], [[0.25]]]))
        return add_mask(graph, graph.add("Add", scores, bias), graph.is_between(graph.distances(), 0, back))

    return mask


def distance_table(reach: int) -> Mask:
    """A learnt number for each distance, clipped."""

    def mask(graph: AttentionBuilder, scores: str) -> str:
        distances = graph.distances()
        clipped = graph.add("Min", graph.add("Max", distances, graph.number(-2)), graph.number(2))
        table = graph.constant([0.5, -1.0, 0.25, 2.0, -0.75])
        bias = graph.add("Gather", table, graph.add("Add", clipped, graph.number(2)))
        return add_mask(graph, graph.add("Add", scores, bias), graph.is_between(distances, -reach, reach))

    return mask


def buffer(size: int, back: int, ahead: int) -> Mask:
    """A stored mask, sliced to the length."""

    def mask(graph: AttentionBuilder, scores: str) -> str:
        distances = np.arange(size)[:, None] - np.arange(size)
        table = graph.constant(np.where((distances >= -ahead) & (distances <= back), 0, -np.inf)[None, None])
        ends = graph.add("Unsqueeze", graph.frames(), graph.integers(0))
        for axis in (2, 3):
            table = graph.add(
                "Slice", table, graph.integers(0), ends, graph.integers(axis), graph.integers(1)
            )
        return graph.add("Add", scores, table)

    return mask


def causal(graph: AttentionBuilder, scores: str) -> str:
    """Attend to all earlier frames."""
    square = graph.add("Expand", graph.constant(True, np.bool_), graph.square())
    return add_mask(
        graph, scores, graph.add("Cast", graph.add("Trilu", graph.add("Cast", square, to=1), upper=0), to=9)
    )


def full(graph: AttentionBuilder, scores: str) -> str:
    """Attend to all frames, without a mask."""
    return scores


MASKS: dict[str, tuple[Mask, int, int, int]] = {
    "trilu": (trilu(5), 5, 0, 1),
    "window": (window(4, 3), 4, 3, 1),
    "own": (window(0, 0), 0, 0, 1),
    "ahead": (window(1, 6), 1, 6, 1),
    "finite": (window(3, 2, -3.4e38), 3, 2, 1),
    "filled": (fill_mask(2, 2), 2, 2, 1),
    "inverted": (inverted_mask(6, 1), 6, 1, 1),
    "chunk": (chunks(4, 0), 3, 3, 4),
    "chunks": (chunks(3, 2), 8, 2, 3),
    "slopes": (slopes(7, 2), 7, 2, 1),
    "columns": (column_slopes(5), 5, 0, 1),
    "lookup": (distance_table(4), 4, 4, 1),
    "buffer": (buffer(90, 6, 2), 6, 2, 1),
}
"""Masks, and how far back and ahead a frame sees, and after how many frames the mask repeats."""


def heads(graph: AttentionBuilder, q: str, k: str, v: str, mask: Mask, clean: bool = False) -> str:
    """Scaled dot products of two heads; q, k, v and the result are [1, T, 8]."""
    inner = WIDTH // HEADS
    parts = [graph.add("Reshape", x, graph.integers(1, -1, HEADS, inner)) for x in (q, k, v)]
    turned = [
        graph.add("Transpose", x, perm=perm)
        for x, perm in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    ]
    scores = graph.add("MatMul", turned[0], turned[1], name=f"scores{len(graph.nodes)}")
    scores = graph.add("Mul", scores, graph.constant(inner**-0.5))
    weights = graph.add("Softmax", mask(graph, scores), axis=-1)
    if clean:
        weights = graph.add("Where", graph.add("IsNaN", weights), graph.constant(0.0), weights)
    mixed = graph.add("Transpose", graph.add("MatMul", weights, turned[2]), perm=[0, 2, 1, 3])
    return graph.add("Reshape", mixed, graph.integers(1, -1, WIDTH))


def self_attention(mask: Mask, clean: bool = False) -> AttentionBuilder:
    """Projections of x, two heads, a projection."""
    graph = AttentionBuilder()
    q, k, v = (graph.linear("x") for _ in range(3))
    graph.add("MatMul", heads(graph, q, k, v, mask, clean), graph.weights(WIDTH, WIDTH), name="y")
    return graph


def flat_heads(mask: Mask) -> AttentionBuilder:
    """Heads as a batch [H, T, d]; the mask is added in [1, H, T, T]."""
    graph = AttentionBuilder()
    inner = WIDTH // HEADS
    parts = [graph.add("Reshape", graph.linear("x"), graph.integers(-1, HEADS, inner)) for _ in range(3)]
    q, k, v = (graph.add("Transpose", x, perm=[1, 0, 2]) for x in parts)
    scores = graph.add("MatMul", q, graph.add("Transpose", k, perm=[0, 2, 1]))
    wide = mask(graph, graph.add("Unsqueeze", scores, graph.integers(0)))
    weights = graph.add("Softmax", graph.add("Squeeze", wide, graph.integers(0)), axis=-1)
    mixed = graph.add("Transpose", graph.add("MatMul", weights, v), perm=[1, 0, 2])
    graph.add("Reshape", mixed, graph.integers(1, -1, WIDTH), name="y")
    return graph


def convolved_keys(mask: Mask) -> AttentionBuilder:
    """Over x [1, 8, T]: queries at 0, keys with a causal convolution, values that look two frames ahead."""
    graph = AttentionBuilder(frames_axis=2)

    def conv(kernel: int, pads: list[int]) -> str:
        w = graph.constant(floats((kernel, pads), WIDTH, WIDTH, kernel) * (WIDTH * kernel) ** -0.5)
        return graph.add("Conv", "x", w, kernel_shape=[kernel], pads=pads)

    q, k, v = conv(1, [0, 0]), conv(3, [2, 0]), conv(5, [2, 2])
    scores = graph.add("MatMul", graph.add("Transpose", q, perm=[0, 2, 1]), k)
    weights = graph.add("Softmax", mask(graph, scores), axis=2)
    graph.add("MatMul", v, graph.add("Transpose", weights, perm=[0, 2, 1]), name="y")
    return graph


def block(mask: Mask, layers: int = 2) -> AttentionBuilder:
    """Pre-norm transformer layers."""
    graph = AttentionBuilder()
    x = "x"
    for number in range(layers):
        scale = [graph.constant(1 + 0.1 * floats((number, n), WIDTH)) for n in range(4)]
        h = graph.add("LayerNormalization", x, *scale[:2], axis=-1)
        h = heads(graph, *(graph.linear(h) for _ in range(3)), mask)
        x = graph.add("Add", x, graph.linear(h))
        h = graph.add("LayerNormalization", x, *scale[2:], axis=-1)
        h = graph.add("Relu", graph.linear(h))
        last = number == layers - 1
        x = graph.add("Add", x, graph.linear(h), name="y" if last else "")
    return graph


def onnx_attention(
    name: str = "Attention", mask: str = "", flat: bool = True, **attributes: Any
) -> AttentionBuilder:
    """The Attention node; ``mask`` is a wire, or made by the caller."""
    graph = AttentionBuilder(frames_axis=1 if flat else 2)
    inputs = ["x", "k", "v", *([mask] if mask else [])]
    graph.add(name, *inputs, name="y", **attributes)
    return graph


def attention() -> Iterator[Case]:
    """All masks at a fixed size and over T, and the layouts of heads."""
    for name, (mask, *_) in MASKS.items():
        for streams in (False, True):
            feeds = {"x": floats(name, 1, 17, WIDTH)}
            yield f"attention_{name}_{streams}", self_attention(mask).model(feeds, streams=streams), feeds
    feeds = {"x": floats("shapes", 1, 17, WIDTH)}
    for name, build in (("flat", flat_heads), ("block", block)):
        yield f"attention_{name}", build(window(3, 1)).model(feeds), feeds
    turned = {"x": floats("turned", 1, WIDTH, 17)}
    yield "attention_convolved", convolved_keys(window(3, 1)).model(turned), turned


def node_attention() -> Iterator[Case]:
    """The Attention node: three and four axes, shared keys, masks."""
    head_counts = {"q_num_heads": 2, "kv_num_heads": 2}
    feeds = {"x": floats("one", 1, 9, WIDTH)}
    g = AttentionBuilder()
    g.add("Attention", "x", "x", "x", g.is_between(g.distances(), -1, 3), name="y", **head_counts)
    yield "Attention_window", g.model(feeds, 23), feeds
    for streams in (False, True):
        feeds = {name: floats(name, 1, 9, WIDTH) for name in "xkv"}
        yield f"Attention_{streams}", onnx_attention(**head_counts).model(feeds, 23, streams=streams), feeds
        graph = onnx_attention(**head_counts, is_causal=1, scale=0.3)
        yield f"Attention_causal_{streams}", graph.model(feeds, 23, streams=streams), feeds
        four = {name: floats(name, 1, 2, 9, 4) for name in "xkv"}
        yield f"Attention_4_{streams}", onnx_attention(flat=False).model(four, 23, streams=streams), four
        shared = {"x": floats("x", 1, 4, 9, 4), "k": floats("k", 1, 2, 9, 4), "v": floats("v", 1, 2, 9, 6)}
        graph = onnx_attention(flat=False, is_causal=1)
        yield f"Attention_shared_{streams}", graph.model(shared, 23, streams=streams), shared
    for dtype in (np.bool_, np.float32):
        g = onnx_attention(mask="m", **head_counts)
        visible = rng("mask").random((9, 9)) < 0.6
        g.constants["m"] = (visible | np.eye(9, dtype=np.bool_)).astype(dtype)
        feeds = {name: floats(name, 1, 9, WIDTH) for name in "xkv"}
        yield f"Attention_mask_{np.dtype(dtype)}", g.model(feeds, 23, streams=False), feeds


def cached_attention() -> Iterator[Case]:
    """The Attention node with keys and values of the past, a soft cap, half precision."""
    four = {name: floats(name, 1, 2, 5, 4) for name in "xkv"}
    past = {"pk": floats("pk", 1, 2, 3, 4), "pv": floats("pv", 1, 2, 3, 4)}
    for name, attributes in (("plain", {}), ("causal", {"is_causal": 1})):
        graph = AttentionBuilder(frames_axis=2)
        graph.nodes.append(node("Attention", "x k v _ pk pv", "y present_key present_value", **attributes))
        feeds = {**four, **past}
        yield (
            f"Attention_past_{name}",
            graph.model(feeds, 23, "y present_key present_value", streams=False),
            feeds,
        )
    for streams in (False, True):
        causal = onnx_attention(flat=False, is_causal=1, softcap=0.5)
        yield f"Attention_softcap_{streams}", causal.model(four, 23, streams=streams), four


ALL = (attention, node_attention, cached_attention)
