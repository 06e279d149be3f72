"""Whole files through a program, timed chunk by chunk."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.ops.stateful import frames_at
from pulse.program.program import Program
from pulse.pulsify.network import Port
from streaming.channels import Channels, Samples
from streaming.events.output import EventsOutput
from streaming.latency import Latency
from streaming.resampling import Resampler
from streaming.session import Session
from streaming.sound import Clipping, SoundReader
from streaming.target import Target

Advance = Callable[[int, int | None], None]
"""Called with how many samples or frames are done and how many there are; None: nobody knows."""


@dataclass(frozen=True)
class FileRun:
    """What a run over a file did.

    frames     frames of the symbol, of each stream
    streams    one for each channel that was heard
    nonfinite  values of the written outputs, before resampling, that are NaN or infinite
    latency    of every chunk: pushing one pulse and getting what is ready
    elapsed_s  everything, files and resampling included
    samples    of the sound that was heard, of each channel; None where it was no sound
    clipping   output samples that the encoding cut off; None where no sound was written
    encoding   libsndfile's name of how sound was written
    events     that were found; None where frames were written
    """

    frames: int
    streams: int
    nonfinite: int
    latency: Latency
    elapsed_s: float
    samples: int | None = None
    clipping: Clipping | None = None
    encoding: str | None = None
    events: int | None = None


class _Timed:
    """A session that is fed pulse by pulse, and how long each pulse took."""

    def __init__(self, session: Session, latency: Latency) -> None:
        self.session = session
        self.latency = latency

    def push(self, blocks: dict[str, Array]) -> Iterator[dict[str, Array]]:
        """Push blocks of equal duration."""
        ports = [port for port in self.session.program.inputs if port.streams]
        chunks = max(-(-blocks[port.name].shape[port.axis or 0] // port.frames) for port in ports)
        for number in range(chunks):
            chunk = {
                port.name: frames_at(
                    blocks[port.name], port.axis or 0, number * port.frames, (number + 1) * port.frames
                )
                for port in ports
            }
            before = self.session.pulses
            started = time.perf_counter_ns()
            ready = self.session.push(chunk)
            took = time.perf_counter_ns() - started
            if self.session.pulses > before:
                self.latency.record_ns(took)
            yield ready


def audio_input(program: Program) -> Port | None:
    """The input of a model that hears sound: the one that streams, f32, of one value a frame."""
    streaming = [port for port in program.inputs if port.streams]
    if len(streaming) != len(program.inputs) or len(streaming) != 1:
        return None
    return streaming[0] if streaming[0].is_sound else None


def audio_output(port: Port, source: Port) -> bool:
    """Whether an output is sound at the rate of the input."""
    return port.is_sound and port.rate == source.rate


def stream_sound(
    program: Program,
    source: SoundReader,
    target: Target,
    rate_hz: int,
    output: Port,
    channels: Channels,
    deadline_s: float | None = None,
    advance: Advance | None = None,
) -> FileRun:
    """Run sound through a model that hears sound; the result is aligned with the source.

    target   sound at the rate of the source, or the frames of ``output``
    rate_hz  of the model; the source is resampled to it and back
    Raises   InputError

    What is ready is written before more is read, so a source that comes in time goes on in time.
    """
    streams = channels.streams(source.channels)
    port = audio_input(program)
    if port is None:
        raise InputError(f"{program.model.title}: takes no sound; give a .npy or .npz file")
    if not target.is_sound and streams > 1:
        raise InputError(
            f"{target.name}: holds one stream; give --channel mix or a number, or a sound file to write"
        )
    started = time.perf_counter()
    latency = Latency(deadline_s)
    sessions = [_Timed(Session(program), latency) for _ in range(streams)]
    inward = Resampler(source.rate_hz, rate_hz, streams)

    def frames(samples: Samples) -> Iterator[list[Array]]:
        """For each chunk the ready frames of every stream."""
        shape = [1] * len(port.shape)
        shape[port.axis or 0] = len(samples)
        runs = [
            timed.push({port.name: np.ascontiguousarray(samples[:, number]).reshape(shape)})
            for number, timed in enumerate(sessions)
        ]
        for ready in zip(*runs):
            yield [outputs[output.name] for outputs in ready]

    done = 0

    def pieces() -> Iterator[list[Array]]:
        nonlocal done
        for block in source:
            yield from frames(inward.process(channels.select(block)))
            done += len(block)
            if advance is not None:
                advance(done, source.frames)
        yield from frames(inward.flush())
        yield [timed.session.flush()[output.name] for timed in sessions]

    nonfinite = 0
    clipping = encoding = found = None
    if target.is_sound:
        keeps_length = output.length == port.length
        with target.sound_writer(source.rate_hz, streams, source.encoding) as writer:
            outward = Resampler(rate_hz, source.rate_hz, streams)
            for piece in pieces():
                nonfinite += sum(map(_nonfinite, piece))
                writer.write(outward.process(np.stack([array.ravel() for array in piece], axis=1)))
            writer.write(outward.flush(done if keeps_length else None))
            clipping, encoding = writer.clipping, writer.encoding
    else:
        with target.frames_writer(output, rate_hz) as frames_file:
            for piece in pieces():
                nonfinite += _nonfinite(piece[0])
                frames_file.write(piece[0])
        found = _found(frames_file)
    heard, elapsed_s = sessions[0].session.frames_in, time.perf_counter() - started
    return FileRun(heard, streams, nonfinite, latency, elapsed_s, done, clipping, encoding, found)


def stream_arrays(
    program: Program,
    arrays: dict[str, Array],
    targets: dict[str, Path | Target],
    rate_hz: float | None,
    deadline_s: float | None = None,
    advance: Advance | None = None,
) -> FileRun:
    """Run arrays through any model; each output goes to its .npy or .csv, or to its target. Raises InputError."""
    started = time.perf_counter()
    ports = {port.name: port for port in program.inputs}
    missing = ports.keys() - arrays.keys()
    if missing:
        raise InputError(f"no array for input {', '.join(sorted(missing))}; the file has {', '.join(arrays)}")
    constants = {name: _as(port, arrays[name]) for name, port in ports.items() if not port.streams}
    streaming = {name: _as(port, arrays[name]) for name, port in ports.items() if port.streams}
    latency = Latency(deadline_s)
    timed = _Timed(Session(program, constants), latency)
    timed.session.check(streaming)
    with ExitStack() as stack:
        files = {
            port.name: stack.enter_context(_target(targets[port.name]).frames_writer(port, rate_hz))
            for port in program.outputs
            if port.name in targets
        }
        done = nonfinite = 0
        total = max(
            int(streaming[name].shape[ports[name].axis or 0] / ports[name].rate) for name in streaming
        )
        for ready in timed.push(streaming):
            for name, file in files.items():
                if name in ready:
                    nonfinite += _nonfinite(ready[name])
                    file.write(ready[name])
            done += program.pulse
            if advance is not None:
                advance(min(done, total), total)
        rest = timed.session.flush()
        for name, file in files.items():
            nonfinite += _nonfinite(rest[name])
            file.write(rest[name])
    found = [count for file in files.values() if (count := _found(file)) is not None]
    elapsed_s = time.perf_counter() - started
    return FileRun(
        timed.session.frames_in, 1, nonfinite, latency, elapsed_s, events=sum(found) if found else None
    )


def _target(place: Path | Target) -> Target:
    return place if isinstance(place, Target) else Target.of_frames(place)


def _found(file: object) -> int | None:
    return file.found if isinstance(file, EventsOutput) else None


def _nonfinite(array: Array) -> int:
    return array.size - int(np.count_nonzero(np.isfinite(array)))


def _as(port: Port, array: Array) -> Array:
    """The array in the port's type, where both are floating."""
    floating = np.issubdtype(array.dtype, np.floating) and np.issubdtype(port.dtype, np.floating)
    return array.astype(port.dtype) if floating else array
