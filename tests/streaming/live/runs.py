"""Models for live runs, and runs on virtual devices."""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

import pulse
from pulse.models import TypedModel
from pulse.ops.conv import Conv
from pulse.ops.cumulative import CumSum
from pulse.ops.elementwise import Elementwise
from pulse.ops.shape import AddAxis, RemoveAxis
from streaming import Session
from streaming.audio.channels import Channels
from streaming.live import EngineConfig, Live, Plan
from streaming.live.config import ENGINES
from streaming.native.control_block import ControlBlock
from streaming.realtime.realtime_settings import UNCHANGED
from streaming.virtual.host import VirtualDevice, VirtualHost
from tests.pulse.cases.build import node
from tests.pulse.chunks.models import build, cached_filter
from tests.streaming.models import TypedBuilder, pads

RATE = 16000
BLOCK = 160
engines = pytest.mark.parametrize("engine", ENGINES)


def sum_model() -> TypedModel:
    """The model x [1, T] -> y [1, T] of running sums."""
    builder = TypedBuilder()
    x = builder.source("x", "1,T,f32")
    return builder.finish(y=builder.wire("y", CumSum(1), x))


def meter_model(frames: int = 8) -> TypedModel:
    """x [1, T] -> y [1, T], the same louder, and level [1, 1, T/8], the means of 8 samples, of which 2 are ahead."""
    builder = TypedBuilder()
    x = builder.source("x", "1,T,f32")
    deep = builder.wire("deep", AddAxis(1), x)
    weights = builder.constant("w", np.full((1, 1, frames), 1 / frames))
    level = builder.wire("level", Conv((frames,), (1,), pads(frames - 2, 2)), deep, weights)
    return builder.finish(
        y=builder.wire("y", Elementwise("mul"), x, builder.constant("half", [[0.5]])), level=level
    )


NOTHING = 1e-30
"""A weight that changes no sound; a tap of weight 0 would not be waited for."""


def delayed_model(delay: int = 5, weight: float = 1.0) -> TypedModel:
    """x [1, T] -> y [1, T], x times a weight; it needs ``delay`` more frames."""
    builder = TypedBuilder()
    x = builder.source("x", "1,T,f32")
    taps = np.zeros((1, 1, delay + 1))
    taps[0, 0, 0] = weight
    taps[0, 0, -1] += NOTHING
    deep = builder.wire("deep", AddAxis(1), x)
    y = builder.wire("conv", Conv((1,), (1,), pads(0, delay)), deep, builder.constant("w", taps))
    return builder.finish(y=builder.wire("flat", RemoveAxis(1), y))


def reciprocal_model() -> TypedModel:
    """The model x [1, T] -> y [1, T] of 1 / x."""
    builder = TypedBuilder()
    x = builder.source("x", "1,T,f32")
    return builder.finish(y=builder.wire("y", Elementwise("div"), builder.constant("one", [[1.0]]), x))


def filtered_chunks() -> ModelProto:
    """Audio x [1, 8] times gain [] through a filter to y [1, 8]; cache [1, 4] is the audio before."""
    nodes, constants = cached_filter("louder")
    inputs = {"x": [1, 8], "cache": [1, 4], "gain": []}
    outputs = {"y": [1, 8], "cache_out": [1, 4]}
    return build([node("Mul", "x gain", "louder"), *nodes], inputs, outputs, constants)


@cache
def chunk_program() -> Any:
    return pulse.stream(pulse.load(filtered_chunks(), chunking=pulse.Chunking(axes={"x": 1})))


def virtual_run(
    compiled: Any,
    block: int | None = BLOCK,
    device: VirtualDevice | Sequence[VirtualDevice] | None = None,
    channels: str = "mix",
    play: bool = True,
    compute_s: float = 0.0,
    device_rate_hz: int | None = None,
    reconnect: str | None = None,
    constants: Any = None,
    rate_hz: int = RATE,
    **behaviour: Any,
) -> tuple[VirtualHost, Live]:
    """A run on virtual devices that has not begun."""
    devices = [device or VirtualDevice(rate_hz=RATE)] if not isinstance(device, Sequence) else device
    host = VirtualHost(*devices, compute_s=compute_s)
    plan = Plan(
        rate_hz,
        play=play,
        channels=Channels.parse(channels),
        block_frames=block,
        device_rate_hz=device_rate_hz,
    )
    return host, Live(compiled, plan, EngineConfig(**behaviour), UNCHANGED, reconnect, constants, host)


def stereo() -> VirtualDevice:
    """A device of two channels each way."""
    return VirtualDevice(inputs=2, outputs=2, rate_hz=RATE)


@contextmanager
def runs(compiled: Any, *arguments: Any, **options: Any) -> Generator[tuple[VirtualHost, Live]]:
    """Open a run on virtual devices; the context ends it."""
    host, live = virtual_run(compiled, *arguments, **options)
    with live:
        yield host, live


def session_outputs(program: Any, x: np.ndarray, constants: Any = None) -> list[dict[str, np.ndarray]]:
    """The session outputs of each column of [frames, streams], flush included."""
    results = []
    for column in x.T:
        session = Session(program, constants)
        port = next(port for port in program.inputs if port.streams)
        shape = [-1 if axis == port.axis else 1 for axis in range(len(port.shape))]
        parts = session.push(column.reshape(shape)), session.flush()
        results.append(
            {
                port.name: np.concatenate([part[port.name] for part in parts], port.axis)
                if port.streams
                else parts[1][port.name]
                for port in program.outputs
            }
        )
    return results


def played_by(program: Any, x: np.ndarray, output: str, constants: Any = None) -> np.ndarray:
    """The output for audio [frames, streams], one channel for each stream."""
    return np.stack([result[output].ravel() for result in session_outputs(program, x, constants)], axis=1)


def late_by(sound: np.ndarray, frames: int, total: int) -> np.ndarray:
    """The first ``total`` frames of ``frames`` of silence followed by the sound."""
    return np.concatenate([np.zeros((frames, sound.shape[1]), np.float32), sound])[:total]


def frames_of(counts: Iterable[int], total: int) -> list[int]:
    """Repeat block sizes until they add up to this many frames."""
    sizes: list[int] = []
    while sum(sizes) < total:
        sizes += list(counts)
    return sizes


def play_with_changes(host: VirtualHost, x: np.ndarray, *changes: Callable[[], object]) -> list[np.ndarray]:
    """Play x in parts, with a change before each part but the first; returns the played parts."""
    pieces = np.array_split(x, len(changes) + 1)
    played = [host.run(pieces[0])]
    for change, piece in zip(changes, pieces[1:]):
        host.advance(0.001)
        change()
        played.append(host.run(piece))
    return played


def fields(live: Live) -> ControlBlock:
    """The control block of the pipeline."""
    return live.pipeline.control_block


def assert_frames_add_up(live: Live, frames_given: int) -> None:
    """Require that the counters account for every frame; nothing may be resampled."""
    pipeline, counters = live.pipeline, live.statistics().counters
    pulses, pulse_frames = fields(live).pulses, pipeline.program.pulse
    accepted = fields(live).in_written
    in_flight = accepted - fields(live).in_read + fields(live).filled_frames
    assert counters.frames_in == frames_given == accepted + counters.frames_lost
    assert counters.pulses + counters.pulses_dropped == pulses
    assert accepted == pulses * pulse_frames + in_flight
    out_written, read = fields(live).out_written, fields(live).out_read
    assert out_written == fields(live).initial_frames + pulses * pulse_frames
    played = read - counters.frames_skipped - counters.frames_cut
    assert counters.frames_out == played + counters.frames_silent + fields(live).delay_growth_frames
    assert out_written - read >= 0
