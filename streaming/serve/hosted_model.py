"""HostedModel: a model of a server, with its lanes in the workers."""

import time
from collections.abc import Callable, Sequence
from typing import Any, cast
from urllib.parse import quote

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array, convert_numbers
from pulse.program.program import Program
from pulse.support.naming import require_name
from pulse.support.not_copyable import NotCopyable
from pulse.support.record import record
from pulse.support.wording import count_of
from streaming.events.choice import DetectorChoice
from streaming.protocol.errors import ProtocolError
from streaming.protocol.messages import Hello
from streaming.protocol.ports import StreamPort
from streaming.serve.checkpoints import Checkpoint
from streaming.serve.lanes.group import MAX_LANES, LaneGroup
from streaming.serve.lanes.lane_stream import Answer, CheckpointSchedule, LaneStream
from streaming.serve.lanes.lane_worker import LaneWorker
from streaming.serve.settings import ModelSettings
from streaming.serve.sound_conversion import SoundConversion, SoundModel
from streaming.serve.stream_events import StreamEvents

MAX_STEP_FRACTION = 0.25
"""Maximum fraction of a pulse that a group's step may take, so that a pulse does not wait long for the step before."""
MAX_GATHER_FRACTION = 0.25
"""Maximum fraction of a pulse for which it waits for other streams' pulses, if steps of many lanes are cheaper."""
MAX_GATHER_S = 0.003
"""Maximum duration of such a wait in seconds."""
MAX_TURN_PULSES = 8
"""Maximum number of a stream's pulses in a turn: enough that messages cost little compared to steps."""
TRIAL_STEPS = 9
"""The steps of a measurement, whose median counts."""
MAX_GATHERED_COST = 0.7
"""Waiting is worth it below this ratio of a lane's cost in a shared step to its cost alone."""


@record
class LanePlan:
    """How the lanes of a model step.

    lanes        the lanes that step together
    gather_s     how long a pulse waits for those of other streams, in seconds
    turn_pulses  the most pulses of a stream in a turn
    """

    lanes: int
    gather_s: float
    turn_pulses: int


class HostedModel(NotCopyable, reason="it has lanes of a running server"):
    """A model of a server, by name.

    program  the compiled model
    rate_hz  frames of its symbol per second; None if unknown
    save_s   seconds of audio between two checkpoints of a stream; None for no checkpoints. With them, lanes step alone
    Raises   InputError: an input that does not stream, a type that cannot be sent, an unsuitable detector
    """

    def __init__(
        self,
        settings: ModelSettings,
        program: Program,
        rate_hz: int | None,
        workers: Sequence[LaneWorker],
        save_s: float | None = None,
    ) -> None:
        self.settings, self.program, self.rate_hz = settings, program, rate_hz
        self.name = settings.id
        if program.limit is not None and program.limit < program.pulse:
            raise InputError(
                f"{self.name}: streams have at most {count_of(program.limit, 'frame')}, fewer than a pulse of "
                f"{program.pulse}; "
                "choose a smaller pulse"
            )
        self._constants = _constants(program, settings)
        streaming = [port for port in program.inputs if port.streams]
        self.inputs = tuple(StreamPort.of_port(n, port, rate_hz) for n, port in enumerate(streaming))
        self.outputs = tuple(StreamPort.of_port(n, port, rate_hz) for n, port in enumerate(program.outputs))
        self.frames = {port.name: port.frames for port in streaming}
        self._choices = self._detector_choices()
        self._save_pulses = 0 if save_s is None else max(1, int(save_s / self.pulse_s))
        if self._save_pulses and self._choices:
            raise InputError(
                f"{self.name}: checkpoints do not contain event detectors; serve it without checkpoints or "
                "without detectors"
            )
        self._new_events()  # only to raise the errors of unsuitable detectors
        plan = self._plan_lanes()
        self.groups: list[tuple[LaneWorker, LaneGroup]] = []
        for first in range(0, settings.streams, plan.lanes):
            worker = workers[first // plan.lanes % len(workers)]
            lanes = min(plan.lanes, settings.streams - first)
            group = LaneGroup(
                program, lanes, self._constants, plan.gather_s, plan.turn_pulses, save_s is not None
            )
            worker.groups.append(group)
            self.groups.append((worker, group))

    @property
    def pulse_s(self) -> float:
        """The duration of a pulse; 10 ms if the rate is unknown."""
        return self.program.pulse / self.rate_hz if self.rate_hz else 0.01

    @property
    def saves(self) -> bool:
        """Whether streams make checkpoints."""
        return self._save_pulses > 0

    @property
    def open_streams(self) -> int:
        """The number of open streams."""
        return sum(group.open_count for _, group in self.groups)

    @property
    def thread_fraction(self) -> float:
        """The fraction of a thread that one stream uses, by the p99 of steps."""
        return max(group.cost.p99_s for _, group in self.groups) / self.pulse_s

    @property
    def median_thread_fraction(self) -> float:
        """The fraction of a thread that one stream uses, by the median of steps."""
        return max(group.cost.median_s for _, group in self.groups) / self.pulse_s

    def thread_load(self, worker: LaneWorker) -> float:
        """Return the fraction of a worker's thread that the open streams use, by the p99 of steps."""
        return (
            sum(group.open_count * group.cost.p99_s for owner, group in self.groups if owner is worker)
            / self.pulse_s
        )

    def conversion(self, hello: Hello) -> SoundConversion:
        """Return the conversion between the audio of a client and that of the model.

        Raises ProtocolError: the model does not take the client's rate or format
        """
        return SoundConversion(
            SoundModel(self.name, self.inputs, self.outputs, self.rate_hz, self.saves), hello
        )

    def open_stream(
        self,
        worker: LaneWorker,
        hello: Hello,
        conversion: SoundConversion,
        deliver: Callable[[Answer], None],
        resumed: Checkpoint | None = None,
    ) -> LaneStream:
        """Open a stream in a free lane of a worker, which must have one. Raises ProtocolError: no such output."""
        outputs = self._requested_outputs(hello, conversion)
        groups = [group for owner, group in self.groups if owner is worker and group.free]
        group = max(groups, key=lambda group: group.open_count)
        lane = group.free.pop(0)
        schedule = CheckpointSchedule(self.name, self._save_pulses, resumed) if self._save_pulses else None
        stream = LaneStream(
            lane, group.sessions[lane], outputs, conversion, self._new_events(conversion), deliver, schedule
        )
        worker.join(stream, group)
        if resumed is not None:
            stream.commands.append("restore")
            worker.wake(stream)
        return stream

    def has_lane(self, worker: LaneWorker) -> bool:
        """Return whether a worker has a free lane."""
        return any(group.free for owner, group in self.groups if owner is worker)

    def as_dict(self) -> dict[str, Any]:
        """Return the model as JSON, for /v1/models."""
        return {
            "name": self.name,
            "title": self.settings.title or self.program.model.title,
            "rate": self.rate_hz,
            "pulse": self.program.pulse,
            "inputs": [port.as_dict() for port in self.inputs],
            "outputs": [port.as_dict() for port in self.outputs],
            "events": self.event_dicts(),
            "streams": self.open_streams,
            "limit": self.settings.streams,
            "web": self.web,
        }

    @property
    def web(self) -> str:
        """The path from which a browser can load the model to run it; empty if there is none."""
        return f"web/{quote(self.name, safe='')}/" if self.settings.web else ""

    def event_dicts(self) -> list[dict[str, Any]]:
        """Return the detectors, for JSON."""
        return [{"output": name, "kind": choice.kind} for name, choice in self._choices.items()]

    def _requested_outputs(self, hello: Hello, conversion: SoundConversion) -> tuple[StreamPort, ...]:
        if hello.outputs is None:
            return conversion.outputs
        names = [port.name for port in self.outputs]
        for name in hello.outputs:
            if name not in names:
                problem = f"{self.name}: unknown output {name!r}"
                raise ProtocolError("hello", problem, f"choose one of {', '.join(names)}")
        return tuple(port for port in conversion.outputs if port.name in hello.outputs)

    def _detector_choices(self) -> dict[str, DetectorChoice]:
        choices: dict[str, DetectorChoice] = {}
        streaming = [port.name for port in self.program.outputs if port.streams]
        for output, table in self.settings.events.items():
            require_name("streaming output", output, streaming, InputError, f"{self.name}: events")
            parameters = {name: _text(value) for name, value in table.items() if name != "kind"}
            choices[output] = DetectorChoice(str(table.get("kind", "segments")), parameters)
        return choices

    def _new_events(self, conversion: SoundConversion | None = None) -> StreamEvents:
        return StreamEvents(
            self._choices,
            self.program,
            self.rate_hz,
            self.rate_hz if conversion is None else conversion.client_hz,
        )

    def _plan_lanes(self) -> LanePlan:
        """Measure steps of more and more lanes, and return the plan that follows from their times."""
        count, longest_s = 1, MAX_STEP_FRACTION * self.pulse_s
        alone = step_s = self._step_s(1)
        while 2 * count <= min(MAX_LANES, self.settings.streams):
            next_s = self._step_s(2 * count)
            if next_s > longest_s:
                break
            count, step_s = 2 * count, next_s
        gather_s = (
            min(MAX_GATHER_FRACTION * self.pulse_s, MAX_GATHER_S)
            if step_s < MAX_GATHERED_COST * alone * count
            else 0.0
        )
        return LanePlan(count, gather_s, min(max(1, int(longest_s / step_s)), MAX_TURN_PULSES))

    def _step_s(self, count: int) -> float:
        """Return the median processor time of a step of ``count`` lanes."""
        lanes = self.program.spawn_many(count, self._constants)
        lanes.alone = self.saves
        feed = {
            port.name: np.zeros((count, *port.shape), port.dtype)
            for port in self.program.inputs
            if port.streams
        }
        times: list[float] = []
        for _ in range(TRIAL_STEPS):
            if self.program.limit:
                for state in lanes:
                    state.reset()
            started_ns = time.thread_time_ns()
            lanes.step(feed)
            times.append((time.thread_time_ns() - started_ns) / 1e9)
        return float(np.median(times))


def _text(value: Any) -> str:
    return ",".join(map(str, cast("list[Any]", value))) if isinstance(value, list) else str(value)


def _constants(program: Program, settings: ModelSettings) -> dict[str, Array]:
    """Return the inputs that do not stream. Raises InputError: some are missing, or there are too many."""
    ports = {port.name: port for port in program.inputs if not port.streams}
    for name in settings.constants:
        require_name("constant input", name, ports, InputError, settings.id)
    arrays: dict[str, Array] = {}
    for name, port in ports.items():
        if name not in settings.constants:
            raise InputError(
                f"{settings.id}: {name} does not stream; give its value: constants = {{ {name} = 1 }}"
            )
        value = convert_numbers(settings.constants[name], port.dtype)
        if value is None or value.shape not in ((), port.shape):
            raise InputError(f"{settings.id}: constant {name} = {settings.constants[name]!r} is not {port}")
        arrays[name] = np.full(port.shape, value, port.dtype)
    return arrays
