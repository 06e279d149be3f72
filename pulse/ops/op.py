"""The base class of operations: facts, value in plain numpy, and relation to a stream.

An op only states how outputs depend on the stream axis of inputs; ``pulse.pulsify`` makes delays and registers from it.
A relation contains the op that runs on pulses, so both are in this module:

Pointwise    output frame j needs frame j of every streaming input
Window       groups of ``up`` output frames need ``span`` neighbouring input frames, ``stride`` apart
Ends         the input with frames added before its first and after its last one
Positional   output frame j is a function of j alone
Cumulative   output frame j needs the input frames 0 … j: a state is carried
Banded       output frame j needs frame j of the first input, and of the others those near it
Tail         the last frames of the input, known when the stream has ended
Final        computed from values that are known when the stream has ended
Whole        every output frame may need every input frame: cannot be streamed
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

from pulse.dim import Symbol, TDim
from pulse.facts import Array, DType, PulsedFact, TypedFact
from pulse.graph import Graph
from pulse.ops.check import Check
from pulse.ops.weight_units import ActivationForm, UnitLayout
from pulse.ops.work import NO_WORK, Work, numpy_seconds
from pulse.support.record import record

Env: TypeAlias = Mapping[Symbol, int]
PadMode: TypeAlias = Literal["constant", "edge", "reflect", "symmetric"]


class Op:
    """One operation; immutable, so several nodes may share it."""

    symbolic: ClassVar[bool] = False
    """Whether ``eval`` also works on tensors of TDim, which folds shape arithmetic."""
    positional: ClassVar[bool] = False
    """Whether it can make a stream out of inputs that do not stream."""
    folds: ClassVar[bool] = True
    """Whether it is computed before running if all its inputs are known."""
    iterates: ClassVar[bool] = False
    """Whether it runs a body or a cell in each of many iterations."""
    copies: ClassVar[bool] = False
    """Whether it computes nothing: each element of an output is one of an input, or a constant."""
    steps: ClassVar[int | None] = None
    """The elementwise operations for each element of its first input; None if it has other work too."""
    keeps_values: ClassVar[bool] = False
    """Whether each element of its output is one of its first input."""
    keeps_order: ClassVar[bool] = False
    """Whether its output has all elements of its input, in row-major order."""
    normalises_scores: ClassVar[bool] = False
    """Whether attention normalises its scores with it, so that a model that has it may have attention."""
    truncates: ClassVar[bool] = False
    """Whether it rounds numbers towards 0 to integers; files that compute sizes in floats do this as the last step."""
    detail_format: ClassVar[str] = ""
    """The attributes that dumps show, as in ``axis {axis}``."""

    @property
    def name(self) -> str:
        """The operation's name in dumps and errors."""
        return type(self).__name__

    @property
    def bodies(self) -> "Sequence[Graph[TypedFact, Op]]":
        """The graphs that it runs inside itself."""
        return ()

    def with_bodies(self, change: Callable[[Any], Any]) -> "Op":
        """Return the op with its bodies changed, each a ``TypedNetwork``; the op itself if it has none."""
        return self

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        """Return the facts of the outputs. Raises FactError: the inputs do not fit."""
        raise NotImplementedError

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        """Return the outputs in plain numpy, with ``env`` giving each symbol's value: the oracle."""
        raise NotImplementedError

    def on_ratios(self, inputs: Sequence[Array]) -> Array | None:
        """Return the output for tensors of ``Ratio``, sizes that a file computes in floats; None if it has none.

        Raises DimError: floats may round it
        """
        return self.eval(inputs, {})[0] if self.symbolic and len(inputs) == 1 else None

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> "Relation":
        """Return how the outputs depend on time; ``axes[i]`` is the stream axis of input i, None if it has none."""
        return Whole("it has no rule for a streaming input", "compute it outside the streaming model")

    def checks(self, shapes: Sequence[Sequence[int]], dtypes: Sequence[DType]) -> Sequence[Check]:
        """Return the operands of which some values have no result, given the shapes and types of all."""
        return ()

    def identity_input(self, inputs: Sequence[TypedFact]) -> int | None:
        """Return the input that equals the output if both have the same type and shape; None if there is none."""
        return None

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work | None:
        """Return the work for inputs and outputs with these facts; None if unknown, or if it depends on data."""
        if self.copies or self.steps == 0:
            return NO_WORK
        return None if self.steps is None else Work.of_each(inputs[0], self.steps)

    def eval_seconds(
        self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact], size: Callable[[TDim], int]
    ) -> float:
        """Return the seconds of one core that ``eval`` takes; for a loop of unknown length those of one iteration.

        size  the value of a dim
        """
        return numpy_seconds(self.work(inputs, outputs), outputs, size)

    def weight_units(self, inputs: Sequence[PulsedFact], slot: int) -> UnitLayout | None:
        """Return the layout of an operand's output units; None if it is no weight, or gains nothing from fewer bits."""
        return None

    def with_rounded_state(self, form: ActivationForm) -> "Op":
        """Return the op that rounds its state to a form before it multiplies it; see ``ops.quantize_activations``."""
        return self

    def detail(self) -> str:
        """Return the attributes, for dumps."""
        return self.detail_format.format(**vars(self))


@record
class Pointwise:
    """Output frame j needs frame j of every streaming input.

    axes     the stream axis of each output
    make_op  the op for a pulse of n output frames, where its attributes name the length of the stream
    """

    axes: tuple[int, ...]
    make_op: Callable[[int], Op] | None = None


@record(eq=False)
class Ends:
    """The input with ``before`` frames added before the stream and ``after`` frames after it.

    axis           the stream axis
    before, after  how many frames are added
    mode           constant: frames of ``head`` and ``tail``; edge, reflect, symmetric: the frames next to that end
    head, tail     arrays of the input's rank; None: ``fill``
    fill           the value of frames without an array
    """

    axis: int
    before: TDim
    after: TDim
    mode: PadMode = "constant"
    fill: float = 0.0
    head: Array | None = None
    tail: Array | None = None

    @property
    def changes_nothing(self) -> bool:
        """Whether no frame is added."""
        return self.before == 0 and self.after == 0


@record
class Window:
    """Group g (``up`` output frames) needs the input frames ``g*stride .. g*stride + span - 1``.

    axis     the stream axis of the output
    span     the input frames of a group
    stride   the input frames from one group to the next
    up       the output frames of a group
    skip     output frame j is frame ``j + skip`` of the concatenated groups
    ends     the frames by which the input is first extended; None: no frames
    op       maps the ``needs(groups)`` frames of some groups to ``groups * up`` frames, and is given no others;
             None: span, stride and up are 1
    source   the input that streams
    blank    ``op`` ignores this many frames at the start of a span
    trimmed  an equivalent window without the taps that are zero, used if it has less delay
    """

    axis: int
    span: int = 1
    stride: int = 1
    up: int = 1
    skip: int = 0
    ends: Ends | None = None
    op: Op | None = None
    source: int = 0
    blank: int = 0
    trimmed: "TrimmedWindow | None" = None

    def needs(self, groups: int) -> int:
        """Return the number of input frames that consecutive groups read."""
        return (groups - 1) * self.stride + self.span


@record
class TrimmedWindow:
    """A window whose op reads an operand without taps that are zeros.

    window       the window without these taps
    operand      the input of the op that has the taps
    axis         the axis of the taps
    first, stop  the taps ``first .. stop - 1`` stay
    """

    window: Window
    operand: int
    axis: int
    first: int
    stop: int


@record
class Positional:
    """Output frame j is a function of j alone; ``make_op(offset, frames)`` makes it for pulses of that many frames.

    ``wanted`` is the number of requested frames, which may exceed those of a table.
    """

    axis: int
    wanted: TDim
    make_op: Callable[[int, int], Op]


@record(eq=False)
class Cumulative:
    """Output frame j needs the input frames 0 .. j of every streaming input.

    axes     the stream axis of each output; None for a state, which is known when the stream has ended
    make_op  ``make_op(offset, length, past)`` makes the op for pulses whose frame j is at index j + offset of a
             stream of ``length`` frames; it continues from ``past``, the op's outputs for the frames of a prefix
             (None: no prefix)
    """

    axes: tuple[int | None, ...]
    make_op: Callable[[int, TDim, Sequence[Array] | None], Op]


@record
class Banded:
    """Output frame j needs frame j of the first input, and the frames ``j - back .. j + ahead`` of the others.

    axis         the stream axis of the output
    back, ahead  how many frames before and after its own an output frame needs
    make_op      ``make_op(offset, length)`` makes the op for pulses whose frame j is at index j + offset of a stream of
                 ``length`` frames; it reads the first input's pulse, and of the others ``back + wait`` frames more
    ahead_by_frame  how many frames after its own frame j needs, by ``j mod len(ahead_by_frame)``; if given, ``wait``
                 may be less than ``ahead``: row r of a pulse of P frames reads no column from ``back + wait + P - r``
                 on. Empty: ``wait`` is ``ahead``
    """

    axis: int
    back: int
    ahead: int
    make_op: Callable[[int, TDim], Op]
    ahead_by_frame: tuple[int, ...] = ()


@record
class Final:
    """A function of values without a stream axis that are known when the stream has ended."""


@record
class Tail:
    """The last ``frames`` frames of the input (all of them if there are fewer), known at the end."""

    axis: int
    frames: int


@record
class Whole:
    """Every output frame may need every input frame; ``advice`` says what would stream instead."""

    reason: str
    advice: str


Relation: TypeAlias = Pointwise | Window | Ends | Positional | Cumulative | Banded | Tail | Final | Whole


def relation_name(relation: Relation) -> str:
    """Return the name of the relation in errors and tables."""
    return type(relation).__name__.lower()
