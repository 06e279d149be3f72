"""Steps of random models that carry a state: recurrent layers and running sums."""

from pulse.graph import OutletId
from pulse.ops.cells import GATES, Activation, Cell, CellKind
from pulse.ops.cumsum import CumSum
from pulse.ops.elementwise import Elementwise
from pulse.ops.recurrent import Recurrent
from pulse.ops.shape import Transpose
from tests.laws.builder import MOST_CHANNELS, Builder


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
    rows = GATES[op.cell.kind] * hidden
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
