"""Workers killed while they serve streams in real time: how long each stream is silent, and whether it is exact."""

import os
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import numpy as np

import pulse
from bench.fleet.cluster import fleet_here
from pulse.client import RemoteStream, connect
from streaming.builtin import SAMPLE_RATE_HZ, model_path
from streaming.fleet.deployment import Deployment
from streaming.serve.settings import ModelSettings, ServerSettings
from streaming.session import Session

BLOCK = 320
"""Frames of a client's message."""
PULSE = 160
"""Frames of a pulse."""
RECOVERY_TIMEOUT_S = 20.0
"""A stream that cannot resume within this many seconds after a kill is lost."""
SETTLE_S = 1.0
"""Seconds after a kill, until the silence around it is measured."""


@dataclass(frozen=True)
class Kills:
    """The result of a run.

    silences_ms  for each stream of each killed worker: the longest time without a new output around the kill, as its
                 client sees it; without a kill, the length of a block
    equal        streams whose whole output has the bits of a session without kills
    """

    kills: int
    streams: int
    equal: int
    seconds: float
    block_ms: float
    checkpoint_s: float
    connections: int
    silences_ms: list[float]

    def percentile_ms(self, percent: float) -> float:
        """Return a percentile of the silences."""
        return float(np.percentile(self.silences_ms, percent))

    def text(self) -> str:
        """Return the result as text."""
        rows = [
            ("kills", f"{self.kills} in {self.seconds:.0f} s"),
            ("streams", f"{self.streams}, blocks of {self.block_ms:g} ms"),
            ("checkpoint", f"every {self.checkpoint_s:g} s of sound"),
            ("streams resumed on another worker", f"{len(self.silences_ms)} times"),
            *(
                (f"silence p{percent}", f"{self.percentile_ms(percent):.0f} ms")
                for percent in (50, 90, 99, 100)
            ),
            ("streams with the bits of a run without kills", f"{self.equal} of {self.streams}"),
        ]
        return "\n".join(["| | |", "|---|---:|", *(f"| {name} | {value} |" for name, value in rows)])


class Speaker:
    """A client in real time: it sends a block of a repeating signal every 20 ms and keeps what it receives."""

    def __init__(self, stream: RemoteStream, seed: int) -> None:
        self.stream = stream
        sound = 0.1 * np.random.default_rng(seed).standard_normal((1, 50 * BLOCK))
        self._sound = sound.astype(np.float32)
        self.sent = 0
        self.received_s: list[float] = []
        self._outputs: list[np.ndarray] = []
        self._stopped = False

    async def speak(self) -> None:
        """Send blocks until ``stop``."""
        next_s = time.perf_counter()
        while not self._stopped:
            await self.stream.send(self._block(self.sent))
            self.sent += 1
            next_s = max(next_s + BLOCK / SAMPLE_RATE_HZ, time.perf_counter() - 0.5)
            await anyio.sleep(max(0.0, next_s - time.perf_counter()))
        await self.stream.end()

    async def listen(self) -> None:
        """Receive blocks until the end of the stream."""
        async for outputs in self.stream:
            self.received_s.append(time.perf_counter())
            self._outputs.append(outputs["denoised"])

    def stop(self) -> None:
        """Send no more blocks."""
        self._stopped = True

    def silence_ms(self, since_s: float) -> float:
        """Return the longest time without a new output around a moment."""
        first = max(0, int(np.searchsorted(self.received_s, since_s)) - 1)
        return float(np.diff(self.received_s[first:]).max()) * 1e3

    def is_equal(self, session: Session) -> bool:
        """Return whether all received frames are bit-identical to those of a session."""
        pieces = [session.push(self._block(index))["denoised"].copy() for index in range(self.sent)]
        expected = np.concatenate([*pieces, session.flush()["denoised"]], 1)
        return np.array_equal(np.concatenate(self._outputs, 1), expected)

    def _block(self, index: int) -> np.ndarray:
        first = index * BLOCK % self._sound.shape[1]
        return self._sound[:, first : first + BLOCK]


def measure_kills(
    kills: int, nodes: int = 3, streams: int = 4, checkpoint_s: float = 0.25, seed: int = 0
) -> Kills:
    """Kill workers of a fleet on this machine, one after the other, with SIGKILL."""
    server = ServerSettings(
        (ModelSettings(streams=32, pulse=PULSE),),
        port=0,
        threads=1,
        checkpoint_s=checkpoint_s,
        budget=100.0,  # processors are shared with all else here, so a measured p99 has little meaning
    )
    deployment = Deployment(server=server, min_workers=nodes, max_workers=nodes)
    with fleet_here(nodes, deployment) as (fleet, _):
        return anyio.run(measure_kills_of, fleet, kills, streams, checkpoint_s, seed)


async def measure_kills_of(fleet, kills: int, streams: int, checkpoint_s: float, seed: int) -> Kills:
    """Do the same in an existing fleet, whose checkpoint interval is ``checkpoint_s``."""
    import ray  # pyright: ignore[reportMissingImports]

    urls = [worker.url for worker in fleet.status().table.live_workers("1")]
    order = random.Random(seed)
    silences: list[float] = []
    began_s = time.perf_counter()
    speakers: list[Speaker] = []
    async with anyio.create_task_group() as tasks:

        async def open_speaker(seed: int, *, task_status=anyio.TASK_STATUS_IGNORED) -> None:
            async with connect(
                urls, rate_hz=SAMPLE_RATE_HZ, reconnect_timeout_s=RECOVERY_TIMEOUT_S
            ) as stream:
                speaker = Speaker(stream, seed)
                speakers.append(speaker)
                async with anyio.create_task_group() as both:
                    both.start_soon(speaker.speak)
                    both.start_soon(speaker.listen)
                    task_status.started()

        for index in range(streams):
            await tasks.start(open_speaker, index)
        await anyio.sleep(2.0)
        count = 0
        while count < kills:
            await anyio.to_thread.run_sync(
                fleet.wait, lambda status: len(status.table.live_workers("1")) >= 2, RECOVERY_TIMEOUT_S + 60
            )
            await anyio.sleep(order.uniform(0.1, 0.6))
            victim = await anyio.to_thread.run_sync(_fullest, fleet, ray)
            if victim is None:
                continue
            count += 1
            silences += await _kill(victim, speakers)
            if count % 20 == 0 and silences:
                print(
                    f"{count} kills, {len(silences)} streams: p50 {np.percentile(silences, 50):.0f} ms, "
                    f"p99 {np.percentile(silences, 99):.0f} ms, max {max(silences):.0f} ms",
                    flush=True,
                )
        for speaker in speakers:
            speaker.stop()
    seconds = time.perf_counter() - began_s
    program = pulse.stream(model_path(), pulse=PULSE)
    equal = sum(speaker.is_equal(Session(program)) for speaker in speakers)
    connections = sum(speaker.stream.connections for speaker in speakers)
    block_ms = BLOCK / SAMPLE_RATE_HZ * 1e3
    return Kills(
        kills=kills,
        streams=streams,
        equal=equal,
        seconds=seconds,
        block_ms=block_ms,
        checkpoint_s=checkpoint_s,
        connections=connections,
        silences_ms=silences,
    )


async def _kill(process: int, speakers: Sequence[Speaker]) -> list[float]:
    """Kill a worker. Returns the silence in ms of each stream that moved to another worker."""
    connections_before = [speaker.stream.connections for speaker in speakers]
    killed_s = time.perf_counter()
    os.kill(process, signal.SIGKILL)
    await anyio.sleep(SETTLE_S)
    with anyio.fail_after(RECOVERY_TIMEOUT_S):
        while any(speaker.received_s[-1] < killed_s + SETTLE_S / 2 for speaker in speakers):
            await anyio.sleep(0.02)
    hit = [
        speaker for speaker, count in zip(speakers, connections_before) if speaker.stream.connections > count
    ]
    return [speaker.silence_ms(killed_s) for speaker in hit]


def _fullest(fleet, ray) -> int | None:
    """Return the process of the worker with the most streams that can move to other workers."""
    live = fleet.status().table.live_workers("1")
    workers: list[tuple[int, int]] = []
    for worker in live:
        try:
            actor = ray.get_actor(worker.name, fleet.name)
        except ValueError:  # it has just died
            continue
        try:
            status, process = ray.get([actor.status.remote(), actor.process.remote()], timeout=5)
        except ray.exceptions.RayError:
            continue
        if status is not None:
            workers.append((status.streams, process))
    streams, process = max(workers, default=(0, 0))
    return process if streams and len(workers) > 1 else None
