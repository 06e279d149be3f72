"""Runs whole files through a program, timed pulse by pulse."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from pulse.chunks.chunking import CallPlan
from pulse.errors import InputError
from pulse.facts import Array
from pulse.interface import Port
from pulse.ops.clock import frames_at
from pulse.ops.dims import is_floored_symbol
from pulse.program.program import Program
from pulse.support.record import record
from pulse.support.wording import spell
from streaming.audio.aligned_audio import AlignedAudio, RoutedAudio
from streaming.audio.channels import Samples, input_channels
from streaming.audio.output_files import AudioOutput, FramesOutput, OutputRoute, WrittenAudio
from streaming.latency import LatencyHistogram
from streaming.session import Session

Advance = Callable[[int, int | None], None]
"""Called with the number of samples or frames done, and the total; None if unknown."""


@record
class FileRun:
    """The result of a run over a file.

    frames     frames of the symbol, of each stream
    streams    the number of streams
    nonfinite  values of the written outputs, before resampling, that are NaN or infinite
    latency    the time of each pulse: to push it and get the ready frames
    elapsed_s  the whole time, files and resampling included
    samples    samples of each channel of the input; None if it was not audio
    written    the audio files that were written
    events     the number of events; None if frames were written
    padded     input -> frames of zeros after its data, if that ended before the others
    completed  frames of zeros after the last ones, since the model does not take every length
    """

    frames: int
    streams: int
    nonfinite: int
    latency: LatencyHistogram
    elapsed_s: float
    samples: int | None = None
    written: tuple[WrittenAudio, ...] = ()
    events: int | None = None
    padded: Mapping[str, int] = field(default_factory=dict[str, int])
    completed: int = 0


class _TimedSession:
    """Feeds a session pulse by pulse, and measures each pulse."""

    def __init__(self, session: Session, latency: LatencyHistogram) -> None:
        self.session = session
        self.latency = latency

    def push(self, blocks: dict[str, Array]) -> Iterator[dict[str, Array]]:
        """Push blocks of some or all inputs."""
        ports = [port for port in self.session.program.inputs if port.name in blocks]
        counts = [-(-blocks[port.name].shape[port.axis or 0] // port.frames) for port in ports]
        pulses = max(counts, default=0)
        for pulse_index in range(pulses):
            pulse = {
                port.name: frames_at(
                    blocks[port.name],
                    port.axis or 0,
                    pulse_index * port.frames,
                    (pulse_index + 1) * port.frames,
                )
                for port in ports
            }
            pulses_before = self.session.pulses
            start_ns = time.perf_counter_ns()
            ready = self.session.push(pulse)
            elapsed_ns = time.perf_counter_ns() - start_ns
            if self.session.pulses > pulses_before:
                self.latency.record_ns(elapsed_ns)
            yield ready


def stream_audio(
    program: Program,
    sources: Sequence[RoutedAudio],
    routes: Sequence[OutputRoute],
    rate_hz: int,
    other_inputs: Mapping[str, Array] | None = None,
    deadline_s: float | None = None,
    advance: Advance | None = None,
) -> FileRun:
    """Run audio through a model; the result is aligned with the first one, at its rate.

    sources       the sources of the audio inputs
    routes        targets of outputs: audio at the rate of the first input, or frames
    rate_hz       the rate of the model; audio is resampled to it, and back when it is written
    other_inputs  arrays: all frames of inputs that stream, whole tensors of the others
    Raises        InputError: an input gets nothing, or a source or target does not fit

    All inputs end together: shorter ones are padded with zeros. Ready output is written before more is read, so a live
    source stays live.
    """
    start_s = time.perf_counter()
    latency = LatencyHistogram(deadline_s)
    tables, constants = _split_inputs(program, sources, other_inputs or {})
    reader = sources[0].reader
    streams = max(choice.count_streams(reader.channels) for choice in sources[0].channels.values())
    for route in routes:
        if streams > 1 and not route.target.is_audio:
            raise InputError(
                f"{route.target.name}: holds one stream; give {spell('channel', 'mix')} or a number, or an audio file "
                "to write"
            )
    sessions = [_TimedSession(Session(program, constants), latency) for _ in range(streams)]
    feed = _Feed(program, AlignedAudio(sources, rate_hz), tables, sessions)
    source = _first_port(program, sources)
    outs: list[AudioOutput | FramesOutput] = []
    with ExitStack() as stack:
        for route in routes:
            if route.target.is_audio:
                keeps_length = all(_is_as_long(output.port, source) for output in route.outputs)
                outs.append(AudioOutput(stack, route, reader, rate_hz, streams, keeps_length))
            else:
                outs.append(FramesOutput(stack, route, rate_hz))
        for piece in feed.pieces(advance):
            for out in outs:
                out.write(piece)
        for out in outs:
            if isinstance(out, AudioOutput):
                out.end(feed.samples)
    counts = [
        out.event_count for out in outs if isinstance(out, FramesOutput) and out.event_count is not None
    ]
    return FileRun(
        frames=sessions[0].session.frames_in,
        streams=streams,
        nonfinite=sum(out.nonfinite for out in outs),
        latency=latency,
        elapsed_s=time.perf_counter() - start_s,
        samples=feed.samples,
        written=tuple(out.written for out in outs if isinstance(out, AudioOutput)),
        events=sum(counts) if counts else None,
        padded=feed.padded,
        completed=sessions[0].session.completed_frames,
    )


def _first_port(program: Program, sources: Sequence[RoutedAudio]) -> Port:
    """Return the first input that takes audio."""
    return next(
        channel.port for channel in input_channels(program.inputs) if channel.name in sources[0].channels
    )


def _is_as_long(port: Port, source: Port) -> bool:
    """Return whether an output has as many frames as an input, if the model takes the length."""
    return port.length == source.length or all(map(is_floored_symbol, (port.length, source.length)))


class _Feed:
    """Feeds audio and tables to the sessions of all streams.

    padded  input -> frames of zeros after its data
    """

    def __init__(
        self,
        program: Program,
        audio: AlignedAudio,
        tables: Mapping[str, Array],
        sessions: Sequence[_TimedSession],
    ) -> None:
        self._ports = {port.name: port for port in program.inputs}
        ports = [port for port in program.inputs if port.channels and port.name not in tables]
        self._audio_ports = {port: [channel.name for channel in input_channels([port])] for port in ports}
        self._waiting: dict[str, Samples] = {}
        self._symbol = program.model.symbol
        self._audio, self._tables, self._sessions = audio, tables, sessions
        self.padded: dict[str, int] = {}

    @property
    def samples(self) -> int:
        """The samples of each input channel, at the rate of the first source, with the silence that was added."""
        return self._audio.samples

    def pieces(self, advance: Advance | None) -> Iterator[Sequence[dict[str, Array]]]:
        """Yield the ready frames of every stream for each pulse; the last are those of the flush."""
        yield from self._push({}, self._tables)
        for blocks in self._audio:
            yield from self._push(blocks, self._missing_zeros())
            if advance is not None:
                advance(self._audio.samples, self._audio.samples_expected)
        for blocks in self._audio.fill(self._end()):
            yield from self._push(blocks, self._missing_zeros())
        self.padded |= self._audio.padded
        yield [timed.session.flush(complete=True) for timed in self._sessions]

    def _push(
        self, blocks: Mapping[str, Samples], frames: Mapping[str, Array]
    ) -> Iterator[Sequence[dict[str, Array]]]:
        """Push samples by input channel, [samples, streams], and frames for every stream."""
        sounds = self._join_channels(blocks)
        runs = [
            timed.push(
                {port.name: port.shape_sound(samples[stream]) for port, samples in sounds} | dict(frames)
            )
            for stream, timed in enumerate(self._sessions)
        ]
        yield from zip(*runs)

    def _join_channels(self, blocks: Mapping[str, Samples]) -> list[tuple[Port, NDArray[np.float32]]]:
        """Return the samples of inputs, [streams, samples, channels]; those of a channel wait for the others."""
        sounds: list[tuple[Port, NDArray[np.float32]]] = []
        for port, names in self._audio_ports.items():
            for name in blocks.keys() & names:
                self._waiting[name] = np.concatenate(
                    [self._waiting.get(name, blocks[name][:0]), blocks[name]]
                )
            ready = min(len(self._waiting[name]) if name in self._waiting else 0 for name in names)
            if ready:
                sounds.append((port, np.stack([self._waiting[name][:ready].T for name in names], axis=2)))
                for name in names:
                    self._waiting[name] = self._waiting[name][ready:]
        return sounds

    def _audio_rate(self) -> Fraction:
        """Return the samples of audio for each frame of the symbol."""
        return next(iter(self._audio_ports)).rate

    def _end(self) -> int:
        """Return the samples of audio as long as the longest input."""
        rate = self._audio_rate()
        counts = [
            ceil(array.shape[self._ports[name].axis or 0] * rate / self._ports[name].rate)
            for name, array in self._tables.items()
        ]
        return max([self._audio.samples_made, *counts])

    def _missing_zeros(self) -> dict[str, Array]:
        """Return zeros to pad tables that are shorter than the audio so far."""
        symbols = int(self._audio.samples_made / self._audio_rate())
        zeros: dict[str, Array] = {}
        for name, array in self._tables.items():
            port, axis = self._ports[name], self._ports[name].axis or 0
            frames = array.shape[axis] + self.padded.get(name, 0)
            missing = port.length.eval({self._symbol: symbols}) - frames
            if missing > 0:
                self.padded[name] = self.padded.get(name, 0) + missing
                zeros[name] = np.zeros([*array.shape[:axis], missing, *array.shape[axis + 1 :]], port.dtype)
        return zeros


def _split_inputs(
    program: Program, sources: Sequence[RoutedAudio], arrays: Mapping[str, Array]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Split arrays into the streaming inputs' and others. Raises InputError: an input that gets nothing."""
    routed = {name for source in sources for name in source.channels}
    tables: dict[str, Array] = {}
    constants: dict[str, Array] = {}
    for port in program.inputs:
        if port.name in arrays:
            (tables if port.streams else constants)[port.name] = _as_port_type(port, arrays[port.name])
        elif not port.channels or any(channel.name not in routed for channel in input_channels([port])):
            advice = spell("routes", {port.name: "SOURCE" if port.is_sound else "FILE.npy"})
            if not port.streams:
                advice += f", or {spell('constants', {port.name: 'VALUE'})}"
                plan = program.model.chunks
                if isinstance(plan, CallPlan) and (axes := plan.propose_axes(port.name)):
                    advice += f", or its time axis, as in {spell('axes', axes)}, if it has frames"
            raise InputError(f"{program.model.title}: input {port.label} gets nothing; give {advice}")
    return tables, constants


def stream_arrays(
    program: Program,
    arrays: Mapping[str, Array],
    route: OutputRoute,
    rate_hz: float | None,
    deadline_s: float | None,
    advance: Advance,
) -> FileRun:
    """Run arrays through any model; one output goes to its .npy, .csv or other target.

    Raises InputError: an input has no array, or one that does not fit
    """
    start_s = time.perf_counter()
    ports = {port.name: port for port in program.inputs}
    missing = ports.keys() - arrays.keys()
    if missing:
        raise InputError(f"no array for input {', '.join(sorted(missing))}; the file has {', '.join(arrays)}")
    streaming, constants = _split_inputs(program, (), arrays)
    timer = _TimedSession(Session(program, constants), LatencyHistogram(deadline_s))
    timer.session.check(streaming)
    with ExitStack() as stack:
        out, symbols = FramesOutput(stack, route, rate_hz), 0
        total = max(
            int(streaming[name].shape[ports[name].axis or 0] / ports[name].rate) for name in streaming
        )
        for ready in timer.push(streaming):
            out.write([ready])
            symbols += program.pulse
            advance(min(symbols, total), total)
        out.write([timer.session.flush(complete=True)])
    elapsed_s = time.perf_counter() - start_s
    return FileRun(
        timer.session.frames_in,
        1,
        out.nonfinite,
        timer.latency,
        elapsed_s,
        events=out.event_count,
        completed=timer.session.completed_frames,
    )


def _as_port_type(port: Port, array: Array) -> Array:
    """Convert the array to the port's type, if both are floating."""
    floating = np.issubdtype(array.dtype, np.floating) and np.issubdtype(port.dtype, np.floating)
    return array.astype(port.dtype) if floating else array
