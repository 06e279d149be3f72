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
from pulse.graph import Graph, OutletId
from pulse.models import PulsedModel, TypedModel
from pulse.ops.concat import Concat
from pulse.ops.conv import Conv, ConvTranspose, Pads, no_pads
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.matmul import MatMul
from pulse.ops.norm import LayerNorm, Softmax
from pulse.ops.pad import Pad
from pulse.ops.pool import Pool
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
from tests.invariants.builder import MOST_CHANNELS, Builder
from tests.invariants.graphs_positions import POSITION_STEPS
from tests.invariants.graphs_stateful import attention, recurrent, recurrent_over_channels, running_sum

SHAPED = ("tanh", "sigmoid", "softplus", "softsign", "swish")
PLAIN = ("relu", "abs", "neg")
PADDINGS = ("constant", "edge", "reflect", "symmetric")
SLOWER = (Fraction(1, 2), Fraction(1, 3), Fraction(2, 3))
FASTER = (Fraction(2), Fraction(3), Fraction(3, 2))
COORDINATES: tuple[Coordinates, ...] = (
    "asymmetric",
    "half_pixel",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
)


def unary(b: Builder) -> None:
    x = b.pick()
    for _ in range(b.small(1, 2)):
        kind = b.one_of(SHAPED) if b.chance() else b.one_of(PLAIN)
        x = b.add(Elementwise(kind, (1.0,) if kind == "swish" else ()), x)
    b.keep(x)


def rectified_twice(b: Builder) -> None:
    x = b.add(Elementwise("relu"), b.pick())
    b.keep(b.add(Elementwise("relu"), x))


def gate(b: Builder) -> None:
    x = b.pick()
    same = [other for other in b.alike(x) if b.channels(other) in (1, b.channels(x))]
    b.keep(b.add(Elementwise("mul"), x, b.add(Elementwise("sigmoid"), b.one_of(same))))


def residual(b: Builder) -> None:
    x = b.pick()
    same = [other for other in b.alike(x) if b.channels(other) in (1, b.channels(x))]
    b.keep(b.add(Elementwise(b.one_of(("add", "sub", "min", "max"))), x, b.one_of(same)))


def several(b: Builder) -> None:
    x = b.pick()
    same = [other for other in b.alike(x) if b.channels(other) == b.channels(x)]
    chosen = [b.one_of(same) for _ in range(b.small(1, 3))]
    b.keep(b.add(Elementwise(b.one_of(("min", "max", "sum", "mean"))), *chosen))


def affine(b: Builder) -> None:
    b.keep(scale_channels(b, b.pick()))


def scale_channels(b: Builder, x: OutletId) -> OutletId:
    """A constant for each channel, or for all of them, added or multiplied."""
    channels = b.channels(x)
    value = b.constant(b.numbers(b.one_of(((), (1,), (channels, 1), (1, channels, 1)))))
    kind = b.one_of(("add", "sub", "mul", "div"))
    if kind == "div":
        size = np.abs(b.graph.fact(value).value)
        value = b.constant(size + np.float32(0.5) if b.chance() else np.ones_like(size))
    pair = (value, x) if kind != "div" and b.chance() else (x, value)
    return b.add(Elementwise(kind), *pair)


def chosen(b: Builder) -> None:
    x = b.pick()
    other = b.add(Elementwise("neg"), x)
    shape = b.one_of(((), (1, b.channels(x), 1)))
    fill = b.small(0, 2)
    condition = b.rng.random(shape) < 0.5 if fill == 2 else np.full(shape, bool(fill))
    b.keep(b.add(Elementwise("where"), b.constant(np.asarray(condition)), x, other))


def side_constant(b: Builder) -> None:
    """A constant that only shows when a condition on a second input is seen through."""
    x = b.pick()
    shape = (1, b.channels(x), 1)
    fact = TypedFact(np.dtype(np.float32), tuple(map(TDim.of, shape)))
    source = b.graph.add("side", Source(fact), (), [fact])[0]
    b.graph.inputs.append(source)
    condition = b.constant(np.full(shape, True))
    value = b.add(Elementwise("where"), condition, b.constant(b.numbers(shape)), source)
    value = b.add(Elementwise("tanh"), value)
    b.keep(b.add(Elementwise("add"), x, value))


def cast(b: Builder) -> None:
    b.keep(b.add(Cast(np.dtype(np.float32)), b.pick()))


def _pads(b: Builder, most: int) -> Pads:
    return ((TDim.of(b.small(0, most)), TDim.of(b.small(0, most))),) if b.chance() else no_pads(1)


def conv(b: Builder) -> None:
    x = scale_channels(b, b.pick()) if b.chance(0.4) else b.pick()
    channels = b.channels(x)
    group = b.one_of([g for g in range(1, channels + 1) if channels % g == 0])
    out = group * b.small(1, max(1, MOST_CHANNELS // group))
    kernel, dilation = b.small(1, 3), b.small(1, 2)
    stride = b.small(1, 2) if b.rate(x) >= 1 else 1
    w = b.numbers((out, channels // group, kernel), (channels // group * kernel) ** -0.5)
    inputs = [x, b.constant(w)]
    if b.chance():
        inputs.append(b.constant(b.numbers((out,))))
    y = b.add(Conv((stride,), (dilation,), _pads(b, 2), group), *inputs)
    b.keep(scale_channels(b, y) if b.chance(0.4) else y)


def conv_transpose(b: Builder) -> None:
    x = b.pick()
    channels = b.channels(x)
    group = b.one_of([g for g in range(1, channels + 1) if channels % g == 0])
    per_group = b.small(1, max(1, MOST_CHANNELS // group))
    stride = b.small(1, 2) if b.rate(x) <= 1 else 1
    kernel = b.small(stride, 4)
    pads = ((TDim.of(b.small(0, kernel - 1)), ZERO),) if b.chance() else no_pads(1)
    extra = b.small(0, stride - 1)
    w = b.numbers((channels, per_group, kernel), (channels // group * kernel / stride) ** -0.5)
    inputs = [x, b.constant(w)]
    if b.chance():
        inputs.append(b.constant(b.numbers((group * per_group,))))
    y = b.add(ConvTranspose((stride,), (1,), pads, (extra,), group), *inputs)
    b.keep(scale_channels(b, y) if b.chance(0.4) else y)


def pool(b: Builder) -> None:
    x = b.pick()
    kernel = b.small(1, 3)
    stride = b.small(1, 2) if b.rate(x) >= 1 else 1
    kind = b.one_of(("max", "average", "sum", "lp"))
    op = Pool(kind, (kernel,), (stride,), (1,), _pads(b, kernel - 1), b.chance())
    b.keep(b.add(op, x))


def pad(b: Builder) -> None:
    mode = b.one_of(PADDINGS)
    fill = b.one_of((0.0, 0.5)) if mode == "constant" else 0.0
    b.keep(b.add(Pad((*no_pads(2), *_pads(b, 2)), mode, fill), b.pick()))


def padded_conv(b: Builder) -> None:
    """A causal convolution as exporters write it."""
    x = b.pick()
    padded = b.add(Pad((*no_pads(2), (TDim.of(2), ZERO)), "constant", b.one_of((0.0, 0.0, 0.5))), x)
    w = b.constant(b.numbers((b.channels(x), 1, 3), 3**-0.5))
    b.keep(b.add(Conv((1,), (1,), no_pads(1), b.channels(x)), padded, w))


def padded_max(b: Builder) -> None:
    padded = b.add(Pad((*no_pads(2), (ONE, ZERO)), "constant", b.one_of((-np.inf, 0.0))), b.pick())
    b.keep(b.add(Pool("max", (2,), (1,), (1,), no_pads(1)), padded))


def cut(b: Builder) -> None:
    x = b.pick()
    for _ in range(b.small(1, 2)):
        step = b.small(1, 2) if b.rate(x) >= 1 else 1
        x = b.add(Slice(2, TDim.of(b.small(0, 1)), b.length(x) - b.small(0, 1), step), x)
    b.keep(x)


def trim(b: Builder) -> None:
    """To a multiple of some frames, a few or more than many pulses have."""
    x = b.pick()
    multiple = b.one_of((2, 3, 7, 90))
    b.keep(b.add(Slice(2, ZERO, b.length(x) // multiple * multiple), x))


def fall_behind(b: Builder) -> None:
    """From some length on without the last frames."""
    x = b.pick()
    length = b.length(x)
    end = dim_max(length - b.one_of((1, 30)), dim_min(length, TDim.of(b.one_of((10, 700)))))
    b.keep(b.add(Slice(2, ZERO, end), x))


def cut_channels(b: Builder) -> None:
    x = b.pick()
    x = b.add(Slice(1, TDim.of(b.small(0, b.channels(x) - 1)), TDim.of(b.channels(x))), x)
    b.keep(b.add(Slice(1, ZERO, TDim.of(b.small(1, b.channels(x)))), x))


def concat(b: Builder) -> None:
    x = b.pick()
    other = b.one_of(b.alike(x))
    if b.channels(x) + b.channels(other) <= MOST_CHANNELS:
        b.keep(b.add(Concat(1), x, other))
    else:
        b.keep(b.add(Concat(1), x))


def concat_ends(b: Builder) -> None:
    """Constants at the ends of a stream, perhaps without any frame."""
    x = b.pick()
    head, tail = (b.constant(b.numbers((1, b.channels(x), b.small(0, 2)))) for _ in range(2))
    b.keep(b.add(Concat(2), head, x, tail))


def transposes(b: Builder) -> None:
    x = b.add(Transpose((0, 2, 1)), b.pick())
    if b.chance():
        x = b.add(Elementwise("tanh"), x)
    b.keep(b.add(Transpose((0, 2, 1)), x))


def transposed_ones(b: Builder) -> None:
    x = b.add(AddAxis(1), b.pick())
    b.keep(b.add(RemoveAxis(0), b.add(Transpose((1, 0, 2, 3)), x)))


def axis_and_back(b: Builder) -> None:
    axis = b.small(0, 3)
    x = b.add(AddAxis(axis), b.pick())
    if b.chance():
        x = b.add(Elementwise("tanh"), x)
    b.keep(b.add(RemoveAxis(axis), x))


def reshapes(b: Builder) -> None:
    x = b.pick()
    shape = b.graph.fact(x).shape
    y = b.add(Reshape((shape[1], shape[2])), x)
    if b.chance():
        y = b.add(Reshape((shape[1], ONE, TDim.of(-1))), y)
    if b.chance():
        y = b.add(Elementwise("tanh"), y)
    b.keep(b.add(Reshape(shape), y))


def overlapping_frames(b: Builder) -> None:
    """Frames of the stream, whose samples become channels."""
    x = b.pick()
    size, hop = b.small(1, 3), b.small(1, 2) if b.rate(x) >= 1 else 1
    if size * b.channels(x) > MOST_CHANNELS:
        return
    rows = b.add(Frames(1, size, hop), b.add(Transpose((0, 2, 1)), x))
    if b.chance():
        rows = b.add(Elementwise("tanh"), rows)
    shape = b.graph.fact(rows).shape
    b.keep(b.add(Transpose((0, 2, 1)), b.add(Reshape((ONE, shape[1], shape[2] * shape[3])), rows)))


def expand(b: Builder) -> None:
    x = b.pick()
    target = (ONE, TDim.of(b.channels(x)), b.length(x))
    narrow = b.add(Reduce("mean", (1,), True), x)
    wide = b.add(Expand(target), narrow if b.chance(0.7) else x)
    b.keep(b.add(Elementwise("add"), x, wide) if b.chance(0.7) else wide)


def repeat(b: Builder) -> None:
    x = b.pick()
    times = b.small(1, max(1, MOST_CHANNELS // b.channels(x)))
    b.keep(b.add(Tile((ONE, TDim.of(times), ONE)), x))


def resize(b: Builder) -> None:
    """Time by a ratio of small numbers: nearest frames, straight lines, cubic curves."""
    x = b.pick()
    ratio = b.one_of(SLOWER if b.rate(x) > 1 else FASTER if b.rate(x) < 1 else (*SLOWER, *FASTER))
    coordinates = b.one_of(COORDINATES)
    sampling = b.one_of(
        (
            Sampling(coordinates, None),
            Sampling(coordinates, b.one_of(tuple(ROUNDING))),
            Sampling(coordinates, None, cubic=-0.75, antialias=b.chance()),
        )
    )
    length = b.length(x) * ratio.numerator // ratio.denominator
    b.keep(b.add(Interpolate(2, length, ratio, sampling), x))


def shuffle(b: Builder) -> None:
    """Channels become frames."""
    x = b.pick()
    channels = b.channels(x)
    if channels % 2 or b.rate(x) > 1:
        return
    half, two = TDim.of(channels // 2), TDim.of(2)
    x = b.add(Reshape((ONE, half, two, b.length(x))), x)
    x = b.add(Transpose((0, 1, 3, 2)), x)
    b.keep(b.add(Reshape((ONE, half, b.graph.fact(x).shape[2] * 2)), x))


def top(b: Builder) -> None:
    """The largest or smallest channels."""
    x = b.pick()
    values, _ = wire(b.graph, "top", TopK(1, b.small(1, b.channels(x)), b.chance()), [x])
    b.keep(values)


def normalise(b: Builder) -> None:
    """All channels of a frame."""
    x = b.pick()
    rows = b.add(Transpose((0, 2, 1)), x)
    y = b.add(LayerNorm(2, 0.1), rows, b.constant(b.numbers((b.channels(x),))))
    b.keep(b.add(Transpose((0, 2, 1)), y))


def ramp(b: Builder) -> None:
    """A function of the position alone."""
    x = b.pick()
    slope = b.add(Range(0.0, 0.01, b.length(x), np.dtype(np.float32)))
    row = b.add(Reshape((ONE, ONE, b.length(x))), slope)
    b.keep(b.add(Elementwise("add"), x, row))


def reduce(b: Builder) -> None:
    kind = b.one_of(("sum", "mean", "max", "min", "l2"))
    axes = b.one_of(((1,), (0,), (0, 1)))
    b.keep(b.add(Reduce(kind, axes, True), b.pick()))


def softmax(b: Builder) -> None:
    b.keep(b.add(Softmax(1), b.pick()))


def product(b: Builder) -> None:
    """A linear layer between two transposes, often followed by a scale."""
    x = b.pick()
    out = b.small(1, MOST_CHANNELS)
    rows = b.add(Transpose((0, 2, 1)), x)
    y = b.add(MatMul(), rows, b.constant(b.numbers((b.channels(x), out), b.channels(x) ** -0.5)))
    if b.chance():
        y = b.add(Elementwise("mul"), y, b.constant(b.numbers((out,))))
    b.keep(b.add(Transpose((0, 2, 1)), y))


def left_product(b: Builder) -> None:
    x = b.pick()
    w = b.constant(b.numbers((b.small(1, MOST_CHANNELS), b.channels(x)), b.channels(x) ** -0.5))
    b.keep(b.add(MatMul(), w, x))


def again(b: Builder) -> None:
    """A node a second time, and both in one sum."""
    x = b.pick()
    node = b.graph.node(x)
    if isinstance(node.op, Source) or not node.inputs:
        return
    twin = b.add(node.op, *node.inputs)
    b.keep(b.add(Elementwise("add"), b.add(Elementwise("tanh"), x), twin))


STEPS: dict[str, Callable[[Builder], None]] = {
    step.__name__: step
    for step in (
        unary, rectified_twice, gate, residual, several, affine, chosen, side_constant, cast, conv,
        conv_transpose, pool, pad, padded_conv, padded_max, cut, trim, fall_behind, cut_channels, concat, concat_ends,
        transposes, transposed_ones, axis_and_back, reshapes, overlapping_frames, expand, repeat, resize, shuffle, top,
        normalise, ramp, reduce, softmax, product, left_product, again, recurrent, recurrent_over_channels, running_sum,
        attention,
    )
}  # fmt: skip
"""The steps that ``random_model`` may add, by name. Only ``side_constant`` adds an input, which has no time axis."""


def random_model(
    rng: Generator, depth: int = 10, steps: Sequence[str] = tuple(STEPS), outputs: int = 3
) -> TypedModel:
    """A model of ``depth`` random steps with the input x [1, C, T] f32.

    outputs  at most so many: the last wire, and others
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
    others = {builder.one_of(builder.open) for _ in range(outputs - 1)} - {builder.open[-1]}
    graph.set_outputs([builder.open[-1], *sorted(others)])
    return TypedModel(graph, scope, "random")


def random_pulsed(seed: int, rng: Generator, depth: int) -> tuple[TypedModel, TypedModel, PulsedModel]:
    """A random model, what was pulsified of it (every other one decluttered), and its pulses, of random size."""
    typed = random_model(rng, int(rng.integers(1, depth + 1)))
    lean = typed.declutter() if seed % 2 else typed
    model, times = pulsify(lean), int(rng.integers(1, 5))
    return typed, lean, pulsify(lean, pulse=model.pulse * times) if times > 1 else model


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
