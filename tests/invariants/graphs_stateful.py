"""Steps of random models with a state or a long memory: recurrent layers, running sums, attention."""

import numpy as np

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.ops.cumulative import CumSum
from pulse.ops.elementwise import Elementwise
from pulse.ops.matmul import MatMul
from pulse.ops.norm import Softmax
from pulse.ops.recurrent import Recurrent
from pulse.ops.recurrent_cells import Activation, Cell
from pulse.ops.recurrent_gates import GATE_COUNTS, CellKind
from pulse.ops.shape import AddAxis, Transpose
from pulse.ops.time_position import Range
from tests.invariants.builder import MAX_CHANNELS, Builder


def _layer(builder: Builder, hidden: int, reverse: bool) -> Recurrent:
    kind: CellKind = builder.one_of(("rnn", "gru", "lstm"))
    bounded = tuple(Activation(builder.one_of(("sigmoid", "tanh"))) for _ in range(2))
    activations = (Activation("sigmoid"), *bounded)[: {"rnn": 1, "gru": 2, "lstm": 3}[kind]]
    cell = Cell(
        kind,
        activations,
        builder.one_of((None, 0.5)),
        builder.chance() and kind == "gru",
        builder.chance(0.2),
    )
    return Recurrent(cell, hidden, reverse, None, ("h", "c")[: cell.state_count] if builder.chance() else ())


def _recur(builder: Builder, x: OutletId, hidden: int, reverse: bool) -> OutletId:
    """A layer over x [L, B, I] with constant weights, perhaps with an initial state for all sequences."""
    features = int(builder.graph.fact(x).shape[2])
    op = _layer(builder, hidden, reverse)
    rows = GATE_COUNTS[op.cell.kind] * hidden
    shapes = [(rows, features), (rows, hidden), (2 * rows,), *[(1, hidden)] * len(op.optional)]
    return builder.add(op, x, *(builder.constant(builder.numbers(shape, 0.4)) for shape in shapes))


def recurrent(builder: Builder) -> None:
    x = builder.add(Transpose((2, 0, 1)), builder.pick())
    builder.keep(builder.add(Transpose((1, 2, 0)), _recur(builder, x, builder.small(1, MAX_CHANNELS), False)))


def recurrent_over_channels(builder: Builder) -> None:
    """Run a recurrent layer over the channels of each frame."""
    x = builder.add(Transpose((1, 2, 0)), builder.pick())
    builder.keep(builder.add(Transpose((2, 0, 1)), _recur(builder, x, 1, builder.chance())))


def running_sum(builder: Builder) -> None:
    """Between functions that keep the numbers small."""
    x = builder.add(Elementwise("tanh"), builder.pick())
    axis = builder.one_of((1, 2, 2))
    sums = builder.add(CumSum(axis, builder.chance(), axis == 1 and builder.chance()), x)
    builder.keep(builder.add(Elementwise("softsign"), sums))


def visible_columns(builder: Builder, frames: TDim) -> OutletId:
    """Which column each row sees: a window, or chunks; its own always."""
    integer = np.dtype(np.int64)
    columns = builder.add(Range(0, 1, frames, integer))
    rows = builder.add(AddAxis(1), columns)
    if builder.chance():
        size = builder.constant(np.array(builder.small(2, 5)))
        rows, columns = (builder.add(Elementwise("div"), x, size) for x in (rows, columns))
    differences = builder.add(Elementwise("sub"), rows, columns)
    bounds = (builder.constant(np.array(limit)) for limit in (-builder.small(0, 2), builder.small(0, 4)))
    after, before = (
        builder.add(Elementwise(kind), differences, x)
        for kind, x in zip(("greater_equal", "less_equal"), bounds)
    )
    return builder.add(Elementwise("and"), after, before)


def attention(builder: Builder) -> None:
    """Queries, keys and values from wires that need not be equally late."""
    x = builder.pick()
    alike = [other for other in builder.alike(x) if builder.channels(other) == builder.channels(x)]
    q, k, v = (
        builder.add(Elementwise("tanh"), wire)
        for wire in (x, builder.one_of(alike), builder.one_of(builder.alike(x)))
    )
    scores = builder.add(MatMul(), builder.add(Transpose((0, 2, 1)), q), k)
    low = builder.constant(np.array(builder.one_of((-np.inf, -1e9)), np.float32))
    masked = builder.add(Elementwise("where"), visible_columns(builder, builder.length(x)), scores, low)
    weights = builder.add(Softmax(2), masked)
    if builder.chance():
        builder.keep(builder.add(MatMul(), v, builder.add(Transpose((0, 2, 1)), weights)))
    else:
        builder.keep(
            builder.add(
                Transpose((0, 2, 1)), builder.add(MatMul(), weights, builder.add(Transpose((0, 2, 1)), v))
            )
        )


STATEFUL_STEPS = (recurrent, recurrent_over_channels, running_sum, attention)
