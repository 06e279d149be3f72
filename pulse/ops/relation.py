"""How the output of an op depends on the stream axis of its inputs.

An op only states its relation; the driver in ``pulse.pulsify`` turns it into delays and registers.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from pulse.dim import TDim

if TYPE_CHECKING:
    from pulse.facts import Array
    from pulse.ops.op import Op

PadMode: TypeAlias = Literal["constant", "edge", "reflect", "symmetric"]


@dataclass(frozen=True)
class Pointwise:
    """Output frame j needs frame j of every streaming input.

    axes   the stream axis of each output
    at     the op for a pulse of n output frames, where its attributes name the length of the stream
    """

    axes: tuple[int, ...]
    at: "Callable[[int], Op] | None" = None


@dataclass(frozen=True, eq=False)
class Ends:
    """The input with ``before`` frames added in front of the stream and ``after`` frames behind it.

    Each frame is ``fill``, or comes from ``head`` and ``tail`` (arrays of the input's rank), or with the mode
    ``edge``, ``reflect`` or ``symmetric`` from the frames next to that end.
    """

    axis: int
    before: TDim
    after: TDim
    mode: PadMode = "constant"
    fill: float = 0.0
    head: "Array | None" = None
    tail: "Array | None" = None

    @property
    def changes_nothing(self) -> bool:
        """Whether no frame is added."""
        return self.before == 0 and self.after == 0


@dataclass(frozen=True)
class Window:
    """Group g (``up`` output frames) needs the input frames ``g*stride .. g*stride + span - 1``.

    The input is first extended by ``ends``. Output frame j is number ``j + skip`` of the concatenated groups.
    ``op`` maps the ``needs(groups)`` frames of some groups to ``groups * up`` frames, and is given no others;
    without an op, span, stride and up are 1. ``axis`` is the stream axis of the output, ``source`` the input that
    streams.
    """

    axis: int
    span: int = 1
    stride: int = 1
    up: int = 1
    skip: int = 0
    ends: Ends | None = None
    op: "Op | None" = None
    source: int = 0

    def needs(self, groups: int) -> int:
        """How many input frames so many groups in a row see."""
        return (groups - 1) * self.stride + self.span


@dataclass(frozen=True)
class Positional:
    """Output frame j is a function of j alone; ``at(offset, frames)`` makes it for pulses of that many frames.

    ``wanted`` is how many frames are asked for, which may be more than there are (of a table).
    """

    axis: int
    wanted: TDim
    at: "Callable[[int, int], Op]"


@dataclass(frozen=True, eq=False)
class Cumulative:
    """Output frame j needs the input frames 0 .. j of every streaming input.

    axes   the stream axis of each output; None for a state, which is known when the stream has ended
    at     ``at(offset, length, past)`` makes the op for pulses whose frame j is at index j + offset of a stream of
           ``length`` frames; it goes on from ``past``, the op's outputs for the frames of a lead (None: no lead)
    """

    axes: tuple[int | None, ...]
    at: "Callable[[int, TDim, Sequence[Array] | None], Op]"


@dataclass(frozen=True)
class Banded:
    """Output frame j needs frame j of the first input, and the frames ``j - back .. j + ahead`` of the others.

    axis   the stream axis of the output
    at     ``at(offset, length)`` makes the op for pulses whose frame j is at index j + offset of a stream of
           ``length`` frames; it reads the first input's pulse, and of the others ``back + ahead`` frames more
    """

    axis: int
    back: int
    ahead: int
    at: "Callable[[int, TDim], Op]"


@dataclass(frozen=True)
class Final:
    """A function of values without a stream axis that are known when the stream has ended."""


@dataclass(frozen=True)
class Tail:
    """The last ``frames`` frames of the input (all of them where there are fewer), known at the end."""

    axis: int
    frames: int


@dataclass(frozen=True)
class Whole:
    """Every output frame may need every input frame; ``help`` says what would stream instead."""

    reason: str
    help: str


Relation: TypeAlias = Pointwise | Window | Ends | Positional | Cumulative | Banded | Tail | Final | Whole


def relation_name(relation: Relation) -> str:
    """The relation in the words of errors and tables."""
    return type(relation).__name__.lower()
