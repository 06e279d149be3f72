"""Outputs of peers, joined to whole streams and compared with the expected ones."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import onnx

from bench.models import Entry, Explicit
from bench.models.explicit import constant_feeds
from bench.peers.onnxruntime_peer import OnnxRuntimePeer, session
from bench.peers.peer import Array, Feed, Outputs, Peer
from pulse.interface import Port
from pulse.program.program import Program

MIN_SCALE = 1e-9
"""Minimum divisor of a difference, for outputs that are almost zero."""

Streams: TypeAlias = dict[str, Array]
"""Output name -> its frames."""


class WrongResultError(Exception):
    """This project's own output differs from the model's: there is nothing to time."""


def reference(
    entry: Entry, proto: onnx.ModelProto, twin: Explicit | None, program: Program, pulses: Sequence[Feed]
) -> Streams:
    """Return the model's own result in onnxruntime: of the whole input, or chunk by chunk as its author runs it."""
    names = [port.name for port in program.outputs if port.streams]
    if not entry.offline:
        assert twin is not None, "a model of chunks is its own explicit form"
        return join_pulses(run_steps(OnnxRuntimePeer(twin, pulses[0]), pulses), program)
    feeds = constant_feeds(proto, entry.arguments.get("constants") or {})
    for port in program.inputs:
        values = [feed[port.name] for feed in pulses]
        feeds[port.name] = np.concatenate(values, port.axis or 0) if port.streams else values[0]
    results = session(proto.SerializeToString()).run(names, feeds)
    return {name: np.asarray(result) for name, result in zip(names, results)}


def run_steps(peer: Peer, pulses: Sequence[Feed]) -> list[Outputs]:
    """Run a peer pulse by pulse; return its results."""
    return [peer.step(pulse) for pulse in pulses]


def stream_outputs(peer: Peer, program: Program, pulses: Sequence[Feed]) -> Streams:
    """Return the frames that a peer outputs, without those of its delay."""
    outputs = join_pulses(run_steps(peer, pulses), program)
    for port in streams_of(program):
        delay = peer.delay(port.name)
        frames = np.moveaxis(outputs[port.name], port.axis or 0, 0)[port.delay if delay is None else delay :]
        outputs[port.name] = np.moveaxis(frames, 0, port.axis or 0)
    return outputs


def join_pulses(results: Sequence[Outputs], program: Program) -> Streams:
    """Return each output's pulses, one after the other."""
    return {
        port.name: np.concatenate([result[port.name] for result in results], port.axis or 0)
        for port in streams_of(program)
    }


def streams_of(program: Program) -> list[Port]:
    """Return the outputs that have frames in every pulse. Raises WrongResultError: there are none."""
    ports = [port for port in program.outputs if port.streams]
    if not ports:
        raise WrongResultError("no output has frames before the stream ends: there is nothing to compare")
    return ports


def distance(streams: Streams, expected: Streams, program: Program) -> float:
    """Return the largest difference over the frames that both have, relative to the largest value.

    Infinite if there are no frames, if shapes differ, or if a value is not a number.
    """
    worst = 0.0
    for port in streams_of(program):
        axis = port.axis or 0
        a, b = (np.moveaxis(side[port.name], axis, 0).astype(np.float64) for side in (streams, expected))
        frames = min(len(a), len(b))
        if not frames or a.shape[1:] != b.shape[1:]:
            return np.inf
        off = np.abs(a[:frames] - b[:frames]).max() / max(np.abs(b[:frames]).max(), MIN_SCALE)
        if not np.isfinite(off):
            return np.inf
        worst = max(worst, float(off))
    return worst
