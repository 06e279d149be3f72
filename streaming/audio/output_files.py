"""The files of a run over audio: outputs as channels of an audio file, or as frames."""

from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np

from pulse.facts import Array
from pulse.support.record import record
from streaming.audio.channels import OutputChoice
from streaming.audio.frame_files import FramesFile
from streaming.audio.interfaces import AudioSource, Clipping
from streaming.audio.pipes import ArrayStream, TableStream
from streaming.audio.target import Target
from streaming.native.resample import AudioResampler


@record
class OutputRoute:
    """Outputs and their target: those of audio are the channels of one file, in order; frames have a file each."""

    outputs: tuple[OutputChoice, ...]
    target: Target


@record
class WrittenAudio:
    """An audio file that was written.

    target    the file
    clipping  samples that the encoding clipped
    encoding  libsndfile's name of the encoding
    """

    target: Target
    clipping: Clipping
    encoding: str


class AudioOutput:
    """Writes outputs to an audio file: all channels of each stream, output by output.

    first    the input file whose rate and encoding the file gets
    rate_hz  the rate of the model
    """

    def __init__(
        self,
        stack: ExitStack,
        route: OutputRoute,
        first: AudioSource,
        rate_hz: int,
        streams: int,
        keeps_length: bool,
    ) -> None:
        channels = streams * sum(len(output.channels) for output in route.outputs)
        self._outputs = route.outputs
        self._keeps_length = keeps_length
        writer = route.target.audio_sink(first.rate_hz, channels, first.encoding)
        self._writer = stack.enter_context(writer)
        self._resampler = AudioResampler(rate_hz, first.rate_hz, channels)
        self.written = WrittenAudio(route.target, writer.clipping, writer.encoding)
        self.nonfinite = 0

    def write(self, piece: Sequence[dict[str, Array]]) -> None:
        """Write the ready frames of every stream."""
        parts = [output.samples(frames[output.port.name]) for output in self._outputs for frames in piece]
        samples = np.concatenate(parts, axis=1)
        self.nonfinite += count_nonfinite(samples)
        self._writer.write(self._resampler.process(samples))

    def end(self, samples: int) -> None:
        """Write the rest of the resampler; the output is then as long as the input, if the model keeps the length."""
        self._writer.write(self._resampler.flush(samples if self._keeps_length else None))


class FramesOutput:
    """Writes the frames of an output to a file."""

    def __init__(self, stack: ExitStack, route: OutputRoute, rate_hz: float | None) -> None:
        (output,) = route.outputs
        self._name = output.port.name
        self._file = stack.enter_context(route.target.frames_writer(output.port, rate_hz))
        self.nonfinite = 0

    @property
    def event_count(self) -> int | None:
        """The number of events; None if frames are written."""
        return (
            None if isinstance(self._file, FramesFile | TableStream | ArrayStream) else self._file.event_count
        )

    def write(self, piece: Sequence[dict[str, Array]]) -> None:
        """Write the ready frames of one stream, if it has any."""
        if self._name in piece[0]:
            frames = piece[0][self._name]
            self.nonfinite += count_nonfinite(frames)
            self._file.write(frames)


def count_nonfinite(array: Array) -> int:
    """Count values that are NaN or infinite."""
    return array.size - int(np.count_nonzero(np.isfinite(array)))
