"""Wires of the pulsed graph, with their position in time."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from pulse.dim import TDim
from pulse.errors import PulsifyError
from pulse.facts import Array, StreamFact, TypedFact, shape_text
from pulse.graph import OutletId
from pulse.ops.check import replace_all_failing
from pulse.ops.op import Ends, Op
from pulse.support.record import record
from pulse.support.wording import count_of


@record
class StreamWire:
    """A wire of the pulsed graph and its position in time.

    Its fact may differ from its outlet's fact: padding at the start moves frame 0 without changing a pulse.
    """

    outlet: OutletId
    fact: StreamFact


@record
class FreeWire:
    """A wire whose frames are a function of their position, so that it exists at any offset.

    axis          the stream axis
    length        frames of the whole stream
    rate          frames for each frame of the symbol
    wire_at       function that makes the wire at an offset
    first_frames  function that returns its first n frames; None if they depend on an input of the model
    """

    axis: int
    length: TDim
    rate: Fraction
    wire_at: Callable[[int], StreamWire]
    first_frames: Callable[[int], Array | None]


@record
class MirroredWire:
    """A stream whose edge or mirrored frames at the ends are not written yet.

    A window fills them in when it reads them, which may be earlier than they could be written into the stream.

    stream  the stream without them; if frames follow, it is delayed by its lag
    ends    these frames
    length  the number of frames, with those of ``ends`` and ``outer``
    outer   constant frames around them
    """

    stream: StreamWire
    ends: Ends
    length: TDim
    outer: Ends | None = None

    @property
    def without_outer(self) -> "MirroredWire":
        """The same without the constant frames around it."""
        return replace(self, outer=None, length=self.stream.fact.length + self.ends.before + self.ends.after)

    @property
    def first_index(self) -> int:
        """The index of the first frame before the stream, constant or mirrored."""
        front = 0 if self.outer is None else int(self.outer.before)
        return self.stream.fact.offset - int(self.ends.before) - front

    @property
    def has_frames_after(self) -> bool:
        """Whether frames follow after the last one of ``stream``."""
        return self.ends.after != 0 or (self.outer is not None and self.outer.after != 0)

    def can_surround(self, ends: Ends) -> bool:
        """Return whether these frames may be its ``outer``."""
        if self.outer is None or ends.mode != "constant":
            return ends.mode == "constant"
        tables = (self.outer.head, self.outer.tail, ends.head, ends.tail)
        return self.outer.fill == ends.fill and all(table is None for table in tables)

    def surround(self, ends: Ends, length: TDim) -> "MirroredWire":
        """Add constant frames around it."""
        if self.outer is None:
            return replace(self, outer=ends, length=length)
        before, after = self.outer.before + ends.before, self.outer.after + ends.after
        return replace(self, outer=replace(self.outer, before=before, after=after), length=length)


MAX_PULSE_ELEMENTS = 1 << 26
"""Maximum number of elements in one pulse of a wire, or in one buffer; a larger one is refused."""


def require_size(sizes: Sequence[int], name: str) -> None:
    """Raise PulsifyError if a tensor is too large for one pulse or buffer."""
    if math.prod(sizes) > MAX_PULSE_ELEMENTS or max(sizes, default=0) > MAX_PULSE_ELEMENTS:
        raise PulsifyError(
            f"{name}: {shape_text(sizes)} has {count_of(math.prod(sizes), 'element')} in one pulse or buffer, more "
            "than "
            f"{MAX_PULSE_ELEMENTS}; use a smaller pulse, or a model of smaller sizes"
        )


def evaluate_prefix(op: Op, values: Sequence[Array], name: str) -> list[Array]:
    """Evaluate an op on frames that are known before the stream begins. Raises PulsifyError: a fault, or too large."""
    _, failures = replace_all_failing(op.checks([v.shape for v in values], [v.dtype for v in values]), values)
    if failures:
        faults = "; ".join(str(check.fault(name, op.name, count)) for check, count in failures)
        raise PulsifyError(
            f"{faults}, in frames that are known before the stream begins: every run of the model fails"
        )
    for fact in op.facts([TypedFact.of(value) for value in values]):
        require_size(fact.sizes, f"{name} ({op.name})")
    return op.eval(values, {})


AnyWire: TypeAlias = OutletId | StreamWire | FreeWire | MirroredWire
"""A typed wire in the pulsed graph: an outlet if it does not stream."""


def static_outlet(wire: AnyWire) -> OutletId:
    """Return the outlet of a wire that does not stream."""
    if isinstance(wire, StreamWire | FreeWire | MirroredWire):
        raise AssertionError("the relation has no stream, but the wire streams")
    return wire
