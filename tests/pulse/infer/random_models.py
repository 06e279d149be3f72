"""Random models in the file's format with all shapes, and the same models without some of the facts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from onnx import ModelProto, NodeProto, helper, numpy_helper

from tests.pulse.infer.partial_models import declare_fact

Shape = tuple[int | str, ...]
"""Numbers, and T, which only the last axis has."""


@dataclass
class Sketch:
    """A model under construction: float wires and their shapes."""

    rng: Generator
    inputs: dict[str, Shape] = field(default_factory=dict[str, Shape])
    wires: dict[str, Shape] = field(default_factory=dict[str, Shape])
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    stored: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])

    def small(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def pick(self, suits: Callable[[Shape], bool] = lambda shape: True) -> str | None:
        """A wire, rather a late one."""
        suited = [name for name, shape in self.wires.items() if suits(shape)]
        return suited[-min(int(self.rng.geometric(0.6)), len(suited))] if suited else None

    def store(self, *shape: int) -> str:
        return self.keep(self.rng.standard_normal(shape).astype(np.float32))

    def keep(self, value: object) -> str:
        name = f"c{len(self.stored)}"
        self.stored[name] = np.asarray(value)
        return name

    def add(self, op: str, reads: Sequence[str], shapes: Sequence[Shape], **attributes: object) -> list[str]:
        names = [f"{op.lower()}{len(self.nodes)}{'abc'[slot]}" for slot in range(len(shapes))]
        self.nodes.append(helper.make_node(op, list(reads), names, name=f"n{len(self.nodes)}", **attributes))
        self.wires.update(zip(names, shapes))
        return names


def unary(sketch: Sketch) -> None:
    x = sketch.pick()
    assert x is not None
    sketch.add(("Relu", "Tanh", "Neg", "Identity")[sketch.small(0, 3)], [x], [sketch.wires[x]])


def binary(sketch: Sketch) -> None:
    x = sketch.pick()
    assert x is not None
    other = sketch.pick(lambda shape: shape == sketch.wires[x]) if sketch.small(0, 1) else None
    numbers = [dim if isinstance(dim, int) and sketch.small(0, 2) else 1 for dim in sketch.wires[x]]
    sketch.add(
        ("Add", "Mul")[sketch.small(0, 1)],
        [x, other or sketch.store(*numbers[sketch.small(0, 1) :])],
        [sketch.wires[x]],
    )


def product(sketch: Sketch) -> None:
    x = sketch.pick(lambda shape: len(shape) >= 2 and isinstance(shape[-1], int))
    if x is not None:
        rows, columns = sketch.wires[x][-1], sketch.small(1, 5)
        sketch.add("MatMul", [x, sketch.store(int(rows), columns)], [(*sketch.wires[x][:-1], columns)])


def conv(sketch: Sketch) -> None:
    x = sketch.pick(lambda shape: len(shape) == 3 and isinstance(shape[1], int))
    if x is None:
        return
    batch, channels, time = sketch.wires[x]
    channels_out, span = sketch.small(1, 4), sketch.small(1, 3)
    pads = sketch.small(0, 1)
    if isinstance(time, str) and 2 * pads != span - 1:
        pads, span = 0, 1
    long = time if isinstance(time, str) else time + 2 * pads - span + 1
    if isinstance(long, str) or long > 0:
        sketch.add(
            "Conv",
            [x, sketch.store(channels_out, int(channels), span)],
            [(batch, channels_out, long)],
            pads=[pads, pads],
        )


def transpose(sketch: Sketch) -> None:
    x = sketch.pick(lambda shape: len(shape) >= 2)
    if x is not None:
        order = sketch.rng.permutation(len(sketch.wires[x])).tolist()
        sketch.add("Transpose", [x], [tuple(sketch.wires[x][axis] for axis in order)], perm=order)


def reshape(sketch: Sketch) -> None:
    x = sketch.pick(lambda shape: all(isinstance(dim, int) for dim in shape) and len(shape) >= 2)
    if x is not None:
        first, *rest = sketch.wires[x]
        target = (int(np.prod([int(dim) for dim in rest], dtype=int)), first)
        listed = [target[0], -1] if sketch.small(0, 1) else list(target)
        sketch.add("Reshape", [x, sketch.keep(listed)], [target])


def shape_chain(sketch: Sketch) -> None:
    """A reshape to a shape that is computed: the first size, and the rest."""
    x = sketch.pick(lambda shape: len(shape) >= 2 and all(isinstance(dim, int) for dim in shape[1:]))
    if x is None:
        return
    number = len(sketch.nodes)
    size, element = f"s{number}", f"g{number}"
    sketch.nodes.append(helper.make_node("Shape", [x], [size], name=f"n{number}"))
    sketch.nodes.append(
        helper.make_node("Gather", [size, sketch.keep([0])], [element], name=f"n{number + 1}", axis=0)
    )
    sketch.nodes.append(
        helper.make_node(
            "Concat", [element, sketch.keep([-1])], [f"l{number}"], name=f"n{number + 2}", axis=0
        )
    )
    rest = int(np.prod([int(dim) for dim in sketch.wires[x][1:]], dtype=int))
    sketch.add("Reshape", [x, f"l{number}"], [(sketch.wires[x][0], rest)])


def concat(sketch: Sketch) -> None:
    x = sketch.pick(lambda shape: len(shape) >= 1 and all(isinstance(dim, int) for dim in shape))
    if x is not None:
        axis = sketch.small(0, len(sketch.wires[x]) - 1)
        sizes = [int(dim) for dim in sketch.wires[x]]
        other = [sketch.small(1, 3) if place == axis else size for place, size in enumerate(sizes)]
        sizes[axis] += other[axis]
        sketch.add("Concat", [x, sketch.store(*other)], [tuple(sizes)], axis=axis)


def cut(sketch: Sketch) -> None:
    x = sketch.pick(lambda shape: any(isinstance(dim, int) and dim > 1 for dim in shape))
    if x is not None:
        axis = next(axis for axis, dim in enumerate(sketch.wires[x]) if isinstance(dim, int) and dim > 1)
        bounds = [sketch.keep([1]), sketch.keep([2**63 - 1]), sketch.keep([axis])]
        size = int(sketch.wires[x][axis]) - 1
        sketch.add("Slice", [x, *bounds], [(*sketch.wires[x][:axis], size, *sketch.wires[x][axis + 1 :])])


def pad(sketch: Sketch) -> None:
    x = sketch.pick(lambda shape: len(shape) >= 1 and isinstance(shape[0], int))
    if x is not None:
        rank = len(sketch.wires[x])
        amounts = [1, *[0] * (rank - 1), 2, *[0] * (rank - 1)]
        sketch.add("Pad", [x, sketch.keep(amounts)], [(int(sketch.wires[x][0]) + 3, *sketch.wires[x][1:])])


def axes(sketch: Sketch) -> None:
    x = sketch.pick(lambda shape: len(shape) < 4)
    if x is not None:
        axis = sketch.small(0, len(sketch.wires[x]))
        sketch.add(
            "Unsqueeze", [x, sketch.keep([axis])], [(*sketch.wires[x][:axis], 1, *sketch.wires[x][axis:])]
        )


def fewer_axes(sketch: Sketch) -> None:
    x = sketch.pick(lambda shape: 1 in shape and len(shape) > 1)
    if x is not None:
        axis = sketch.wires[x].index(1)
        sketch.add(
            "Squeeze", [x, sketch.keep([axis])], [(*sketch.wires[x][:axis], *sketch.wires[x][axis + 1 :])]
        )


def reduce(sketch: Sketch) -> None:
    x = sketch.pick(lambda shape: len(shape) > 1 and isinstance(shape[0], int))
    if x is not None:
        keepdims = sketch.small(0, 1)
        shape = ((1,) if keepdims else ()) + sketch.wires[x][1:]
        sketch.add("ReduceMean", [x], [shape], axes=[0], keepdims=keepdims)


def split(sketch: Sketch) -> None:
    x = sketch.pick(
        lambda shape: len(shape) > 0 and isinstance(shape[0], int) and shape[0] % 2 == 0 and shape[0] > 0
    )
    if x is not None:
        half = (int(sketch.wires[x][0]) // 2, *sketch.wires[x][1:])
        sketch.add("Split", [x], [half, half], axis=0)


def norm(sketch: Sketch) -> None:
    x = sketch.pick(lambda shape: len(shape) >= 2 and isinstance(shape[1], int))
    if x is not None:
        parameters = [sketch.store(int(sketch.wires[x][1])) for _ in range(4)]
        sketch.add("BatchNormalization", [x, *parameters], [sketch.wires[x]])


def gru(sketch: Sketch) -> None:
    x = sketch.pick(lambda shape: len(shape) == 3 and isinstance(shape[2], int))
    if x is not None:
        time, batch, features = sketch.wires[x]
        hidden = sketch.small(1, 3)
        weights = [sketch.store(1, 3 * hidden, int(features)), sketch.store(1, 3 * hidden, hidden)]
        shapes: list[Shape] = [(time, 1, batch, hidden), (1, batch, hidden)]
        sketch.add("GRU", [x, *weights], shapes, hidden_size=hidden)


STEPS = (
    *(unary, binary, product, conv, transpose, reshape, shape_chain, concat, cut, pad, axes, fewer_axes),
    *(reduce, split, norm, gru),
)


def random_sketch(seed: int, steps: int, symbolic: bool = False) -> Sketch:
    """One or two inputs, and steps at random."""
    sketch = Sketch(np.random.default_rng(seed))
    for number in range(sketch.small(1, 2)):
        shape: Shape = tuple(sketch.small(1, 4) for _ in range(sketch.small(2, 4)))
        sketch.inputs[f"x{number}"] = (*shape[:-1], "T") if symbolic else shape
    sketch.wires.update(sketch.inputs)
    for _ in range(steps):
        STEPS[sketch.small(0, len(STEPS) - 1)](sketch)
    return sketch


@dataclass(frozen=True)
class Knowledge:
    """The shapes of wires that a file states, as text, by name."""

    stated: dict[str, str]


def erase_facts(sketch: Sketch, seed: int, chance: float) -> Knowledge:
    """The truth without some sizes, shapes and types; from one seed, the higher the chance the more is left out."""
    rng = np.random.default_rng(seed)
    stated: dict[str, str] = {}
    for name, shape in sketch.wires.items():
        draws = rng.random(8)
        dims = ["?" if draw < chance else str(dim) for draw, dim in zip(draws[2:], shape)]
        dtype = "?" if draws[0] < chance / 3 else "f32"
        stated[name] = ",".join(["...", dtype] if draws[1] < chance / 2 else [*dims, dtype])
    return Knowledge(stated)


def file(sketch: Sketch, knowledge: Knowledge, order: Generator | None = None) -> ModelProto:
    """The file that states that; ``order`` shuffles all that has no order of its own."""
    nodes = list(sketch.nodes)
    names = [name for name in sketch.wires if name not in sketch.inputs]
    inputs, stored = list(sketch.inputs), list(sketch.stored)
    if order is not None:
        nodes = shuffle_nodes(nodes, order)
        for listed in (names, inputs, stored):
            order.shuffle(listed)  # type: ignore[arg-type]
    used = {name for node in nodes for name in node.input}
    outputs = [name for name in names if name not in used]
    graph = helper.make_graph(
        nodes,
        "random",
        [declare_fact(name, knowledge.stated[name]) for name in inputs],
        [declare_fact(name, knowledge.stated[name]) for name in sorted(outputs)],
        [numpy_helper.from_array(sketch.stored[name], name) for name in stored],
        value_info=[declare_fact(name, knowledge.stated[name]) for name in names if name in used],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def shuffle_nodes(nodes: Sequence[NodeProto], rng: Generator) -> list[NodeProto]:
    """Nodes in a random order in which each comes after what it reads."""
    made_by = {name: node.name for node in nodes for name in node.output}
    waiting, placed_nodes = list(nodes), list[NodeProto]()
    while waiting:
        placed = {node.name for node in placed_nodes}
        ready = [node for node in waiting if all(made_by.get(name) in {None, *placed} for name in node.input)]
        chosen = ready[int(rng.integers(len(ready)))]
        placed_nodes.append(chosen)
        waiting.remove(chosen)
    return placed_nodes
