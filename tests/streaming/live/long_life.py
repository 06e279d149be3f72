"""A long series of runs on virtual devices, each with all kinds of problems; some are aborted."""

import gc
import random
import time
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np

from pulse.facts import Array
from streaming.audio.files import AudioWriter
from streaming.live import EngineConfig, Live, Plan
from streaming.live import live as live_module
from streaming.live.config import ENGINES
from streaming.live.file_host import FileHost
from streaming.realtime.realtime_settings import UNCHANGED
from streaming.stats.live_statistics import Counters
from streaming.virtual.host import VirtualDevice
from tests.noise import normal_noise
from tests.streaming.live.manual_device import assert_nothing_left
from tests.streaming.live.runs import (
    RATE,
    assert_frames_add_up,
    delayed_model,
    fields,
    session_outputs,
    virtual_run,
)
from tests.streaming.models import cached_program, copy_model, filter_model

POLICIES = ("wait", "drop_oldest", "silence_then_catch_up")
BLOCKS = (50, 160, 333, 480, 1000, 1600)
TAIL, MEMORY = 2000, 3000
"""Frames that are compared at the end of a run, and those before them that the models may remember."""
SOUND = normal_noise(4 * RATE, 2)
ORDERS = ("reset", "restore", "swap")
FAULTS = ("stall", "stall", "slow", "late", "vanish", "hang", "end", "mute", "look", *ORDERS)


class CancelledError(Exception):
    """An exception that breaks a run off."""


class Run:
    """A run on a virtual device that records accepted and played samples."""

    def __init__(self, rng: Random, reached: Counter) -> None:
        self.rng, self.reached = rng, reached
        self.model = rng.choice([copy_model, filter_model, delayed_model])
        self.program = cached_program(self.model, rng.choice([80, 160, 480]))
        self.policy, self.engine = rng.choice(POLICIES), rng.choice([*ENGINES])
        self.block, self.reconnect = rng.choice([0, *BLOCKS[1:]]), rng.choice(["keep", "reset"])
        self.device = VirtualDevice(inputs=2, outputs=2, rate_hz=RATE)
        self.each = rng.random() < 0.5
        self.frames_given, self.whole = 0, True
        self.accepted, self.played, self.parts = [], [], []
        self.saved, self.stalled_s = None, 0.5
        reached.update(
            [self.policy, self.engine, self.reconnect, "any block" if self.block == 0 else "one block"]
        )

    def live(self) -> Live:
        most_s = max(BLOCKS) / RATE if self.block == 0 and self.engine == "worker" else None
        self.host, self.run = virtual_run(
            self.program,
            self.block,
            self.device,
            "each" if self.each else "mix",
            reconnect=self.reconnect,
            policy=self.policy,
            engine=self.engine,
            headroom_s=most_s,
            reserve_frames=8,
            records=True,
        )
        return self.run

    def feed(self, blocks: int) -> None:
        """Feed blocks; those that come while the device is away are lost."""
        for _ in range(blocks):
            first = self.rng.randrange(len(SOUND) // 2)
            x = SOUND[first : first + (self.block or self.rng.choice(BLOCKS))]
            before = fields(self.run).frames_in, fields(self.run).frames_lost
            self.played.append(self.host.tick(x, flags=self.rng.choice([0, 0, 0, 2, 4])))
            came, frames_lost = (
                fields(self.run).frames_in - before[0],
                fields(self.run).frames_lost - before[1],
            )
            assert came in (0, len(x))
            assert frames_lost in (0, came)
            assert len(self.played[-1]) == came
            self.frames_given += came
            if came > frames_lost:
                self.accepted.append(x)
            self.reached["lost" if frames_lost else "heard" if came else "unheard"] += 1

    def inject_fault(self, kind: str) -> None:
        """Inject a fault or a command."""
        rng, host, device, control = self.rng, self.host, self.device, self.run.control
        self.reached[kind] += 1
        match kind:
            case "stall":
                stall_s = rng.choice([0.01, 0.03, 0.1, 0.5, 5.0])
                self.stalled_s += stall_s
                host.stall(stall_s)
            case "slow":
                host.compute_s = rng.choice([0.0005, 0.002, 0.011])
            case "late":
                device.jitter_s = rng.choice([0.005, 0.05])
            case "vanish" | "hang":
                device.stalled, device.hangs = True, kind == "hang"
                device.present = kind != "vanish"
                self.feed(rng.randrange(200))
                device.stalled, device.hangs, device.present = False, False, True
            case "end":
                host.finish()
                self.feed(rng.randrange(20))
            case "reset" if not control.is_swapping:
                control.reset()
                self.whole = False
            case "restore" if not control.is_swapping and self.saved is None:
                self.saved = control.snapshot()
            case "restore" if not control.is_swapping and self.saved is not None:
                control.restore(self.saved)
                self.whole = False
            case "swap" if not control.is_swapping:
                control.swap(self.program, prime_s=0.1)
                self.whole = False
                self.saved = None
            case "mute":
                control.muted = rng.random() < 0.5
                control.bypassed = rng.random() < 0.5
            case _:
                self.run.statistics()

    def live_through(self) -> None:
        """Inject faults of all kinds, then run without faults; some runs are broken off."""
        kinds = FAULTS if self.rng.random() < 0.5 else [kind for kind in FAULTS if kind not in ORDERS]
        for kind in self.rng.choices(kinds, k=self.rng.randrange(3, 12)):
            self.feed(self.rng.randrange(60))
            self.inject_fault(kind)
            if self.rng.random() < 0.02:
                self.reached["cancelled"] += 1
                raise CancelledError
            self.take()
            assert_frames_add_up(self.run, self.frames_given)
        self.device.jitter_s = self.host.compute_s = 0.0
        self.run.control.muted = self.run.control.bypassed = False
        for _ in range(2):  # a device that was opened meanwhile may still go away once
            self.feed(2)
            while not self.host.streams:
                self.host.advance(0.1)
        calm = self.frames_given
        needed = calm + self.stalled_s * 1.2 * RATE + TAIL + MEMORY
        while self.frames_given < needed + self.run.delay.frames:
            self.feed(10)
            self.take()

    def take(self) -> None:
        self.parts.append(self.run.outputs.take_ready())

    def assert_outputs_as_offline(self) -> tuple[Counters, Array]:
        """Compare the outputs of an ended run with offline outputs, if no pulse was lost."""
        counters, accepted = self.run.statistics().counters, np.concatenate([*self.accepted, SOUND[:0]])
        assert fields(self.run).in_written == len(accepted)
        self.parts.append(self.run.outputs.flush())
        pulses_lost = self.run.outputs.pulses_lost
        self.reached["records lost"] += pulses_lost > 0
        self.reached["whole"] += self.whole
        channels = accepted if self.each else np.repeat(accepted.mean(1, keepdims=True), 1, 1)
        if self.whole and not (
            pulses_lost or counters.pulses_dropped or (self.reconnect == "reset" and counters.stalls)
        ):
            for number, expected in enumerate(session_outputs(self.program, channels)):
                y = np.concatenate([part[number]["y"] for part in self.parts], 1)
                np.testing.assert_array_equal(y, expected["y"])
            self.reached["same as offline"] += 1
        return counters, channels

    def assert_calm_end(self) -> None:
        """Compare the sound at the end of a run and its delay with sessions."""
        counters, accepted = self.assert_outputs_as_offline()
        delay = self.run.delay.frames
        if self.policy != "wait":
            assert delay == self.run.pipeline.delay_frames
            assert counters.frames_silent == counters.frames_skipped + counters.frames_lost
        last = accepted[-(TAIL + MEMORY + delay) :]
        expected = np.stack([result["y"].ravel() for result in session_outputs(self.program, last)], 1)
        played = np.concatenate(self.played)[-TAIL:]
        np.testing.assert_allclose(
            played, np.broadcast_to(expected[-delay - TAIL :][:TAIL], played.shape), atol=1e-5
        )
        self.reached["in place at the end"] += 1


class RunSequence:
    """Runs one after the other; ``virtual_s`` is the time that they have played."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng, self.reached = random.Random(seed), Counter()
        self.virtual_s = self.busy_s = 0.0
        self.memory_mb = []
        self.sound = folder / "sound.wav"
        with AudioWriter(self.sound, RATE, 2, "FLOAT") as file:
            file.write(normal_noise(RATE, 2) / 4)

    def run_until(self, virtual_s: float) -> None:
        while self.virtual_s < virtual_s:
            self.run_on_virtual_clock()
            if self.reached["runs"] % 6 == 0:
                self.run_with_threads()

    def run_on_virtual_clock(self) -> None:
        """Run once on a clock that only the test moves."""
        run, abandoned = Run(self.rng, self.reached), [*live_module.abandoned_pipelines]
        begun_s = time.process_time()
        with assert_nothing_left():
            try:
                with run.live():
                    run.live_through()
                run.assert_calm_end()
            except CancelledError:
                run.assert_outputs_as_offline()
        self.busy_s += time.process_time() - begun_s
        statistics = run.run.statistics()
        self.virtual_s += run.frames_given / RATE
        self.reached["runs"] += 1
        self.reached["reopened"] += statistics.counters.reopened
        self.reached["silent"] += statistics.counters.frames_silent > 0
        assert not run.run.watchdog.has_ended
        assert not run.host.streams
        assert live_module.abandoned_pipelines == abandoned, (
            "a device that hangs outside the pipeline does not keep it"
        )
        gc.collect()
        self.memory_mb.append(resident_mb())

    def run_with_threads(self) -> None:
        """Run once with real threads and break the run off at a random moment."""
        pace = self.rng.choice([None, 20.0])
        with assert_nothing_left():
            behaviour = EngineConfig(self.rng.choice([*ENGINES]), self.rng.choice([*POLICIES]))
            with Live(
                cached_program(filter_model),
                Plan(RATE),
                behaviour,
                UNCHANGED,
                host=FileHost(self.sound, None, pace),
            ) as live:
                live.wait(self.rng.random() * 0.1)
            counters = live.statistics().counters
        assert counters.frames_in == fields(live).in_written + counters.frames_lost
        self.reached["threads"] += 1


def resident_mb() -> float:
    """Memory of this process; 0 where that is not known."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * 4096 / 1e6 if status.exists() else 0.0
