"""The base class of ops of pulsed models that read their own state or the time."""

from collections.abc import Sequence
from dataclasses import replace

from pulse.dim import TDim
from pulse.facts import Array, PulsedFact, TypedFact
from pulse.ops.clock import Clock
from pulse.ops.op import Env, Op
from pulse.ops.weight_units import ActivationForm, UnitLayout
from pulse.ops.work import Work
from pulse.support.record import record
from pulse.support.wording import count_of


class Stateful(Op):
    """An op of a pulsed model that keeps state between pulses or reads the clock."""

    @property
    def awaits(self) -> tuple[int, TDim] | None:
        """Offset and length of the input whose last frame the outputs require; None if they stream."""
        return None

    def initial_state(self) -> list[Array]:
        """Return the state before the first pulse, new arrays."""
        return []

    def buffers(self, name: str) -> list[tuple[str, int]]:
        """Return the names and bytes of states that are not empty; ``name`` is the node's."""
        size = sum(array.nbytes for array in self.initial_state())
        return [(name, size)] if size else []

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        """Return the outputs for one pulse; ``state`` is replaced in place."""
        raise NotImplementedError

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        raise TypeError(f"{self.name} runs only inside a stream")


@record(eq=False)
class OnPulses(Stateful):
    """An op of the offline model on pulses: frame j of its input is at index j + offset, of ``length`` frames."""

    op: Op
    offset: int
    length: TDim

    @property
    def name(self) -> str:
        return self.op.name

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return self.op.facts(inputs)

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work | None:
        return self.op.work(inputs, outputs)

    def weight_units(self, inputs: Sequence[PulsedFact], slot: int) -> UnitLayout | None:
        return self.op.weight_units(inputs, slot)

    def with_rounded_state(self, form: ActivationForm) -> Op:
        return replace(self, op=self.op.with_rounded_state(form))

    def detail(self) -> str:
        return f"{self.op.detail()} of {count_of(self.length, 'frame')} delay {self.offset}"


class StatefulOnFrames(OnPulses):
    """An op that carries a state from frame to frame; the state is an output too."""

    @property
    def awaits(self) -> tuple[int, TDim]:
        return self.offset, self.length
