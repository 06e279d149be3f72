"""Recorder: writes the input and the played output to audio files, without disturbing the pipeline."""

import threading
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from pulse.errors import InputError
from pulse.support.not_copyable import NotCopyable
from streaming.audio.files import AudioWriter
from streaming.live.pipeline import Pipeline
from streaming.live.ring_reader import RingReader

WRITING_PERIOD_S = 0.1
"""The seconds between two writes."""


class Recorder(NotCopyable, reason="it has open files and a thread; make another one"):
    """Writes the input as accepted, and the output as played, silence included.

    pipeline         the pipeline whose rings are read
    input, output    paths of audio files; None for none. The files appear when the recorder closes.
    threaded         whether a separate thread writes; if not, call ``write``
    Raises           InputError: a file that cannot be written, or output of a run that plays nothing

    Both files begin with the same block of the device, unless input and output have their own clocks.
    If the disk stalls for longer than the rings last, the pipeline continues: ``frames_lost`` counts the lost frames,
    which are silent in the files. A file that cannot be written ends there and is kept, and the other one continues.
    """

    def __init__(
        self, pipeline: Pipeline, input: Path | None, output: Path | None, threaded: bool = True
    ) -> None:
        config, control = pipeline.stream_config, pipeline.control_block
        first = control.in_written
        first_played = None if config.two_clocks else first + control.frames_lost
        if output is not None and not config.channels_out:
            raise InputError(f"{output}: there is no output to record: the run plays nothing")
        self._tracks: list[_Track] = []
        with ExitStack() as opened:
            if input is not None:
                writer = opened.enter_context(
                    AudioWriter(input, config.rate_in_hz, config.channels_in, "FLOAT")
                )
                self._tracks.append(
                    _Track(RingReader(pipeline.memory.input_ring, control, "in_written", first), writer)
                )
            if output is not None:
                writer = opened.enter_context(
                    AudioWriter(output, config.rate_out_hz, config.channels_out, "FLOAT")
                )
                self._tracks.append(
                    _Track(
                        RingReader(pipeline.memory.played_ring, control, "frames_out", first_played), writer
                    )
                )
            opened.pop_all()  # ``close`` closes each of them separately
        self._stops = threading.Event()
        self._finished = False
        self._failure: InputError | None = None
        self._thread: threading.Thread | None = None
        if threaded:
            self._thread = threading.Thread(target=self._run, name="pulse recorder", daemon=True)
            self._thread.start()

    @property
    def frames_lost(self) -> int:
        """The number of frames that are silent in the files because they could not be written in time."""
        return sum(track.reader.lost_frames for track in self._tracks)

    @property
    def problems(self) -> tuple[InputError, ...]:
        """The first error of each file that could not be written or renamed."""
        return tuple(track.problem for track in self._tracks if track.problem is not None)

    def write(self) -> None:
        """Write the frames since the last call."""
        for track in self._tracks:
            track.write()

    def close(self) -> None:
        """Write the rest and finish the files. A second call does nothing. Raises InputError: a file cannot be written.

        An interrupt ends the wait for the writing thread, not the thread: the next call waits again.
        """
        self._stops.set()
        if self._thread is not None:
            self._thread.join()
        self._finish()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _finish(self) -> None:
        if self._finished:
            return
        self.write()
        for track in self._tracks:
            try:
                track.close()
            except InputError as error:
                self._failure = self._failure or error
        self._finished = True

    def _run(self) -> None:
        while not self._stops.wait(WRITING_PERIOD_S):
            self.write()
        self._finish()


class _Track:
    """A ring and the file that its frames are written to.

    problem  the first error; nothing is written after it
    """

    def __init__(self, reader: RingReader, writer: AudioWriter) -> None:
        self.reader = reader
        self.problem: InputError | None = None
        self._writer = writer

    def write(self) -> None:
        """Write the frames since the last call."""
        lost_frames = self.reader.lost_frames
        frames = self.reader.read()
        if self.problem is None and (len(frames) or self.reader.lost_frames > lost_frames):
            try:
                self._writer.write(
                    np.zeros((self.reader.lost_frames - lost_frames, frames.shape[1]), np.float32)
                )
                self._writer.write(frames)
            except InputError as error:
                self.problem = error

    def close(self) -> None:
        """Move the file to its final name. Raises InputError: that failed."""
        try:
            self._writer.close()
        except InputError as error:
            self.problem = self.problem or error
            raise
