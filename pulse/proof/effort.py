"""What it takes to run an offline model in numpy, about: counted, not measured, so that it is always the same."""

from collections.abc import Callable, Sequence

from pulse.costs.work import op_work
from pulse.dim import TDim
from pulse.facts import TypedFact
from pulse.ops.attention import BandedAttention
from pulse.ops.loop import Loop
from pulse.ops.op import Op
from pulse.ops.recurrent import Recurrent
from pulse.ops.scan import Scan
from pulse.ops.shape import volume
from pulse.pulsify.model import PulsedModel

CALL_S, MAC_S, ELEMENTWISE_S, ELEMENT_S = 2e-5, 3e-10, 5e-9, 2e-9
"""What numpy takes, about: for a call, a multiply-add, a function of an element, and to move one."""
CELL_CALLS = 6
"""Of numpy, for a frame of a recurrent layer."""
PAIR_STEPS = 40
"""What numpy does with each pair of frames in attention."""
MOST_FRAMES = 1 << 24
"""Beyond that nothing is asked."""


class Effort:
    """The seconds of one core that a run of a model's offline form takes, by the frames of the symbol."""

    def __init__(self, model: PulsedModel) -> None:
        self._model = model
        self._known: dict[int, float] = {}

    def seconds(self, frames: int) -> float:
        """Between powers of two a straight line."""
        low = 1 << max(0, frames.bit_length() - 1)
        return self._at(low) + (frames - low) / low * (self._at(2 * low) - self._at(low))

    def affordable(self, seconds: float) -> int:
        """The most frames that take no longer; at least one."""
        most = 1
        while most < MOST_FRAMES and self.seconds(2 * most) <= seconds:
            most *= 2
        each = (self.seconds(2 * most) - self.seconds(most)) / most
        more = int((seconds - self.seconds(most)) / each) if each > 0 else 0
        return most + max(0, min(most, more))

    def _at(self, frames: int) -> float:
        if frames not in self._known:
            self._known[frames] = _counted(self._model, frames)
        return self._known[frames]


def _counted(model: PulsedModel, frames: int) -> float:
    env = {model.symbol: frames}

    def size(dim: TDim) -> int:
        return max(0, dim.eval(env)) if dim.symbols <= env.keys() else 1

    total, graph = 0.0, model.typed.graph
    for node_id in graph.order():
        node = graph.nodes[node_id]
        inputs, outputs = graph.input_facts(node), [outlet.fact for outlet in node.outputs]
        work = op_work(node.op, inputs, outputs)
        elements = sum(size(volume(fact.shape)) for fact in outputs)
        if isinstance(node.op, BandedAttention):  # its oracle looks at all pairs of frames
            elements += PAIR_STEPS * size(volume(outputs[0].shape[:-1])) * size(inputs[1].shape[-2])
        total += CALL_S * _calls(node.op, inputs, size) + ELEMENT_S * elements
        total += MAC_S * size(work.macs) + ELEMENTWISE_S * size(work.elementwise)
    return total


def _calls(op: Op, inputs: Sequence[TypedFact], size: Callable[[TDim], int]) -> int:
    """How often numpy is called for an op: once, or in every turn of a loop in Python."""
    if isinstance(op, Recurrent):
        return CELL_CALLS * size(inputs[0].shape[0])
    if isinstance(op, Scan):
        return len(op.body.graph.nodes) * size(inputs[0].shape[op.scanned[0].axis])
    if isinstance(op, Loop):
        return len(op.body.graph.nodes) * size(op.turns or TDim.of(1))
    return 1
