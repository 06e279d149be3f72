"""Live: runs a program between audio devices until it is closed."""

import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.program.program import Program, require_program
from pulse.support.not_copyable import NotCopyable
from pulse.support.wording import spell
from streaming.audio.channels import input_channels
from streaming.hosts.host import Host
from streaming.hosts.portaudio.portaudio import PortAudio
from streaming.live.config import EngineConfig
from streaming.live.control import Control
from streaming.live.outputs import Outputs
from streaming.live.pipeline import Pipeline
from streaming.live.pipeline_statistics import PipelineStatistics, delay_of, measured_latency_s
from streaming.live.plan import TEARDOWN_TIMEOUT_S, Plan, PlannedDevices
from streaming.live.recorder import Recorder
from streaming.live.virtual_clock import has_virtual_clock
from streaming.live.watchdog import SUPERVISION_PERIOD_S, Watchdog
from streaming.live.worker import Worker
from streaming.native.callback import stream_callback
from streaming.realtime import Realtime, RealtimeSetting, apply_to_process, prefault
from streaming.stats.live_statistics import DelayBreakdown, LiveStatistics
from streaming.stats.setup import Setup

RECONNECTS = (None, "keep", "reset")
WARM_PULSES = 3
"""Pulses that run before the device opens, so that the first one is not slower than the others."""


class Live(NotCopyable, reason="it has threads and a device; restore() in another run what snapshot() gives"):
    """Runs a program between an input device and an output device.

    program        its streaming inputs must be sound
    plan           devices, rates, block sizes, channels
    engine_config  engine, policy, headroom
    realtime       the real-time settings to request from the system
    reconnect      what to do when a device disappears: None ends the run with an error; ``keep`` reopens the device
                   as soon as it is back; ``reset`` also restarts the model
    constants      the inputs that do not stream, by name
    host           the audio system; PortAudio if None
    Raises         InputError: the plan does not fit the program; DeviceError: a device cannot be opened

    A context manager that can be entered once; the devices are open inside the block. An error that ends the run is
    raised by ``wait``, or else at the end of the block.
    """

    def __init__(
        self,
        program: Program,
        plan: Plan,
        engine_config: EngineConfig = EngineConfig(),
        realtime: Realtime = Realtime(),
        reconnect: str | None = None,
        constants: Mapping[str, Array] | None = None,
        host: Host | None = None,
    ) -> None:
        require_program(program)
        if reconnect not in RECONNECTS:
            raise InputError(f"{spell('reconnect', reconnect)}: choose keep or reset, or omit it")
        self.plan, self.realtime = plan, realtime
        self.host = PortAudio() if host is None else host
        self.devices = PlannedDevices(self.host, plan, program, engine_config.output)
        engine_config = replace(engine_config, virtual_clock=self.host.virtual_clock)
        self.pipeline = Pipeline(program, self.devices.stream_config, engine_config, constants)
        self.pipeline.set_time(round(self._now_s() * 1e9))
        self.control = Control(self.pipeline)
        self.outputs = Outputs(self.pipeline)
        """The model's outputs for Python, if ``EngineConfig.records`` is set."""
        self.realtime_settings: list[RealtimeSetting] = []
        """The settings requested by ``realtime``, each with what the system granted."""
        self._statistics = PipelineStatistics(self.pipeline)
        self.watchdog = Watchdog(self.pipeline, self.devices, self.control, reconnect, self._now_s)
        """Knows whether the run continues, and the error that ended it."""
        self.worker: Worker | None = None
        """The thread that computes; None if a device or a virtual clock computes."""
        self._supervisor: threading.Thread | None = None
        self._stops = threading.Event()
        self._prepared = ExitStack()
        self._recorders: list[Recorder] = []
        self._raised = self._entered = False
        self.abandoned = False
        """Whether a device or the worker still used the pipeline after the run; its memory is then not freed."""

    def __enter__(self) -> "Live":
        if self._entered:
            raise InputError("a live run is entered once; make another one")
        self._entered = True
        try:
            self._warm()
            self.realtime_settings += self._prepared.enter_context(apply_to_process(self.realtime))
            if has_virtual_clock(self.host):
                self.host.attach(self.pipeline, self.poll)
            elif self.pipeline.engine_config.engine == "worker":
                self.worker = Worker(self.pipeline, self.realtime)
                self.worker.start()
                self.realtime_settings += self.worker.realtime_settings
            self.control.running = not self.host.virtual_clock
            self.devices.open(self.pipeline, self.watchdog.record_end)
            self._statistics.start()
            self.watchdog.start()
            if not self.host.virtual_clock:
                context = copy_context()  # the thread's messages spell parameters as this context does
                self._supervisor = threading.Thread(
                    target=context.run, args=(self._supervise,), name="pulse supervisor", daemon=True
                )
                self._supervisor.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()
        if kind is None and self.watchdog.error is not None and not self._raised:
            raise self.watchdog.error

    @property
    def delay(self) -> DelayBreakdown:
        """The present end-to-end delay."""
        return delay_of(self.pipeline, *(measured_latency_s(self.pipeline) or self.devices.latencies_s))

    @property
    def setup(self) -> Setup:
        """The settings with which the run began."""
        config, engine_config = self.pipeline.stream_config, self.pipeline.engine_config
        program = self.pipeline.program
        choice = config.channels
        channels = "each" if choice.each else "mix" if choice.index is None else str(choice.index)
        if config.input_channels:
            inputs = zip(input_channels(self.pipeline.instances.inputs), config.input_channels)
            channels = ", ".join(f"{channel.name} takes channel {number}" for channel, number in inputs)
        return Setup(
            model=program.model.title,
            backend=program.backend,
            weights=program.form,
            activations=program.activations,
            pulse_frames=program.pulse,
            rate_hz=config.rate_hz,
            input=self.devices.source.name,
            output=None if self.devices.target is None else self.devices.target.name,
            device_rate_hz=config.rate_in_hz,
            block_frames=config.block_frames,
            channels=channels,
            streams=self.pipeline.stream_count,
            engine=engine_config.engine if self.pipeline.native else "python",
            policy=engine_config.policy,
            deadline_s=self.pipeline.deadline_s,
            delay=self.delay,
            realtime_settings=tuple(self.realtime_settings),
        )

    def statistics(self) -> LiveStatistics:
        """Return the statistics so far; levels and load are since the previous call."""
        watch = self.watchdog
        notes = [
            *(str(setting) for setting in self.realtime_settings if not setting.is_granted),
            *self.devices.notes,
            *watch.events,
            *self.pipeline.instances.faults(),
        ]
        return self._statistics.read(self.delay, watch.stalls, watch.reopened, tuple(notes))

    def record(self, input: Path | None = None, output: Path | None = None) -> Recorder:
        """Write the input and the played output to audio files until the recorder or this object is closed.

        Raises InputError: a file that cannot be written
        """
        recorder = Recorder(self.pipeline, input, output, threaded=not self.host.virtual_clock)
        self._recorders.append(recorder)
        return recorder

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end of the run, at most this long. Returns whether it has ended. Raises the run's error."""
        ended = self.watchdog.wait(seconds)
        if ended and self.watchdog.error is not None:
            self._raised = True
            raise self.watchdog.error
        return ended

    def poll(self) -> None:
        """Check the worker and the devices. A thread calls this, unless the host has a virtual clock."""
        self._check_worker()
        self.watchdog.check()

    def close(self) -> None:
        """Release everything, in bounded time unless a disk that is recorded to hangs. The counters remain readable."""
        self._stops.set()
        if self._supervisor is not None:
            self._supervisor.join()
            self._supervisor = None
        self.devices.stop(TEARDOWN_TIMEOUT_S)
        stopped = not (self.devices.in_callback or self.abandoned)
        if has_virtual_clock(self.host):
            self.host.detach(self.pipeline)
        if self.worker is not None:
            stopped = self.worker.stop() and stopped
            self._check_worker()
        self.watchdog.close()
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
                self.watchdog.end(error)

    def _check_worker(self) -> None:
        if self.worker is not None and self.worker.error is not None:
            self.watchdog.end(self.worker.error)

    def _warm(self) -> None:
        """Compile, load and touch everything before the first block arrives."""
        program, pipeline = self.pipeline.program, self.pipeline
        stream_callback.prepare()
        state = program.spawn(pipeline.constants)
        state.stops_at_faults = False
        zeros = {port.name: np.zeros(port.shape, port.dtype) for port in program.inputs if port.streams}
        for _ in range(WARM_PULSES if program.limit is None else 1):
            state.step(zeros)
        pipeline.pump()
        prefault(*pipeline.memory.arrays)

    def _supervise(self) -> None:
        while not self._stops.wait(SUPERVISION_PERIOD_S):
            self.poll()

    def _now_s(self) -> float:
        return self.host.now_ns() / 1e9 if has_virtual_clock(self.host) else time.monotonic()


abandoned_pipelines: list[Pipeline] = []
"""Pipelines whose memory a stopping thread may still use; kept here so that it is not freed."""
