"""Recorder: what came in and what was played, into files, beside the line."""

import threading
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from pulse.errors import InputError
from streaming.audio import AudioWriter
from streaming.live.line import Line
from streaming.live.taps import Tap
from streaming.native import line_words as w

PERIOD_S = 0.1


class Recorder:
    """Writes the input as it was accepted, and the output as it was played, silence included.

    line             whose rings are read
    heard, played    sound files; None for what is not wanted. They get their names when the recorder closes.
    threaded         whether a thread of its own writes; else ``write`` does
    Raises           InputError: a file that cannot be written, or output where nothing is played

    Both files begin with the same block of the device, unless input and output have clocks of their own.
    Where the disk stops for longer than the rings last, the line does not wait: frames are counted in ``lost``, and
    silent in the files. What goes wrong while writing is in ``problem``, and what was written until then is kept.
    """

    def __init__(self, line: Line, heard: Path | None, played: Path | None, threaded: bool = True) -> None:
        form, words = line.form, line.words
        first = int(words[w.IN_WRITTEN])
        beside = None if form.two_clocks else first + int(words[w.FRAMES_LOST])
        if played is not None and not form.channels_out:
            raise InputError(f"{played}: nothing is played that could be recorded")
        self.problem: str | None = None
        self._pairs: list[tuple[Tap, AudioWriter]] = []
        with ExitStack() as opened:
            if heard is not None:
                writer = opened.enter_context(AudioWriter(heard, form.rate_in_hz, form.channels_in, "FLOAT"))
                self._pairs.append((Tap(line.memory.heard, words, w.IN_WRITTEN, first), writer))
            if played is not None:
                writer = opened.enter_context(
                    AudioWriter(played, form.rate_out_hz, form.channels_out, "FLOAT")
                )
                self._pairs.append((Tap(line.memory.played, words, w.FRAMES_OUT, beside), writer))
            opened.pop_all()  # closed by ``close``, each by itself
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None
        if threaded:
            self._thread = threading.Thread(target=self._run, name="pulse-recorder", daemon=True)
            self._thread.start()

    @property
    def lost(self) -> int:
        """Frames that are silent in the files since they came too fast."""
        return sum(tap.lost for tap, _ in self._pairs)

    def write(self) -> None:
        """Write what has come since the last time."""
        for tap, writer in self._pairs:
            lost = tap.lost
            frames = tap.read()
            if self.problem is None and (len(frames) or tap.lost > lost):
                try:
                    writer.write(np.zeros((tap.lost - lost, frames.shape[1]), np.float32))
                    writer.write(frames)
                except InputError as error:
                    self.problem = str(error)

    def close(self) -> None:
        """Write the rest; the files get their names. Again it does nothing. Raises InputError: they cannot."""
        if self._ends.is_set():
            return
        self._ends.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.write()
        failure: InputError | None = None
        for _, writer in self._pairs:
            try:
                writer.close()
            except InputError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _run(self) -> None:
        while not self._ends.wait(PERIOD_S):
            self.write()
