"""Audio files in place of a microphone and a loudspeaker, for machines without a sound card."""

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import numpy as np

from pulse.errors import InputError
from pulse.support.not_copyable import NotCopyable
from pulse.support.wording import spell
from streaming.audio.audio_formats import audio_format
from streaming.audio.channels import Samples
from streaming.audio.files import AudioReader, AudioWriter
from streaming.audio.interfaces import Clipping
from streaming.errors import DeviceError
from streaming.files.atomic import refuse_same
from streaming.hosts.devices import DeviceKind
from streaming.hosts.host import Endpoint, StreamRequest
from streaming.live.device_call import DeviceCall
from streaming.live.pipeline_statistics import added_delay_frames
from streaming.native.control_block import IN_CALLBACK, control_at

BLOCK_S = 0.01
"""The length of a block if none is given."""
NO_DEVICE_NAME = "nowhere"
"""The name of the output device if the audio is discarded."""
POLL_S = 0.0001
"""The seconds between two checks of a pipeline that is not ready yet."""


class FileHost:
    """A host whose device plays an audio file and records the output; see ``host.Host``.

    source        the file that replaces the microphone, played once; then the run ends
    target        the file for the played audio, from the first block on: it includes the delay of the live run, and is
                  that much longer. None: the audio is discarded. If it cannot be written, the run continues; what was
                  written so far is kept, and the error is raised at the end
    encoding      the encoding of the target, such as float or pcm_24; the source's if None
    pace          speed relative to real time; None: as fast as the model computes, so that it is never late, and as
                  fast as ``Live.outputs`` are taken if ``EngineConfig.records`` is set
    block_frames  block size if the run does not choose one; 10 ms if None
    monotonic     the clock by which blocks are due, in seconds
    Raises        InputError: a file that cannot be read or written, an invalid pace
    """

    virtual_clock = False
    is_finite = True
    problem: InputError | None = None
    """The error of ``target`` in the last run, if any."""
    clipping: Clipping | None = None
    """The samples that the encoding of ``target`` clipped in the last run; None if nothing is written."""

    def __init__(
        self,
        source: Path,
        target: Path | None = None,
        pace: float | None = 1.0,
        block_frames: int | None = None,
        encoding: str | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        with AudioReader(source) as sound:
            self._source = Endpoint(str(source), None, sound.channels, sound.rate_hz)
            source_encoding = sound.encoding
        self.encoding: str | None = None
        if target is not None:
            format = audio_format(target)
            self.encoding = (
                format.suitable_encoding(source_encoding)
                if encoding is None
                else format.parse_encoding(encoding)
            )
            refuse_same([source], [target])
        elif encoding is not None:
            raise InputError(f"{spell('encoding', encoding)}: nothing is written; give a file to play to")
        self._target = replace(self._source, name=NO_DEVICE_NAME if target is None else str(target))
        if pace is not None and not pace > 0:
            raise InputError(f"a pace of {pace}: give a positive number, or None for no limit")
        self.source, self.target, self.pace, self.monotonic = source, target, pace, monotonic
        self._block_frames = block_frames or max(round(BLOCK_S * self._source.rate_hz), 1)

    def choose(self, kind: DeviceKind, requested: str | int | None) -> Endpoint:
        """Return the file to read or to write. Raises InputError: a device is given."""
        endpoint = self._source if kind == "input" else self._target
        if requested not in (None, endpoint.name):
            raise InputError(f"{self.source} replaces the devices: omit {spell(kind, requested)}")
        return endpoint

    def open(self, request: StreamRequest) -> "FileStream":
        """Open a stream from the start of the file. Raises DeviceError: the rate differs from the file's."""
        if request.rate_hz != self._source.rate_hz:
            raise DeviceError(
                f"{self.source}: has {self._source.rate_hz} Hz, but {request.rate_hz} Hz are required"
            )
        self.problem = self.clipping = None
        return FileStream(self, request, request.block_frames or self._block_frames)

    def refresh(self) -> bool:
        """Return False: a file that has ended is not played again."""
        return False


class FileStream(NotCopyable, reason="it has a thread; open another one"):
    """A thread that plays a file; see ``host.DeviceStream``."""

    note: str | None = None
    input_latency_s = 0.0
    output_latency_s = 0.0

    def __init__(self, host: FileHost, request: StreamRequest, block_frames: int) -> None:
        self._request, self._pace, self._frames = request, host.pace, block_frames
        self._host, self._source, self._target = host, host.source, host.target
        self._monotonic = host.monotonic
        self._call = DeviceCall(request)
        self._control = control_at(request.user_address)
        self.stops = threading.Event()
        """Set when the stream is to end."""
        self._files = ExitStack()
        self._writer: AudioWriter | None = None
        self._thread = threading.Thread(target=self._run, name="pulse file", daemon=True)

    @property
    def in_callback(self) -> bool:
        """Whether a callback may still be running: here, whether the thread is alive."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the callbacks. Raises InputError: a file that cannot be read or written."""
        with ExitStack() as files:
            self._reader = files.enter_context(AudioReader(self._source))
            if self._target is not None and self._request.channels_out:
                self._writer = AudioWriter(
                    self._target, self._request.rate_hz, self._request.channels_out, self._host.encoding
                )
                self._host.clipping = self._writer.clipping
                files.push(self._finish)
            self._files = files.pop_all()
        self._thread.start()

    def stop(self, limit_s: float) -> bool:
        """Stop the callbacks; the audio played until then is written. Return whether the last callback has ended."""
        self.stops.set()
        if self._thread.ident is not None:
            self._thread.join(limit_s)
        return not self.in_callback

    def _run(self) -> None:
        error: Exception | None = None
        try:
            with self._files:
                self._play()
            error = self._host.problem
        except Exception as raised:  # ``Live.wait`` raises it
            error = raised
        if error is not None or not self.stops.is_set():
            self._request.finished(error)

    def _play(self) -> None:
        played_frames = 0
        begun_s = self._monotonic()
        for index, block in enumerate(self._blocks(), 1):
            due_s = None
            if self._pace is not None:
                due_s = begun_s + index * self._frames / self._request.rate_hz / self._pace
            self.wait_until(due_s)
            if self.stops.is_set():
                return
            played, answer = self._call(block)
            self._write(played, played_frames)
            played_frames += len(played)
            if answer:
                return

    def _write(self, played: Samples, start: int) -> None:
        """Write the audio played from frame ``start`` to the end, as long as nothing is missing."""
        if self._writer is not None and self._host.problem is None:
            with self._note_problems():
                self._writer.write(played[: self._end() - start])

    def _finish(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Move the written file to its final name; remove it if the source could not be played."""
        if self._writer is not None:
            with self._note_problems():
                self._writer.__exit__(kind, error, trace)

    @contextmanager
    def _note_problems(self) -> Generator[None]:
        """Keep errors of the target, to be reported at the end of the run."""
        try:
            yield
        except InputError as error:
            self._host.problem = self._host.problem or error

    def _blocks(self) -> Iterator[Samples]:
        """Yield the blocks of the file and, if audio is played, silence until its end has been played."""
        size, channels = self._frames, self._request.channels_in
        waiting = np.zeros((0, channels), np.float32)
        for piece in self._reader:
            waiting = np.concatenate([waiting, piece[:, :channels]])
            whole_frames = len(waiting) // size * size
            yield from np.split(waiting[:whole_frames], whole_frames // size) if whole_frames else []
            waiting = waiting[whole_frames:]
        if not self._request.channels_out:
            if len(waiting):
                yield waiting
            return
        frames = self._reader.frames - len(waiting)
        while frames < self._end():
            yield np.concatenate([waiting, np.zeros((size - len(waiting), channels), np.float32)])
            frames, waiting = frames + size, waiting[:0]

    def _end(self) -> int:
        """Return the frames until the end of the file has been played, at the present delay, which may grow."""
        return self._reader.frames + self._request.delay_frames + added_delay_frames(self._control)

    def wait_until(self, due_s: float | None) -> None:
        """Wait until a block is due; if None, until all pulses of the input have run."""
        if due_s is not None:
            self.stops.wait(max(due_s - self._monotonic(), 0))
            return
        while not (self.stops.is_set() or self._is_ready()):
            time.sleep(POLL_S)

    def _is_ready(self) -> bool:
        control = self._control
        if control.records and 2 * (control.records_written - control.records_read) > control.record_count:
            return False
        if control.engine == IN_CALLBACK:
            return True
        empty = control.in_read == control.in_written
        return empty and (not control.pulse_frames or control.filled_frames < control.pulse_frames)
