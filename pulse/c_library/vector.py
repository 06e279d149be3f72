"""The test vector of a library: a short stream, its expected outputs, and their tolerances.

The file, little-endian:

for each       type       count     content
(once)         int64      3         whether there are tolerances; the calls of ``step``; all pulses
pulse, input   its dtype  elements  the pulse, before the flush only
pulse, output  its dtype  elements  the expected pulse
               float64    elements  how far each element may be off
input          int64      2         the bytes and frames of its rest; before the first pulse of the flush
               its dtype  elements  the rest
output         int64      1         the number of valid frames, at the end

Frames that are not valid are zero.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from pulse.errors import InputError, WriteError
from pulse.facts import Array
from pulse.interface import Interface, Port
from pulse.ops.clock import frames_at
from pulse.program.program import Program
from pulse.program.whole_stream import stream_whole
from pulse.proof.oracle import Oracle
from pulse.proof.tolerance import ExpectedOutputs
from pulse.proof.trial_signals import draw_feeds, integer_ranges
from pulse.pulsify.lengths import min_value_for
from pulse.pulsify.network import PulsedNetwork
from pulse.pulsify.stream_lengths import nearest_length
from pulse.support.record import record
from pulse.support.wording import count_of

PULSES_AFTER_DELAY = 5
"""The number of pulses after the first frame of every output."""
PERTURBED_RUNS = 6
"""The number of runs of the offline model with random rounding errors."""


@record
class TestVector:
    """A short stream.

    length          frames of the symbol
    steps           whole pulses
    pulses          pulses, flush included
    content         bytes of the file
    has_tolerances  whether it states how far results may be off
    """

    length: int
    steps: int
    pulses: int
    content: bytes
    has_tolerances: bool


def make_vector(program: Program, offline: tuple[PulsedNetwork, Oracle] | None) -> TestVector:
    """Return a test vector: a stream of noise.

    offline  the model of the program, and what whole inputs should return; None: what the program itself returns is
             expected, to the bit. It is expected too where weights are rounded
    Raises   WriteError: there is no short stream that the model takes
    """
    model, length = program.model, _length(program)
    if offline is None:
        feeds = draw_feeds(model, length)
        whole = {name: (values, None) for name, values in stream_whole(program, feeds, 0.0).items()}
    else:
        network, oracle = offline
        feeds = draw_feeds(model, length, ranges=integer_ranges(network, oracle, length))
        try:
            expected = ExpectedOutputs(oracle, feeds)
        except InputError as error:
            raise WriteError(f"{model.title}: the offline model refuses the test vector: {error}") from error
        whole = {
            port.name: expected.allowance(port.name, port.axis, PERTURBED_RUNS) for port in program.outputs
        }
        if program.form != "f32":  # differences from rounded weights are not errors of the library
            streamed = stream_whole(program, feeds, 0.0)
            whole = {name: (streamed[name], allowed) for name, (_, allowed) in whole.items()}
    streaming = [port for port in program.inputs if port.streams]
    steps = min(_frames(feeds, port) // port.frames for port in streaming)
    pulses = program.steps(length)
    vectors = [_by_pulse(port, *whole[port.name], pulses) for port in program.outputs]
    parts = [np.array([int(offline is not None), steps, pulses], "<i8").tobytes()]
    for pulse in range(pulses):
        if pulse < steps:
            parts += [_part(feeds, port, pulse, pulse + 1).tobytes() for port in program.inputs]
        elif pulse == steps:
            parts += _flushed_bytes(program, feeds, steps)
        for outputs in vectors:
            parts += next(outputs)
    if pulses == steps:
        parts += _flushed_bytes(program, feeds, steps)
    counts = [_valid_count(port, model, length) for port in program.outputs]
    parts.append(np.array(counts, "<i8").tobytes())
    return TestVector(length, steps, pulses, b"".join(parts), offline is not None)


def _length(program: Program) -> int:
    """Return the stream's length: pulses after the first frame of every output, and half one.

    Raises WriteError: the program takes no stream of this length
    """
    model, pulse = program.model, program.pulse
    shortest = max(
        (min_value_for(port.length, 1, model.symbol) for port in program.outputs if port.streams), default=1
    )
    target = shortest + PULSES_AFTER_DELAY * pulse + pulse // 2 + 1
    length = nearest_length(target, model.symbol, model.assumptions, program.limit)
    if length is not None:
        return length
    raise WriteError(
        f"{model.title}: takes no stream of {count_of(target, 'frame')}, or of about as many, so there is no test "
        "vector: use "
        "another pulse, or convert the model for more lengths"
    )


def _frames(feeds: Mapping[str, Array], port: Port) -> int:
    return feeds[port.name].shape[port.axis or 0]


def _part(feeds: Mapping[str, Array], port: Port, start: int, stop: int) -> Array:
    """Return pulses of an input; all of one that does not stream."""
    values = feeds[port.name]
    if not port.streams:
        return np.ascontiguousarray(values)
    return np.ascontiguousarray(frames_at(values, port.axis or 0, start * port.frames, stop * port.frames))


def _flushed_bytes(program: Program, feeds: Mapping[str, Array], steps: int) -> Iterator[bytes]:
    for port in program.inputs:
        values = feeds[port.name]
        if port.streams:
            values = frames_at(values, port.axis or 0, steps * port.frames, _frames(feeds, port))
        frames = values.shape[port.axis or 0] if port.streams else 0
        yield np.array([values.nbytes, frames], "<i8").tobytes()
        yield np.ascontiguousarray(values).tobytes()


def _by_pulse(port: Port, values: Array, allowed: Array | None, pulses: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the expected values of each pulse and their tolerances, as bytes."""
    allowed = np.zeros(values.shape) if allowed is None else allowed
    axis, frames = port.axis or 0, port.frames
    for pulse in range(pulses):
        expected, margin = np.zeros(port.shape, port.dtype), np.zeros(port.shape)
        if port.streams:
            start = pulse * frames - port.delay
            first, stop = max(0, -start), max(0, min(frames, values.shape[axis] - start))
            if first < stop:
                frames_at(expected, axis, first, stop)[...] = frames_at(
                    values, axis, start + first, start + stop
                )
                frames_at(margin, axis, first, stop)[...] = frames_at(
                    allowed, axis, start + first, start + stop
                )
        elif pulse == pulses - 1:
            if port.axis is None:
                expected[...], margin[...] = values, allowed
            else:
                first = frames - values.shape[axis]
                frames_at(expected, axis, first, frames)[...] = values
                frames_at(margin, axis, first, frames)[...] = allowed
        yield expected.tobytes(), margin.astype("<f8").tobytes()


def _valid_count(port: Port, model: Interface, length: int) -> int:
    if port.axis is None:
        return 1
    return max(0, port.length.eval({model.symbol: length}))
