"""Run a whole recording through a program at once, as a session does piece by piece."""

from collections.abc import Mapping

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.interface import Port
from pulse.ops.clock import frames_at
from pulse.program.program import Program
from pulse.program.streams.state import State


def stream_whole(program: Program, feeds: Mapping[str, Array], fill: float | None = None) -> dict[str, Array]:
    """Return all valid frames of a new stream of whole inputs, flush included.

    fill  pads the last pulse; by default NaN, which shows where padding is read, or 0 if the program cannot take it
    """
    state = spawn_with_inputs(program, feeds)
    if fill is None:
        fill = np.nan if state.takes_nan_padding else 0.0
    return run_whole(state, feeds, fill)[0]


def spawn_with_inputs(program: Program, feeds: Mapping[str, Array]) -> State:
    """Return a new stream for ``run_whole``; the inputs that do not stream come from ``feeds``."""
    return program.spawn({port.name: feeds[port.name] for port in program.inputs if not port.streams})


def run_whole(
    state: State, feeds: Mapping[str, Array], fill: float = 0.0
) -> tuple[dict[str, Array], list[list[Array]]]:
    """Stream whole inputs through a fresh state and flush it.

    Returns  output name -> its valid frames; and for each pulse the fetched wires
    """
    program = state.program
    streaming = [port for port in program.inputs if port.streams]
    counts = {feeds[port.name].shape[port.axis or 0] // port.frames for port in streaming if port.frames}
    if not counts:
        raise InputError("no input streams")
    pulses = min(counts)
    pieces: list[dict[str, Array]] = []
    fetched: list[list[Array]] = []

    def part(start: int, stop: int | None) -> dict[str, Array]:
        return {
            port.name: frames_at(
                feeds[port.name],
                port.axis or 0,
                start * port.frames,
                feeds[port.name].shape[port.axis or 0] if stop is None else stop * port.frames,
            )
            for port in streaming
        }

    for pulse in range(pulses):
        pieces.append(state.step(part(pulse, pulse + 1)))
        fetched.append(list(state.fetched))
    rest = part(pulses, None)
    pieces.extend(state.flush(rest, fill, after=lambda: fetched.append(list(state.fetched))))
    end = state.clock.end
    assert end is not None
    return {port.name: _valid(pieces, port.name, port, end, state) for port in program.outputs}, fetched


def _valid(pieces: list[dict[str, Array]], name: str, port: Port, end: int, state: State) -> Array:
    length = max(0, port.length.eval({state.program.model.symbol: end}))
    if not pieces and port.streams:
        shape = [0 if axis == port.axis else size for axis, size in enumerate(port.shape)]
        return np.empty(shape, port.dtype)
    if not pieces:
        raise InputError(f"{name}: undefined in a stream without frames")
    if port.axis is None:
        return pieces[-1][name]
    if not port.streams:
        frames = pieces[-1][name].shape[port.axis]
        return frames_at(pieces[-1][name], port.axis, frames - length, frames)
    whole = np.concatenate([piece[name] for piece in pieces], port.axis)
    return frames_at(whole, port.axis, port.delay, port.delay + length)
