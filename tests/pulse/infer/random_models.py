"""Random models in the file's format with all shapes, and the same models without some of the facts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from onnx import ModelProto, NodeProto, helper, numpy_helper

from tests.noise import next_noise
from tests.pulse.infer.partial_models import declare_fact

Shape = tuple[int | str, ...]
"""Numbers, and T, which only the last axis has."""


@dataclass
class RandomBuilder:
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
        """Return a random wire; late ones are likelier."""
        suited = [name for name, shape in self.wires.items() if suits(shape)]
        return suited[-min(int(self.rng.geometric(0.6)), len(suited))] if suited else None

    def store(self, *shape: int) -> str:
        return self.keep(next_noise(self.rng, *shape))

    def keep(self, value: object) -> str:
        name = f"c{len(self.stored)}"
        self.stored[name] = np.asarray(value)
        return name

    def add(self, op: str, reads: Sequence[str], shapes: Sequence[Shape], **attributes: object) -> list[str]:
        names = [f"{op.lower()}{len(self.nodes)}{'abc'[slot]}" for slot in range(len(shapes))]
        self.nodes.append(helper.make_node(op, list(reads), names, name=f"n{len(self.nodes)}", **attributes))
        self.wires.update(zip(names, shapes))
        return names


def unary(builder: RandomBuilder) -> None:
    x = builder.pick()
    assert x is not None
    builder.add(("Relu", "Tanh", "Neg", "Identity")[builder.small(0, 3)], [x], [builder.wires[x]])


def binary(builder: RandomBuilder) -> None:
    x = builder.pick()
    assert x is not None
    other = builder.pick(lambda shape: shape == builder.wires[x]) if builder.small(0, 1) else None
    numbers = [dim if isinstance(dim, int) and builder.small(0, 2) else 1 for dim in builder.wires[x]]
    builder.add(
        ("Add", "Mul")[builder.small(0, 1)],
        [x, other or builder.store(*numbers[builder.small(0, 1) :])],
        [builder.wires[x]],
    )


def product(builder: RandomBuilder) -> None:
    x = builder.pick(lambda shape: len(shape) >= 2 and isinstance(shape[-1], int))
    if x is not None:
        rows, columns = builder.wires[x][-1], builder.small(1, 5)
        builder.add("MatMul", [x, builder.store(int(rows), columns)], [(*builder.wires[x][:-1], columns)])


def conv(builder: RandomBuilder) -> None:
    x = builder.pick(lambda shape: len(shape) == 3 and isinstance(shape[1], int))
    if x is None:
        return
    batch, channels, time = builder.wires[x]
    channels_out, span = builder.small(1, 4), builder.small(1, 3)
    pads = builder.small(0, 1)
    if isinstance(time, str) and 2 * pads != span - 1:
        pads, span = 0, 1
    long = time if isinstance(time, str) else time + 2 * pads - span + 1
    if isinstance(long, str) or long > 0:
        builder.add(
            "Conv",
            [x, builder.store(channels_out, int(channels), span)],
            [(batch, channels_out, long)],
            pads=[pads, pads],
        )


def transpose(builder: RandomBuilder) -> None:
    x = builder.pick(lambda shape: len(shape) >= 2)
    if x is not None:
        order = builder.rng.permutation(len(builder.wires[x])).tolist()
        builder.add("Transpose", [x], [tuple(builder.wires[x][axis] for axis in order)], perm=order)


def reshape(builder: RandomBuilder) -> None:
    x = builder.pick(lambda shape: all(isinstance(dim, int) for dim in shape) and len(shape) >= 2)
    if x is not None:
        first, *rest = builder.wires[x]
        target = (int(np.prod([int(dim) for dim in rest], dtype=int)), first)
        listed = [target[0], -1] if builder.small(0, 1) else list(target)
        builder.add("Reshape", [x, builder.keep(listed)], [target])


def shape_chain(builder: RandomBuilder) -> None:
    """A reshape to a shape that is computed: the first size, and the rest."""
    x = builder.pick(lambda shape: len(shape) >= 2 and all(isinstance(dim, int) for dim in shape[1:]))
    if x is None:
        return
    number = len(builder.nodes)
    size, element = f"s{number}", f"g{number}"
    builder.nodes.append(helper.make_node("Shape", [x], [size], name=f"n{number}"))
    builder.nodes.append(
        helper.make_node("Gather", [size, builder.keep([0])], [element], name=f"n{number + 1}", axis=0)
    )
    builder.nodes.append(
        helper.make_node(
            "Concat", [element, builder.keep([-1])], [f"l{number}"], name=f"n{number + 2}", axis=0
        )
    )
    rest = int(np.prod([int(dim) for dim in builder.wires[x][1:]], dtype=int))
    builder.add("Reshape", [x, f"l{number}"], [(builder.wires[x][0], rest)])


def concat(builder: RandomBuilder) -> None:
    x = builder.pick(lambda shape: len(shape) >= 1 and all(isinstance(dim, int) for dim in shape))
    if x is not None:
        axis = builder.small(0, len(builder.wires[x]) - 1)
        sizes = [int(dim) for dim in builder.wires[x]]
        other = [builder.small(1, 3) if place == axis else size for place, size in enumerate(sizes)]
        sizes[axis] += other[axis]
        builder.add("Concat", [x, builder.store(*other)], [tuple(sizes)], axis=axis)


def cut(builder: RandomBuilder) -> None:
    x = builder.pick(lambda shape: any(isinstance(dim, int) and dim > 1 for dim in shape))
    if x is not None:
        axis = next(axis for axis, dim in enumerate(builder.wires[x]) if isinstance(dim, int) and dim > 1)
        bounds = [builder.keep([1]), builder.keep([2**63 - 1]), builder.keep([axis])]
        size = int(builder.wires[x][axis]) - 1
        builder.add("Slice", [x, *bounds], [(*builder.wires[x][:axis], size, *builder.wires[x][axis + 1 :])])


def pad(builder: RandomBuilder) -> None:
    x = builder.pick(lambda shape: len(shape) >= 1 and isinstance(shape[0], int))
    if x is not None:
        rank = len(builder.wires[x])
        amounts = [1, *[0] * (rank - 1), 2, *[0] * (rank - 1)]
        builder.add(
            "Pad", [x, builder.keep(amounts)], [(int(builder.wires[x][0]) + 3, *builder.wires[x][1:])]
        )


def axes(builder: RandomBuilder) -> None:
    x = builder.pick(lambda shape: len(shape) < 4)
    if x is not None:
        axis = builder.small(0, len(builder.wires[x]))
        builder.add(
            "Unsqueeze", [x, builder.keep([axis])], [(*builder.wires[x][:axis], 1, *builder.wires[x][axis:])]
        )


def fewer_axes(builder: RandomBuilder) -> None:
    x = builder.pick(lambda shape: 1 in shape and len(shape) > 1)
    if x is not None:
        axis = builder.wires[x].index(1)
        builder.add(
            "Squeeze", [x, builder.keep([axis])], [(*builder.wires[x][:axis], *builder.wires[x][axis + 1 :])]
        )


def reduce(builder: RandomBuilder) -> None:
    x = builder.pick(lambda shape: len(shape) > 1 and isinstance(shape[0], int))
    if x is not None:
        keepdims = builder.small(0, 1)
        shape = ((1,) if keepdims else ()) + builder.wires[x][1:]
        builder.add("ReduceMean", [x], [shape], axes=[0], keepdims=keepdims)


def split(builder: RandomBuilder) -> None:
    x = builder.pick(
        lambda shape: len(shape) > 0 and isinstance(shape[0], int) and shape[0] % 2 == 0 and shape[0] > 0
    )
    if x is not None:
        half = (int(builder.wires[x][0]) // 2, *builder.wires[x][1:])
        builder.add("Split", [x], [half, half], axis=0)


def norm(builder: RandomBuilder) -> None:
    x = builder.pick(lambda shape: len(shape) >= 2 and isinstance(shape[1], int))
    if x is not None:
        parameters = [builder.store(int(builder.wires[x][1])) for _ in range(4)]
        builder.add("BatchNormalization", [x, *parameters], [builder.wires[x]])


def gru(builder: RandomBuilder) -> None:
    x = builder.pick(lambda shape: len(shape) == 3 and isinstance(shape[2], int))
    if x is not None:
        time, batch, features = builder.wires[x]
        hidden = builder.small(1, 3)
        weights = [builder.store(1, 3 * hidden, int(features)), builder.store(1, 3 * hidden, hidden)]
        shapes: list[Shape] = [(time, 1, batch, hidden), (1, batch, hidden)]
        builder.add("GRU", [x, *weights], shapes, hidden_size=hidden)


STEPS = (
    *(unary, binary, product, conv, transpose, reshape, shape_chain, concat, cut, pad, axes, fewer_axes),
    *(reduce, split, norm, gru),
)


def random_sketch(seed: int, steps: int, symbolic: bool = False) -> RandomBuilder:
    """A sketch of one or two inputs, and steps at random."""
    builder = RandomBuilder(np.random.default_rng(seed))
    for number in range(builder.small(1, 2)):
        shape: Shape = tuple(builder.small(1, 4) for _ in range(builder.small(2, 4)))
        builder.inputs[f"x{number}"] = (*shape[:-1], "T") if symbolic else shape
    builder.wires.update(builder.inputs)
    for _ in range(steps):
        STEPS[builder.small(0, len(STEPS) - 1)](builder)
    return builder


@dataclass(frozen=True)
class Knowledge:
    """The shapes of wires that a file states, as text, by name."""

    stated: dict[str, str]


def erase_facts(builder: RandomBuilder, seed: int, chance: float) -> Knowledge:
    """The truth without some sizes, shapes and types; from one seed, the higher the chance the more is left out."""
    rng = np.random.default_rng(seed)
    stated: dict[str, str] = {}
    for name, shape in builder.wires.items():
        draws = rng.random(8)
        dims = ["?" if draw < chance else str(dim) for draw, dim in zip(draws[2:], shape)]
        dtype = "?" if draws[0] < chance / 3 else "f32"
        stated[name] = ",".join(["...", dtype] if draws[1] < chance / 2 else [*dims, dtype])
    return Knowledge(stated)


def file(builder: RandomBuilder, knowledge: Knowledge, order: Generator | None = None) -> ModelProto:
    """The file that states that; ``order`` shuffles all that has no order of its own."""
    nodes = list(builder.nodes)
    names = [name for name in builder.wires if name not in builder.inputs]
    inputs, stored = list(builder.inputs), list(builder.stored)
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
        [numpy_helper.from_array(builder.stored[name], name) for name in stored],
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
