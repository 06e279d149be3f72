"""Live: a program between devices, for as long as one likes."""

import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.program.program import Program, require_program
from pulse.uncopied import Uncopied
from streaming.hosts.host import Host
from streaming.hosts.usual import usual_host
from streaming.live.bookkeeping import Bookkeeping, delay_of, measured_latency_s
from streaming.live.control import Control
from streaming.live.form import Behaviour
from streaming.live.held_host import is_held
from streaming.live.outputs import Outputs
from streaming.live.pipeline import Pipeline
from streaming.live.plan import Plan, Streams
from streaming.live.recorder import Recorder
from streaming.live.watch import PERIOD_S, TEARDOWN_S, Watch
from streaming.live.worker import Worker
from streaming.realtime import Measure, Realtime, prefault, prepare
from streaming.stats.account import Account, Delay
from streaming.stats.setup import Setup

RECONNECTS = (None, "keep", "reset")
WARM_PULSES = 3


class Live(Uncopied):
    """A program between a device that hears and one that plays.

    program    whose inputs that stream are sound
    plan       devices, rates, blocks, channels
    behaviour  engine, policy, headroom
    realtime   what is asked of the system
    reconnect  what is done where a device goes away: None ends the run with an error; ``keep`` opens it again as soon
               as it is back, ``reset`` does too and lets the model begin anew
    constants  the inputs that do not stream, by name
    host       who has the devices; PortAudio where None
    Raises     InputError, DeviceError

    A context manager, entered once; inside of the block the devices are open. What ends a run by itself is raised by
    ``wait``, else at the end of the block.
    """

    instead = "it has threads and a device; start another run, and restore() there what snapshot() gives here"

    def __init__(
        self,
        program: Program,
        plan: Plan,
        behaviour: Behaviour = Behaviour(),
        realtime: Realtime = Realtime(),
        reconnect: str | None = None,
        constants: Mapping[str, Array] | None = None,
        host: Host | None = None,
    ) -> None:
        require_program(program)
        if reconnect not in RECONNECTS:
            raise InputError(f"reconnect {reconnect!r}: give keep, reset or nothing")
        self.plan, self.realtime = plan, realtime
        self.host = usual_host() if host is None else host
        self.devices = Streams(self.host, plan, program)
        behaviour = replace(behaviour, held_clock=self.host.held)
        self.pipeline = Pipeline(program, self.devices.form, behaviour, constants)
        self.pipeline.set_time(round(self._now_s() * 1e9))
        self.control = Control(self.pipeline)
        self.outputs = Outputs(self.pipeline)
        """Frames for Python, where ``Behaviour.records``."""
        self.measures: list[Measure] = []
        """What was had of ``realtime``."""
        self._books = Bookkeeping(self.pipeline)
        self.watch = Watch(self.pipeline, self.devices, self.control, reconnect, self._now_s)
        """Whether the run goes on; what ended it."""
        self.worker: Worker | None = None
        """The thread that computes; None where a device or a held clock does it."""
        self._supervisor: threading.Thread | None = None
        self._stops = threading.Event()
        self._prepared = ExitStack()
        self._recorders: list[Recorder] = []
        self._raised = self._entered = False
        self.abandoned = False
        """Whether a device or the worker has not returned from the pipeline after the run: it is left to them."""

    def __enter__(self) -> "Live":
        if self._entered:
            raise InputError("a live run is entered once; make another one")
        self._entered = True
        try:
            self._warm()
            self.measures += self._prepared.enter_context(prepare(self.realtime))
            if is_held(self.host):
                self.host.attend(self.pipeline, self.look)
            elif self.pipeline.behaviour.engine == "worker":
                self.worker = Worker(self.pipeline, self.realtime)
                self.worker.start()
                self.measures += self.worker.measures
            self.control.running = not self.host.held
            self.devices.open(self.pipeline, self.watch.finished)
            self._books.begin()
            self.watch.begin()
            if not self.host.held:
                speech = copy_context()  # its messages spell parameters as this thread's do
                self._supervisor = threading.Thread(
                    target=speech.run, args=(self._supervise,), name="pulse-supervisor", daemon=True
                )
                self._supervisor.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if kind is None and self.watch.error is not None and not self._raised:
            raise self.watch.error

    @property
    def delay(self) -> Delay:
        """From mouth to ear, as it is now."""
        return delay_of(self.pipeline, *(measured_latency_s(self.pipeline) or self.devices.latencies_s))

    @property
    def setup(self) -> Setup:
        """What the run was started with."""
        form, behaviour, program = self.pipeline.form, self.pipeline.behaviour, self.pipeline.program
        choice = form.channels
        named = "each" if choice.each else "mix" if choice.index is None else str(choice.index)
        if form.heard:
            inputs = zip(self.pipeline.instances.inputs, form.heard)
            named = ", ".join(f"{port.name} hears channel {channel}" for port, channel in inputs)
        return Setup(
            model=program.model.title,
            backend=program.backend,
            weights=program.form,
            pulse_frames=program.pulse,
            rate_hz=form.rate_hz,
            input=self.devices.source.name,
            output=None if self.devices.target is None else self.devices.target.name,
            device_rate_hz=form.rate_in_hz,
            block_frames=form.block_frames,
            channels=named,
            streams=self.pipeline.streams,
            engine=behaviour.engine if self.pipeline.native else "python",
            policy=behaviour.policy,
            deadline_s=self.pipeline.deadline_s,
            delay=self.delay,
            measures=tuple(self.measures),
        )

    def account(self) -> Account:
        """How the run does now; levels and load are those since the last account."""
        watch = self.watch
        notes = [
            *(str(measure) for measure in self.measures if not measure.had),
            *self.devices.notes,
            *watch.events,
            *self.pipeline.instances.faults(),
        ]
        return self._books.account(self.delay, watch.stalls, watch.reopened, tuple(notes))

    def record(self, heard: Path | None = None, played: Path | None = None) -> Recorder:
        """Write what comes in, and what is played, to sound files until the recorder or this is closed.

        Raises InputError: a file that cannot be written
        """
        recorder = Recorder(self.pipeline, heard, played, threaded=not self.host.held)
        self._recorders.append(recorder)
        return recorder

    def wait(self, seconds: float | None = None) -> bool:
        """Wait so long, or for ever, unless the run ends by itself; whether it has. Raises what ended it."""
        ended = self.watch.wait(seconds)
        if ended and self.watch.error is not None:
            self._raised = True
            raise self.watch.error
        return ended

    def look(self) -> None:
        """See that the run goes on; done by a thread, unless a test holds the clock."""
        self._see_worker()
        self.watch.look()

    def close(self) -> None:
        """Give everything back, in bounded time unless a disk hangs that is recorded to; the counters stay."""
        self._stops.set()
        if self._supervisor is not None:
            self._supervisor.join()
            self._supervisor = None
        self.devices.stop(TEARDOWN_S)
        stopped = not (self.devices.inside or self.abandoned)
        if is_held(self.host):
            self.host.leave(self.pipeline)
        if self.worker is not None:
            stopped = self.worker.stop() and stopped
            self._see_worker()
        self.watch.conclude()
        self.control.running = self.control.running and not stopped
        if stopped:
            self.pipeline.close()
        elif not self.abandoned:
            self.abandoned = True
            abandoned_pipelines.append(self.pipeline)
        self._prepared.close()
        for recorder in self._recorders:
            try:
                recorder.close()
            except InputError as error:
                self.watch.end(error)

    def _see_worker(self) -> None:
        if self.worker is not None and self.worker.error is not None:
            self.watch.end(self.worker.error)

    def _warm(self) -> None:
        """Compile, load and touch everything before the first block comes."""
        program, pipeline = self.pipeline.program, self.pipeline
        _ = pipeline.callback_address
        state = program.spawn(pipeline.constants)
        state.stops_at_faults = False
        zeros = {port.name: np.zeros(port.shape, port.dtype) for port in program.inputs if port.streams}
        for _ in range(WARM_PULSES if program.limit is None else 1):
            state.step(zeros)
        pipeline.pump()
        prefault(*pipeline.memory.arrays)

    def _supervise(self) -> None:
        while not self._stops.wait(PERIOD_S):
            self.look()

    def _now_s(self) -> float:
        return self.host.now_ns() / 1e9 if is_held(self.host) else time.monotonic()


abandoned_pipelines: list[Pipeline] = []
"""Pipelines that a thread may still use which was told to stop: their memory stays."""
