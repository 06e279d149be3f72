"""FramesWriter: writes frames of a live run, or the events in them, to a file or a pipe during the run."""

from collections.abc import Mapping
from types import TracebackType

from pulse.errors import PulseError
from pulse.facts import Array
from pulse.interface import Port
from pulse.support.wording import count_of
from streaming.audio.target import Target
from streaming.errors import DeviceError
from streaming.live.live import Live


class FramesWriter:
    """Writes the frames of one output of the first stream, or the events in them.

    rate_hz   frames of the model's symbol per second, such as the sample rate
    problems  the errors so far, which ended the frames or prevented the file from being completed. The run continues,
              and what was written so far is kept.
    Raises    InputError: a file that cannot be written
    """

    def __init__(self, target: Target, port: Port, rate_hz: float | None, live: Live) -> None:
        self.problems: list[PulseError] = []
        self._name = target.name
        self._file = target.frames_writer(port, rate_hz)
        self._port, self._live = port, live

    def write(self) -> None:
        """Write the frames that are ready."""
        self._append(self._live.outputs.take_ready()[0])

    def finish(self) -> None:
        """Write the last frames, after the end of the run. An abandoned run has none."""
        self.write()
        if self._live.abandoned:
            self.problems.append(
                DeviceError(
                    f"{self._name}: the last frames are missing: the device, or the model, has not returned "
                    "from a block"
                )
            )
            return
        try:
            ends = self._live.outputs.flush()[0]
        except PulseError as error:
            self.problems.append(error)
            return
        self._append(ends)

    def _append(self, outputs: Mapping[str, Array]) -> None:
        """Append a pulse's frames, as long as none are missing."""
        count = self._live.outputs.pulses_lost
        if count and not self.problems:
            self.problems.append(
                DeviceError(
                    f"{self._name}: ends before the run does: the frames of {count_of(count, 'pulse')} were not taken "
                    "in time, and what follows them would have wrong times; the machine, or the disk, was too slow"
                )
            )
        if not self.problems and self._port.name in outputs:
            try:
                self._file.write(outputs[self._port.name])
            except PulseError as error:
                self.problems.append(error)

    def __enter__(self) -> "FramesWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._file.__exit__(kind, error, trace)
        except PulseError as problem:
            self.problems.append(problem)
