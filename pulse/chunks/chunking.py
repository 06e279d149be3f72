"""How a chunk model is called: what the user says of it, and what became of that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pulse.chunks.states import Pair
from pulse.model import Variable


@dataclass(frozen=True, eq=False)
class Chunking:
    """What the user says of a chunk model; the rest is found.

    states   input name -> output name, all of them; None: found; empty: there are none
    context  input name -> how many frames before the new ones each chunk begins with
    axes     input or output name -> its axis of frames
    delay    output name -> leading frames to drop
    initial  state name -> its value at the first chunk, or one number for all of it; zeros by default
    outputs  the outputs to keep; all but the states' next values by default
    told     input name -> its axis of frames, which a symbol of the file had
    sizes    symbols of the file -> what they were made
    variables  the states that the file keeps inside of itself
    """

    states: Mapping[str, str] | None = None
    context: Mapping[str, int] = field(default_factory=dict[str, int])
    axes: Mapping[str, int] = field(default_factory=dict[str, int])
    delay: Mapping[str, int] = field(default_factory=dict[str, int])
    initial: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outputs: Sequence[str] | None = None
    told: Mapping[str, int] = field(default_factory=dict[str, int])
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    variables: tuple[Variable, ...] = ()

    @property
    def asked(self) -> bool:
        """Whether the user or the file says that the model is called chunk by chunk."""
        return bool(self.variables or self.states or self.context or self.axes or self.delay or self.initial)


@dataclass(frozen=True)
class PortAxis:
    """The axis of frames of an input or output, None where it has none, and why; ``frames`` new ones each chunk."""

    name: str
    axis: int | None
    frames: int
    how: str


@dataclass(frozen=True)
class Chunks:
    """How a chunk model is called.

    pairs    the states
    inputs   the other inputs; the first that streams counts the frames of the stream
    outputs  those that are kept
    context  input name -> frames of the past in front of each chunk
    sizes    symbols of the file -> what they were made
    """

    pairs: tuple[Pair, ...]
    inputs: tuple[PortAxis, ...]
    outputs: tuple[PortAxis, ...]
    context: Mapping[str, int]
    sizes: Mapping[str, int]

    @property
    def pulse(self) -> int:
        """New frames in each chunk."""
        return next(port.frames for port in self.inputs if port.axis is not None)

    def as_dict(self) -> dict[str, Any]:
        """The same, for JSON."""
        return {
            "states": [{"input": pair.input, "output": pair.output, "how": pair.how} for pair in self.pairs],
            "axes": {
                port.name: {"axis": port.axis, "how": port.how} for port in (*self.inputs, *self.outputs)
            },
            "context_frames": dict(self.context),
            "sizes": dict(self.sizes),
        }

    def lines(self) -> list[tuple[str, str]]:
        """What was found and how, in words: title and text."""
        lines = [("state", f"{pair.input} -> {pair.output}, {pair.how}") for pair in self.pairs]
        for port in (*self.inputs, *self.outputs):
            where = "no stream" if port.axis is None else f"axis {port.axis}"
            lines.append((f"frames of {port.name}", f"{where}, {port.how}"))
        lines += [
            ("context", f"{name}: {frames} frames before each chunk") for name, frames in self.context.items()
        ]
        lines += [("size", f"{name} = {size}") for name, size in self.sizes.items()]
        return lines
