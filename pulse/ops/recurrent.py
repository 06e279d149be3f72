"""Recurrent layers: RNN, GRU and LSTM in one direction, offline and as a stream."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pulse.dim import TDim
from pulse.errors import FactError
from pulse.facts import Array, Doubles, DType, PulsedFact, TypedFact
from pulse.ops.clock import Clock
from pulse.ops.dims import unify
from pulse.ops.op import Cumulative, Env, Op, Pointwise, Relation, Whole
from pulse.ops.recurrent_cells import CELL_CALLS, CELL_STEPS, Cell
from pulse.ops.recurrent_gates import GATE_COUNTS
from pulse.ops.stateful import StatefulOnFrames
from pulse.ops.weight_units import ActivationForm, ActivationLayout, UnitLayout
from pulse.ops.work import Work, numpy_seconds
from pulse.support.record import record
from pulse.support.wording import count_of


@record
class Recurrent(Op):
    """A recurrent layer in one direction; bidirectional layers consist of two.

    h[t], c[t] = cell(x[t] @ w' + b_w, h[t-1], c[t-1]);  y[t] = h[t]

    Inputs   x [T, B, I], w [G*H, I], r [G*H, H], b [2*G*H]: those of w, then those of r;
             then those that ``optional`` names: initial h and c [B, H] (or [1, H]; zeros by default),
             peepholes p [3*H]
    Outputs  y [T, B, H]; the last h and (lstm) c [B, H]
    Stream   T: cumulative forward, whole in reverse; B: pointwise; I: whole
    Raises   FactError: sizes do not fit
    Source   ONNX RNN-22, GRU-22, LSTM-22

    cell      the kind of cell, its activations and its options
    hidden    H
    reverse   whether it runs from the last frame to the first
    lengths   frames of each sequence of the batch; frames after them are zero and do not change the state
    optional  the names of the inputs after b
    """

    iterates = True

    cell: Cell
    hidden: int
    reverse: bool = False
    lengths: tuple[int, ...] | None = None
    optional: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.cell.kind

    def optional_slot(self, name: str) -> int | None:
        """Return the index of input h, c or p; None if it is omitted."""
        return 4 + self.optional.index(name) if name in self.optional else None

    def weight_units(self, inputs: Sequence[PulsedFact], slot: int) -> UnitLayout | None:
        if slot not in (1, 2):
            return None
        return UnitLayout(
            inputs[slot].sizes, (1,), ActivationLayout(0, 2) if slot == 1 else ActivationLayout(None)
        )

    def with_rounded_state(self, form: ActivationForm) -> "Recurrent":
        return replace(self, cell=replace(self.cell, rows=form))

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        x, w, r, b = inputs[:4]
        if x.rank != 3:
            raise FactError(f"the input must be [frames, batch, features], got {x}")
        time, batch, features = x.shape
        rows, hidden = TDim.of(GATE_COUNTS[self.cell.kind] * self.hidden), TDim.of(self.hidden)
        shapes = {"w": (rows, features), "r": (rows, hidden), "b": (rows * 2,)}
        shapes |= {"h": (batch, hidden), "c": (batch, hidden), "p": (hidden * 3,)}
        for name, fact in zip(("w", "r", "b", *self.optional), (w, r, b, *inputs[4:]), strict=True):
            if fact.rank != len(shapes[name]) or fact.dtype != x.dtype:
                raise FactError(f"its input {name}: {fact} does not fit {x}")
            for actual, size in zip(fact.shape, shapes[name]):
                if name not in ("h", "c") or actual != 1:
                    unify(actual, size, f"its input {name}")
        if self.lengths is not None and batch.prove_eq(len(self.lengths)).no:
            raise FactError(f"{count_of(len(self.lengths), 'length')} for a batch of {batch}")
        last = TypedFact(x.dtype, (batch, hidden))
        return [TypedFact(x.dtype, (time, batch, hidden)), *[last] * self.cell.state_count]

    def initial_state(self, inputs: Sequence[Array]) -> list[Doubles]:
        """Return the state before the first frame."""
        batch = inputs[0].shape[1]
        slots = [self.optional_slot(name) for name in ("h", "c")[: self.cell.state_count]]
        return [
            np.zeros((batch, self.hidden))
            if slot is None
            else np.broadcast_to(inputs[slot], (batch, self.hidden)).astype(np.float64)
            for slot in slots
        ]

    def advance(
        self, x: Array, inputs: Sequence[Array], state: Sequence[Doubles]
    ) -> tuple[Doubles, tuple[Doubles, ...]]:
        """Return the outputs of the frames x, and the state after them."""
        w, r, b = (array.astype(np.float64) for array in inputs[1:4])
        slot = self.optional_slot("p")
        peepholes = None if slot is None else inputs[slot].astype(np.float64)
        half = len(b) // 2
        frames, batch, features = x.shape
        rows = x.astype(np.float64).reshape(frames * batch, features)
        projected: Doubles = (rows @ w.T).reshape(frames, batch, len(w))  # one product for all frames
        projected += b[:half]
        y = np.zeros((frames, batch, self.hidden))
        current = tuple(state)
        for t in range(frames)[::-1] if self.reverse else range(frames):
            following = self.cell.step(projected[t], current, r, b[half:], peepholes)
            if self.lengths is not None:
                inside = np.array(self.lengths)[:, None] > t
                y[t] = np.where(inside, following[0], 0)
                current = tuple(np.where(inside, new, old) for new, old in zip(following, current))
            else:
                y[t] = following[0]
                current = following
        return y, current

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        x = inputs[0]
        with np.errstate(all="ignore"):
            y, state = self.advance(x, inputs, self.initial_state(inputs))
        return [array.astype(x.dtype) for array in (y, *state)]

    def eval_seconds(
        self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact], size: Callable[[TDim], int]
    ) -> float:
        calls = CELL_CALLS * size(inputs[0].shape[0])
        return numpy_seconds(self.work(inputs, outputs), outputs, size, calls)

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        h, c, p = (self.optional_slot(name) for name in ("h", "c", "p"))
        constant = [1, 2, 3] if p is None else [1, 2, 3, p]
        if axis is None or any(axes[slot] is not None for slot in constant):
            return Whole("its weights depend on the stream", "give weights that do not stream")
        starts = [slot for slot in (h, c) if slot is not None]
        if axis == 2:
            return Whole("it sums over its features, and these stream", "stream over its time or its batch")
        if axis == 1:
            return self._over_batch([(inputs[slot], axes[slot]) for slot in starts])
        if self.reverse:
            return Whole(
                "in reverse direction the first frame needs the last one",
                "use the forward direction, or run the layer on chunks of limited length",
            )
        if self.lengths is not None:
            return Whole("its sequence_lens are constant", "leave sequence_lens out")
        if any(axes[slot] is not None for slot in starts):
            return Whole("its initial state streams", "give an initial state that does not stream")
        batch, dtype = inputs[0].shape[1], inputs[0].dtype

        def make_op(offset: int, length: TDim, past: Sequence[Array] | None) -> "RecurrentStream":
            return RecurrentStream(self, offset, length, int(batch), dtype, past)

        return Cumulative((0, *(None,) * self.cell.state_count), make_op)

    def _over_batch(self, starts: Sequence[tuple[TypedFact, int | None]]) -> Relation:
        """Run every frame as its own sequence, which begins with the initial state."""
        for fact, axis in starts:
            if axis not in (0, None) or (axis is None and fact.shape[0] != 1):
                return Whole(
                    f"an initial state {fact} of constant batch meets the stream on the batch axis",
                    "give one initial state for all frames ([1, H]), or a stream of them",
                )
        if self.lengths is not None:
            return Whole("its sequence_lens are constant", "leave sequence_lens out")
        return Pointwise((1, *(0,) * self.cell.state_count))

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        frames, batch, features = inputs[0].shape
        rows = GATE_COUNTS[self.cell.kind] * self.hidden
        steps = frames * batch * self.hidden * CELL_STEPS[self.cell.kind]
        return Work(frames * batch * rows * (features + self.hidden), steps)

    def detail(self) -> str:
        words = [f"hidden {self.hidden}", "reverse" if self.reverse else "forward"]
        words += [str(activation) for activation in self.cell.activations]
        if self.cell.clip is not None:
            words.append(f"clip {self.cell.clip:g}")
        if self.cell.linear_before_reset:
            words.append("linear before reset")
        if self.cell.input_forget:
            words.append("input forget")
        if self.cell.rows is not None:
            words.append(f"rows of {self.cell.rows}")
        if self.lengths is not None:
            words.append(f"lengths {list(self.lengths)}")
        return " ".join([*words, *(f"+{name}" for name in self.optional)])


@record(eq=False)
class RecurrentStream(StatefulOnFrames):
    """A recurrent layer that carries its state from pulse to pulse.

    Inputs   those of ``op``; x [P, B, I], whose frame j is at index j + offset and which has ``length`` frames
    Outputs  y [P, B, H], zeros outside the stream; the state after the last valid frame so far
    State    h and (lstm) c [B, H]; initially those of ``past``, without a past the initial state, taken with the
             first pulse

    op            the layer of the offline model
    batch, dtype  B, and the type of y and of the state
    past          the op's outputs for the frames of a prefix; None: no prefix
    """

    op: Recurrent
    batch: int
    dtype: DType
    past: Sequence[Array] | None

    def initial_state(self) -> list[Array]:
        if self.past is not None:
            return [array.copy() for array in self.past[1:]]
        return [np.zeros((self.batch, self.op.hidden), self.dtype) for _ in range(self.op.cell.state_count)]

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        x = inputs[0]
        with np.errstate(all="ignore"):
            if clock.pulse == 0 and self.past is None:
                state[:] = [array.astype(self.dtype) for array in self.op.initial_state(inputs)]
            start, stop = clock.span(len(x), self.offset, self.length)
            y = np.zeros((len(x), self.batch, self.op.hidden), self.dtype)
            wide = [array.astype(np.float64) for array in state]
            y[start:stop], after = self.op.advance(x[start:stop], inputs, wide)
        state[:] = [array.astype(self.dtype) for array in after]
        return [y, *(array.copy() for array in state)]
