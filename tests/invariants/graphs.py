"""Random typed models: small graphs over wires [1, C, L] with L a function of the length T of the input.

``random_model(rng, depth, steps)`` is a function of the generator's seed. ``STEPS`` names what it may add;
leave names out to get models that suit a test. Constants are often 0 or 1, and many steps change nothing:
what is random here is meant to be simplified.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.random import Generator

from pulse.dim import ONE, ZERO, SymbolScope, TDim, dim_max, dim_min
from pulse.facts import Array, TypedFact
from pulse.graph import Graph
from pulse.models import PulsedModel, TypedModel
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.matmul import MatMul
from pulse.ops.norm import LayerNorm, Softmax
from pulse.ops.reduce import Reduce
from pulse.ops.resize import Interpolate
from pulse.ops.resize_sampling import ROUNDING, Coordinates, Sampling
from pulse.ops.search import TopK
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Tile, Transpose
from pulse.ops.slice import Slice
from pulse.ops.slice_frames import Frames
from pulse.ops.source import Source
from pulse.ops.time_position import Range
from pulse.pulsify.driver import pulsify
from pulse.typed import TypedGraph
from pulse.wiring import wire
from tests.invariants.builder import MAX_CHANNELS, Builder
from tests.invariants.graphs_positions import POSITION_STEPS
from tests.invariants.graphs_stateful import STATEFUL_STEPS
from tests.invariants.graphs_windows import WINDOW_STEPS, scale_channels

SHAPED = ("tanh", "sigmoid", "softplus", "softsign", "swish")
PLAIN = ("relu", "abs", "neg")
SLOWER = (Fraction(1, 2), Fraction(1, 3), Fraction(2, 3))
FASTER = (Fraction(2), Fraction(3), Fraction(3, 2))
COORDINATES: tuple[Coordinates, ...] = (
    "asymmetric",
    "half_pixel",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
)


def unary(builder: Builder) -> None:
    x = builder.pick()
    for _ in range(builder.small(1, 2)):
        kind = builder.one_of(SHAPED) if builder.chance() else builder.one_of(PLAIN)
        x = builder.add(Elementwise(kind, (1.0,) if kind == "swish" else ()), x)
    builder.keep(x)


def rectified_twice(builder: Builder) -> None:
    x = builder.add(Elementwise("relu"), builder.pick())
    builder.keep(builder.add(Elementwise("relu"), x))


def gate(builder: Builder) -> None:
    x = builder.pick()
    same = [other for other in builder.alike(x) if builder.channels(other) in (1, builder.channels(x))]
    builder.keep(
        builder.add(Elementwise("mul"), x, builder.add(Elementwise("sigmoid"), builder.one_of(same)))
    )


def residual(builder: Builder) -> None:
    x = builder.pick()
    same = [other for other in builder.alike(x) if builder.channels(other) in (1, builder.channels(x))]
    builder.keep(
        builder.add(Elementwise(builder.one_of(("add", "sub", "min", "max"))), x, builder.one_of(same))
    )


def several(builder: Builder) -> None:
    x = builder.pick()
    same = [other for other in builder.alike(x) if builder.channels(other) == builder.channels(x)]
    chosen = [builder.one_of(same) for _ in range(builder.small(1, 3))]
    builder.keep(builder.add(Elementwise(builder.one_of(("min", "max", "sum", "mean"))), *chosen))


def affine(builder: Builder) -> None:
    builder.keep(scale_channels(builder, builder.pick()))


def constant_where(builder: Builder) -> None:
    x = builder.pick()
    other = builder.add(Elementwise("neg"), x)
    shape = builder.one_of(((), (1, builder.channels(x), 1)))
    fill = builder.small(0, 2)
    condition = builder.rng.random(shape) < 0.5 if fill == 2 else np.full(shape, bool(fill))
    builder.keep(builder.add(Elementwise("where"), builder.constant(np.asarray(condition)), x, other))


def side_constant(builder: Builder) -> None:
    """A constant that only shows when a condition on a second input is seen through."""
    x = builder.pick()
    shape = (1, builder.channels(x), 1)
    fact = TypedFact(np.dtype(np.float32), tuple(map(TDim.of, shape)))
    source = builder.graph.add("side", Source(fact), (), [fact])[0]
    builder.graph.inputs.append(source)
    condition = builder.constant(np.full(shape, True))
    value = builder.add(Elementwise("where"), condition, builder.constant(builder.numbers(shape)), source)
    value = builder.add(Elementwise("tanh"), value)
    builder.keep(builder.add(Elementwise("add"), x, value))


def cast(builder: Builder) -> None:
    builder.keep(builder.add(Cast(np.dtype(np.float32)), builder.pick()))


def cut(builder: Builder) -> None:
    x = builder.pick()
    for _ in range(builder.small(1, 2)):
        step = builder.small(1, 2) if builder.rate(x) >= 1 else 1
        x = builder.add(
            Slice(2, TDim.of(builder.small(0, 1)), builder.length(x) - builder.small(0, 1), step), x
        )
    builder.keep(x)


def trim(builder: Builder) -> None:
    """Cut the length to a multiple of a number of frames, which may be larger than a pulse."""
    x = builder.pick()
    multiple = builder.one_of((2, 3, 7, 90))
    builder.keep(builder.add(Slice(2, ZERO, builder.length(x) // multiple * multiple), x))


def fall_behind(builder: Builder) -> None:
    """Drop the last frames of long streams only."""
    x = builder.pick()
    length = builder.length(x)
    end = dim_max(length - builder.one_of((1, 30)), dim_min(length, TDim.of(builder.one_of((10, 700)))))
    builder.keep(builder.add(Slice(2, ZERO, end), x))


def cut_channels(builder: Builder) -> None:
    x = builder.pick()
    x = builder.add(
        Slice(1, TDim.of(builder.small(0, builder.channels(x) - 1)), TDim.of(builder.channels(x))), x
    )
    builder.keep(builder.add(Slice(1, ZERO, TDim.of(builder.small(1, builder.channels(x)))), x))


def concat(builder: Builder) -> None:
    x = builder.pick()
    other = builder.one_of(builder.alike(x))
    if builder.channels(x) + builder.channels(other) <= MAX_CHANNELS:
        builder.keep(builder.add(Concat(1), x, other))
    else:
        builder.keep(builder.add(Concat(1), x))


def concat_ends(builder: Builder) -> None:
    """Constants at the ends of a stream, perhaps without any frame."""
    x = builder.pick()
    head, tail = (
        builder.constant(builder.numbers((1, builder.channels(x), builder.small(0, 2)))) for _ in range(2)
    )
    builder.keep(builder.add(Concat(2), head, x, tail))


def transposes(builder: Builder) -> None:
    x = builder.add(Transpose((0, 2, 1)), builder.pick())
    if builder.chance():
        x = builder.add(Elementwise("tanh"), x)
    builder.keep(builder.add(Transpose((0, 2, 1)), x))


def transposed_ones(builder: Builder) -> None:
    x = builder.add(AddAxis(1), builder.pick())
    builder.keep(builder.add(RemoveAxis(0), builder.add(Transpose((1, 0, 2, 3)), x)))


def axis_and_back(builder: Builder) -> None:
    axis = builder.small(0, 3)
    x = builder.add(AddAxis(axis), builder.pick())
    if builder.chance():
        x = builder.add(Elementwise("tanh"), x)
    builder.keep(builder.add(RemoveAxis(axis), x))


def reshapes(builder: Builder) -> None:
    x = builder.pick()
    shape = builder.graph.fact(x).shape
    y = builder.add(Reshape((shape[1], shape[2])), x)
    if builder.chance():
        y = builder.add(Reshape((shape[1], ONE, TDim.of(-1))), y)
    if builder.chance():
        y = builder.add(Elementwise("tanh"), y)
    builder.keep(builder.add(Reshape(shape), y))


def overlapping_frames(builder: Builder) -> None:
    """Frames of the stream, whose samples become channels."""
    x = builder.pick()
    size, hop = builder.small(1, 3), builder.small(1, 2) if builder.rate(x) >= 1 else 1
    if size * builder.channels(x) > MAX_CHANNELS:
        return
    rows = builder.add(Frames(1, size, hop), builder.add(Transpose((0, 2, 1)), x))
    if builder.chance():
        rows = builder.add(Elementwise("tanh"), rows)
    shape = builder.graph.fact(rows).shape
    builder.keep(
        builder.add(Transpose((0, 2, 1)), builder.add(Reshape((ONE, shape[1], shape[2] * shape[3])), rows))
    )


def expand(builder: Builder) -> None:
    x = builder.pick()
    target = (ONE, TDim.of(builder.channels(x)), builder.length(x))
    narrow = builder.add(Reduce("mean", (1,), True), x)
    wide = builder.add(Expand(target), narrow if builder.chance(0.7) else x)
    builder.keep(builder.add(Elementwise("add"), x, wide) if builder.chance(0.7) else wide)


def repeat(builder: Builder) -> None:
    x = builder.pick()
    times = builder.small(1, max(1, MAX_CHANNELS // builder.channels(x)))
    builder.keep(builder.add(Tile((ONE, TDim.of(times), ONE)), x))


def resize(builder: Builder) -> None:
    """Time by a ratio of small numbers: nearest frames, straight lines, cubic curves."""
    x = builder.pick()
    ratio = builder.one_of(
        SLOWER if builder.rate(x) > 1 else FASTER if builder.rate(x) < 1 else (*SLOWER, *FASTER)
    )
    coordinates = builder.one_of(COORDINATES)
    sampling = builder.one_of(
        (
            Sampling(coordinates, None),
            Sampling(coordinates, builder.one_of(tuple(ROUNDING))),
            Sampling(coordinates, None, cubic=-0.75, antialias=builder.chance()),
        )
    )
    length = builder.length(x) * ratio.numerator // ratio.denominator
    builder.keep(builder.add(Interpolate(2, length, ratio, sampling), x))


def shuffle(builder: Builder) -> None:
    """Move half of the channels to the frames."""
    x = builder.pick()
    channels = builder.channels(x)
    if channels % 2 or builder.rate(x) > 1:
        return
    half, two = TDim.of(channels // 2), TDim.of(2)
    x = builder.add(Reshape((ONE, half, two, builder.length(x))), x)
    x = builder.add(Transpose((0, 1, 3, 2)), x)
    builder.keep(builder.add(Reshape((ONE, half, builder.graph.fact(x).shape[2] * 2)), x))


def top(builder: Builder) -> None:
    """The largest or smallest channels."""
    x = builder.pick()
    values, _ = wire(
        builder.graph, "top", TopK(1, builder.small(1, builder.channels(x)), builder.chance()), [x]
    )
    builder.keep(values)


def normalise(builder: Builder) -> None:
    """Normalise over all channels of a frame."""
    x = builder.pick()
    rows = builder.add(Transpose((0, 2, 1)), x)
    y = builder.add(LayerNorm(2, 0.1), rows, builder.constant(builder.numbers((builder.channels(x),))))
    builder.keep(builder.add(Transpose((0, 2, 1)), y))


def ramp(builder: Builder) -> None:
    """A function of the position alone."""
    x = builder.pick()
    slope = builder.add(Range(0.0, 0.01, builder.length(x), np.dtype(np.float32)))
    row = builder.add(Reshape((ONE, ONE, builder.length(x))), slope)
    builder.keep(builder.add(Elementwise("add"), x, row))


def reduce(builder: Builder) -> None:
    kind = builder.one_of(("sum", "mean", "max", "min", "l2"))
    axes = builder.one_of(((1,), (0,), (0, 1)))
    builder.keep(builder.add(Reduce(kind, axes, True), builder.pick()))


def softmax(builder: Builder) -> None:
    builder.keep(builder.add(Softmax(1), builder.pick()))


def product(builder: Builder) -> None:
    """A linear layer between two transposes, often followed by a scale."""
    x = builder.pick()
    out = builder.small(1, MAX_CHANNELS)
    rows = builder.add(Transpose((0, 2, 1)), x)
    y = builder.add(
        MatMul(),
        rows,
        builder.constant(builder.numbers((builder.channels(x), out), builder.channels(x) ** -0.5)),
    )
    if builder.chance():
        y = builder.add(Elementwise("mul"), y, builder.constant(builder.numbers((out,))))
    builder.keep(builder.add(Transpose((0, 2, 1)), y))


def left_product(builder: Builder) -> None:
    x = builder.pick()
    w = builder.constant(
        builder.numbers((builder.small(1, MAX_CHANNELS), builder.channels(x)), builder.channels(x) ** -0.5)
    )
    builder.keep(builder.add(MatMul(), w, x))


def repeated_node(builder: Builder) -> None:
    """A node a second time, and both in one sum."""
    x = builder.pick()
    node = builder.graph.node(x)
    if isinstance(node.op, Source) or not node.inputs:
        return
    twin = builder.add(node.op, *node.inputs)
    builder.keep(builder.add(Elementwise("add"), builder.add(Elementwise("tanh"), x), twin))


STEPS: dict[str, Callable[[Builder], None]] = {
    step.__name__: step
    for step in (
        unary, rectified_twice, gate, residual, several, affine, constant_where, side_constant, cast,
        *WINDOW_STEPS, cut, trim, fall_behind, cut_channels, concat, concat_ends, transposes, transposed_ones,
        axis_and_back, reshapes, overlapping_frames, expand, repeat, resize, shuffle, top, normalise, ramp,
        reduce, softmax, product, left_product, repeated_node, *STATEFUL_STEPS,
    )
}  # fmt: skip
"""The steps that ``random_model`` may add, by name. Only ``side_constant`` adds an input, which has no time axis."""


def random_model(rng: Generator, depth: int, steps: Sequence[str] = tuple(STEPS)) -> TypedModel:
    """A model of ``depth`` random steps with the input x [1, C, T] f32.

    Its outputs are the last wire and up to two others.
    """
    scope = SymbolScope()
    symbol = TDim.of(scope.symbol("T"))
    scope.assume("T >= 0")
    graph: TypedGraph = Graph()
    fact = TypedFact(np.dtype(np.float32), (ONE, TDim.of(int(rng.integers(1, 5))), symbol))
    graph.inputs = graph.add("x", Source(fact), (), [fact])
    builder = Builder(rng, graph, symbol, list(graph.inputs))
    for _ in range(depth):
        {**STEPS, **POSITION_STEPS}[builder.one_of(steps)](builder)
    others = {builder.one_of(builder.open) for _ in range(2)} - {builder.open[-1]}
    graph.set_outputs([builder.open[-1], *sorted(others)])
    return TypedModel(graph, scope, "random")


def random_pulsed(seed: int, rng: Generator, depth: int) -> tuple[TypedModel, TypedModel, PulsedModel]:
    """A random model, what was pulsified of it (every other one decluttered), and its pulses, of random size."""
    typed = random_model(rng, int(rng.integers(1, depth + 1)))
    simplified = typed.declutter() if seed % 2 else typed
    model, times = pulsify(simplified), int(rng.integers(1, 5))
    return typed, simplified, pulsify(simplified, pulse=model.pulse * times) if times > 1 else model


def shortest(model: TypedModel) -> int:
    """The smallest T that the model allows and at which each wire has a frame."""
    (symbol,) = model.symbols
    facts = [model.graph.fact(outlet) for outlet in model.graph.wires()]
    dims = {dim for fact in facts for dim in fact.shape if not dim.is_const}
    dims |= set(model.scope.assumptions)
    return next(length for length in range(1, 5000) if all(dim.eval({symbol: length}) >= 1 for dim in dims))


def feeds(model: TypedModel, length: int, rng: Generator) -> dict[str, Array]:
    """Random values of all inputs for a stream of ``length`` frames."""
    (symbol,) = model.symbols
    return {
        name: rng.standard_normal([dim.eval({symbol: length}) for dim in fact.shape]).astype(fact.dtype)
        for name, fact in model.inputs.items()
    }
