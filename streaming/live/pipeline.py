"""Pipeline: a native path from a device through a model and back."""

import threading
from collections.abc import Mapping

from pulse.errors import InputError
from pulse.facts import Array
from pulse.jit.events import NativeEvent
from pulse.program.program import Program
from pulse.support.not_copyable import NotCopyable
from pulse.support.record import record
from pulse.support.wording import spell
from streaming.audio.channels import input_channels
from streaming.live.config import EngineConfig, StreamConfig
from streaming.live.instances import Instances, live_inputs
from streaming.live.pipeline_memory import PipelineMemory
from streaming.live.resamplers import Resamplers
from streaming.native import positions
from streaming.native.callback import stream_callback
from streaming.native.control_block import RECORD_HEADER_BYTES, header_at
from streaming.native.pulse_loop import call_pipeline, next_pulse, pump, run_pulse
from streaming.routing import playable_output


@record
class PulseRecord:
    """The outputs of one pulse.

    pulse         number of the pulse
    arrived_ns, ready_ns  when its last sample arrived, and when the outputs were ready (monotonic)
    load_count    how many times states had been loaded
    state_pulses  pulses that the loaded states had run, plus those since then
    outputs       the outputs of each stream by name, frames of the model's delay included
    """

    pulse: int
    arrived_ns: int
    ready_ns: int
    load_count: int
    state_pulses: int
    outputs: list[dict[str, Array]]


class Pipeline(NotCopyable, reason="it holds addresses of this process; make another one"):
    """The native path of one run: its memory and its compiled functions.

    program        its streaming inputs must be sound; runs without Python if all of it is on the numba backend
    stream_config  the devices to connect
    engine_config  how to compute
    constants      the inputs that do not stream, by name
    Raises         InputError: the program and the configurations do not match

    A device calls the C function at ``callback_address`` with ``address`` as user data. ``Worker`` computes, or the
    callback does; ``Control`` changes the output.
    """

    def __init__(
        self,
        program: Program,
        stream_config: StreamConfig,
        engine_config: EngineConfig = EngineConfig(),
        constants: Mapping[str, Array] | None = None,
    ) -> None:
        self.stream_config, self.engine_config = stream_config, engine_config
        self.constants = dict(constants or {})
        self.stream_count = stream_config.stream_count
        sources = live_inputs(program)
        inputs = input_channels(sources)
        if len(inputs) != max(len(stream_config.input_channels), 1):
            raise InputError(
                f"{program.model.title}: its audio inputs are {', '.join(channel.name for channel in inputs)}; give a "
                "StreamConfig with a channel for each"
            )
        sound = (
            playable_output(program, sources[0], engine_config.output) if stream_config.channels_out else None
        )
        if stream_config.channels_out and sound is None:
            raise InputError(
                f"{program.model.title}: no output is audio at the rate of its input, so there is nothing to play; "
                "omit the output device, and take the frames"
            )
        self.model_delay_frames = max(sound.port.delay if sound else 0, engine_config.reserve_frames)
        """The delay of the sound in frames of the model, the reserve included."""
        self._instances = Instances(
            program, self.stream_count, sound, self.constants, self.model_delay_frames
        )
        self._successors: Instances | None = None
        self.native = self._instances.native
        """Whether pulses are computed without Python."""
        self.python_lock = threading.Lock()
        """Held while Python computes a pulse; the holder sees the states between two pulses."""
        if engine_config.engine == "callback" and not self.native:
            raise InputError(
                f"{spell('engine', 'callback')}: {program.model.title} runs on {program.backend}, in Python, and a "
                f"device's callback must not wait for it; take {spell('engine', 'worker')}, or compile all of it "
                "for numba"
            )
        self.require_threads(program, engine_config)
        self._events: list[NativeEvent] = []
        self.resamplers = Resamplers(
            stream_config,
            program.pulse,
            engine_config.quality,
            self.stream_count * len(inputs),
            self.stream_count * (len(sound.channels) if sound else 0),
        )
        self.planned_delay = self.resamplers.timing.plan_delay(
            engine_config.headroom_s, engine_config.engine == "worker", stream_config.two_clocks
        )
        self.memory = PipelineMemory(
            stream_config,
            engine_config,
            self.planned_delay,
            self.resamplers,
            self._instances,
            self.model_delay_frames,
        )
        self.control_block = self.memory.control_block

    @staticmethod
    def require_threads(program: Program, engine_config: EngineConfig) -> None:
        """Raise InputError if a callback would run a program that shares its steps with other threads."""
        if engine_config.engine == "callback" and program.threads > 1:
            raise InputError(
                f"{spell('threads', program.threads)}: a device's callback must not wait for other threads; take "
                f"{spell('engine', 'worker')}, or {spell('threads', 1)}"
            )

    @property
    def program(self) -> Program:
        """The program whose output is played."""
        return self.instances.program

    @property
    def instances(self) -> Instances:
        """The instances whose output is played."""
        successors = self._successors
        is_played = successors is not None and self.control_block.instances == successors.address
        return successors if successors is not None and is_played else self._instances

    @property
    def is_swapping(self) -> bool:
        """Whether a swap is in progress: other instances run alongside those that are played."""
        return self._successors is not None and bool(positions.load(self.control_block, "next_instances"))

    def set_successors(self, instances: Instances) -> None:
        """Keep these instances as the next ones, if the command to swap has been applied."""
        if instances.address in (
            self.control_block.next_instances,
            self.control_block.instances,
        ):
            self._instances, self._successors = self._successors or self._instances, instances

    @property
    def address(self) -> int:
        """The address of the control block: the callback's user data."""
        return self.control_block.address

    @property
    def callback_address(self) -> int:
        """The address of the callback's C function."""
        return stream_callback.address

    @property
    def deadline_s(self) -> float:
        """The time in seconds from the arrival of a pulse's last sample until its output must be ready."""
        return self.control_block.deadline_ns / 1e9

    @property
    def delay_s(self) -> float:
        """The time in seconds between a sample's arrival and its playback, the device's own latency excluded."""
        preroll, rate = self.planned_delay.preroll_model_frames, self.stream_config.rate_hz
        played_later = self.planned_delay.frames - self.planned_delay.preroll_device_frames
        return played_later / self.stream_config.rate_out_hz + (preroll + self.model_delay_frames) / rate

    @property
    def delay_frames(self) -> int:
        """The delay in frames of the device, rounded to whole frames."""
        return round(self.delay_s * self.stream_config.rate_out_hz)

    def pump(self) -> None:
        """Run all waiting pulses."""
        if self.native:
            call_pipeline.call(pump.address, self.address)
            return
        has_pulse = True
        while has_pulse:
            with self.python_lock:
                has_pulse = self.take_pulse()
                if has_pulse:
                    self.run_pulse()

    def take_pulse(self) -> bool:
        """Take the next pulse into the slots; returns whether there is one. The time of ``run_pulse`` begins here."""
        return bool(next_pulse.call(self.address))

    def run_pulse(self) -> None:
        """Run the pulse in the slots."""
        if not self.native:
            self.control_block.faults += self.instances.run(self.memory.slots)
        call_pipeline.call(run_pulse.address, self.address)

    def set_time(self, ns: int) -> None:
        """Set the time of a pipeline with a virtual clock."""
        self.control_block.virtual_now_ns = ns

    def take_records(self) -> list[PulseRecord]:
        """Return the outputs of the pulses since the last call, if ``EngineConfig.records`` is set."""
        first = self.control_block.records_read
        last = positions.load(self.control_block, "records_written")
        rows, records = self.memory.records, list[PulseRecord]()
        for index in range(first, last):
            row = rows[index % len(rows)]
            head = header_at(row.ctypes.data)
            outputs = self.instances.outputs(row[RECORD_HEADER_BYTES:])
            records.append(
                PulseRecord(
                    head.pulse, head.arrived_ns, head.ready_ns, head.load_count, head.state_pulses, outputs
                )
            )
        positions.store(self.control_block, "records_read", last)
        return records

    def new_wake_event(self) -> NativeEvent:
        """Create an event for a worker, which each block of input sets."""
        event = NativeEvent()
        self._events.append(event)
        self.control_block.wait, self.control_block.wake = event.to_read, event.to_write
        return event

    def close(self) -> None:
        """Close the descriptors; devices and workers may no longer use the pipeline."""
        self.control_block.wake = -1
        for event in self._events:
            event.close()
        self._events.clear()
