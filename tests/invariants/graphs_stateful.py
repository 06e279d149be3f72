"""Steps of random models with a state or a long memory: recurrent layers, running sums, attention."""

import numpy as np

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.ops.cumulative import CumSum
from pulse.ops.elementwise import Elementwise
from pulse.ops.matmul import MatMul
from pulse.ops.norm import Softmax
from pulse.ops.recurrent import Recurrent
from pulse.ops.recurrent_cells import GATE_COUNTS, Activation, Cell, CellKind
from pulse.ops.shape import AddAxis, Transpose
from pulse.ops.time_position import Range
from tests.invariants.builder import MOST_CHANNELS, Builder


def _layer(b: Builder, hidden: int, reverse: bool) -> Recurrent:
    kind: CellKind = b.one_of(("rnn", "gru", "lstm"))
    bounded = tuple(Activation(b.one_of(("sigmoid", "tanh"))) for _ in range(2))
    activations = (Activation("sigmoid"), *bounded)[: {"rnn": 1, "gru": 2, "lstm": 3}[kind]]
    cell = Cell(kind, activations, b.one_of((None, 0.5)), b.chance() and kind == "gru", b.chance(0.2))
    return Recurrent(cell, hidden, reverse, None, ("h", "c")[: cell.states] if b.chance() else ())


def _recur(b: Builder, x: OutletId, hidden: int, reverse: bool) -> OutletId:
    """A layer over x [L, B, I] with constant weights, perhaps with an initial state for all sequences."""
    features = int(b.graph.fact(x).shape[2])
    op = _layer(b, hidden, reverse)
    rows = GATE_COUNTS[op.cell.kind] * hidden
    shapes = [(rows, features), (rows, hidden), (2 * rows,), *[(1, hidden)] * len(op.optional)]
    return b.add(op, x, *(b.constant(b.numbers(shape, 0.4)) for shape in shapes))


def recurrent(b: Builder) -> None:
    x = b.add(Transpose((2, 0, 1)), b.pick())
    b.keep(b.add(Transpose((1, 2, 0)), _recur(b, x, b.small(1, MOST_CHANNELS), False)))


def recurrent_over_channels(b: Builder) -> None:
    """Every frame is a sequence of its own."""
    x = b.add(Transpose((1, 2, 0)), b.pick())
    b.keep(b.add(Transpose((2, 0, 1)), _recur(b, x, 1, b.chance())))


def running_sum(b: Builder) -> None:
    """Between functions that keep the numbers small."""
    x = b.add(Elementwise("tanh"), b.pick())
    axis = b.one_of((1, 2, 2))
    sums = b.add(CumSum(axis, b.chance(), axis == 1 and b.chance()), x)
    b.keep(b.add(Elementwise("softsign"), sums))


def visible_columns(b: Builder, frames: TDim) -> OutletId:
    """Which column each row sees: a window, or chunks; its own always."""
    integer = np.dtype(np.int64)
    columns = b.add(Range(0, 1, frames, integer))
    rows = b.add(AddAxis(1), columns)
    if b.chance():
        size = b.constant(np.array(b.small(2, 5)))
        rows, columns = (b.add(Elementwise("div"), x, size) for x in (rows, columns))
    behind = b.add(Elementwise("sub"), rows, columns)
    bounds = (b.constant(np.array(limit)) for limit in (-b.small(0, 2), b.small(0, 4)))
    after, before = (
        b.add(Elementwise(kind), behind, x) for kind, x in zip(("greater_equal", "less_equal"), bounds)
    )
    return b.add(Elementwise("and"), after, before)


def attention(b: Builder) -> None:
    """Queries, keys and values from wires that need not be equally late."""
    x = b.pick()
    alike = [other for other in b.alike(x) if b.channels(other) == b.channels(x)]
    q, k, v = (b.add(Elementwise("tanh"), wire) for wire in (x, b.one_of(alike), b.one_of(b.alike(x))))
    scores = b.add(MatMul(), b.add(Transpose((0, 2, 1)), q), k)
    low = b.constant(np.array(b.one_of((-np.inf, -1e9)), np.float32))
    masked = b.add(Elementwise("where"), visible_columns(b, b.length(x)), scores, low)
    weights = b.add(Softmax(2), masked)
    if b.chance():
        b.keep(b.add(MatMul(), v, b.add(Transpose((0, 2, 1)), weights)))
    else:
        b.keep(b.add(Transpose((0, 2, 1)), b.add(MatMul(), weights, b.add(Transpose((0, 2, 1)), v))))
