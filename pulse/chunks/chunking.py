"""The user's description of how a chunk model is called, and its resolved form."""

from collections.abc import Mapping
from dataclasses import field, fields
from numbers import Integral
from typing import Any

from pulse.chunks.states import CallState
from pulse.errors import PulsifyError
from pulse.support.record import record
from pulse.support.wording import count_of, spell


@record(eq=False)
class Chunking:
    """The user's options for a model of chunks; the rest is detected.

    states   input -> output that is its next value, all of them: ``{"h": "hn"}``; None: detected; empty: there are none
    context  input -> how many frames before the new ones each chunk begins with
    axes     input or output -> its time axis
    delay    output -> leading frames to drop
    initial  state -> its value at the first chunk, or one number for all of it; zeros by default
    pulse    new frames in each chunk, if the file leaves that open; by default the frames of the call that streams
    Raises   PulsifyError: a number of frames or an axis is not a whole number, or too small
    """

    states: Mapping[str, str] | None = None
    context: Mapping[str, int] = field(default_factory=dict[str, int])
    axes: Mapping[str, int] = field(default_factory=dict[str, int])
    delay: Mapping[str, int] = field(default_factory=dict[str, int])
    initial: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pulse: int | None = None

    def __post_init__(self) -> None:
        counts = {"context": "frames", "axes": "axes before the time axis", "delay": "frames"}
        for option, subject in counts.items():
            for name, count in getattr(self, option).items():
                if not _is_count(count, 0):
                    raise PulsifyError(
                        f"{spell(option, {name: count})}: {count!r} is not a number of {subject}; give a whole number, "
                        "0 or more"
                    )
        if self.pulse is not None and not _is_count(self.pulse, 1):
            raise PulsifyError(
                f"{spell('pulse', self.pulse)} is not a positive number of frames; give a whole number, 1 or more"
            )

    @property
    def is_chunked(self) -> bool:
        """Whether the user states that the model is called chunk by chunk."""
        return bool(self.states or self.context or self.axes or self.delay or self.initial)

    @property
    def given_options(self) -> Mapping[str, Any]:
        """The user's options, by name."""
        values = {member.name: getattr(self, member.name) for member in fields(self)}
        return {
            name: value for name, value in values.items() if value is not None and (value or name == "states")
        }


def _is_count(value: Any, minimum: int) -> bool:
    """Return whether a user's value is a whole number of at least ``minimum``."""
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= minimum


DETECT_ALL = Chunking()
"""The options of a model whose calls are detected."""


@record
class PortFrames:
    """The time axis of an input or output.

    name      that of the input or output
    axis      None if it has none
    frames    new ones in each chunk
    reason    why
    proposal  the axis of an input without a time axis along which it may have frames, for advice; None if there is none
    """

    name: str
    axis: int | None
    frames: int
    reason: str
    proposal: int | None = None


@record
class CallPlan:
    """How a chunk model is called.

    states   its states, each with the output that is its next value
    inputs   the other inputs; the first that streams counts the frames of the stream
    outputs  the kept outputs
    context  input name -> past frames before each chunk
    """

    states: tuple[CallState, ...]
    inputs: tuple[PortFrames, ...]
    outputs: tuple[PortFrames, ...]
    context: Mapping[str, int]

    @property
    def pulse(self) -> int:
        """New frames in each chunk."""
        return next(port.frames for port in self.inputs if port.axis is not None)

    def propose_axes(self, name: str) -> Mapping[str, int]:
        """Return the probable time axis of an input that is given once, for advice; empty if there is none."""
        proposals = {port.name: port.proposal for port in self.inputs}
        axis = proposals.get(name)
        return {} if axis is None else {name: axis}

    def as_dict(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return {
            "states": [{"input": s.input, "output": s.output, "reason": s.reason} for s in self.states],
            "axes": {p.name: {"axis": p.axis, "reason": p.reason} for p in (*self.inputs, *self.outputs)},
            "context_frames": dict(self.context),
        }

    def lines(self) -> list[tuple[str, str]]:
        """Return the detected axes and states and the reasons, as pairs of title and text."""
        lines = [("state", f"{state.input} -> {state.output}, {state.reason}") for state in self.states]
        for port in (*self.inputs, *self.outputs):
            where = "no stream" if port.axis is None else f"axis {port.axis}"
            lines.append((f"frames of {port.name}", f"{where}, {port.reason}"))
        lines += [
            ("context", f"{name}: {count_of(frames, 'frame')} before each chunk")
            for name, frames in self.context.items()
        ]
        return lines
