"""The target of a run's output: a file of audio or frames, standard output, or a pipe."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pulse.errors import InputError, file_errors
from pulse.interface import Port
from pulse.support.record import record
from pulse.support.wording import spell
from streaming.audio.audio_formats import AudioFormat, common_suffixes, find_format
from streaming.audio.encodings import ENCODINGS, Encoding
from streaming.audio.files import AudioWriter
from streaming.audio.frame_files import WRITABLE, FramesFile
from streaming.audio.interfaces import AudioSink
from streaming.audio.pipes import ArrayStream, StreamWriter, TableStream
from streaming.audio.source import is_stream
from streaming.audio.wav_stream import StreamFormat
from streaming.files.atomic import kind_of

if TYPE_CHECKING:
    from streaming.events.choice import DetectorChoice
    from streaming.events.events_output import EventsOutput
    from streaming.events.writers import EventsFile, EventsStream

STANDARD_OUTPUT = "standard output"
OUTPUT_NAMES = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
STREAMED = ("wav", "raw", "csv", "npy")
"""The formats that can be written to a pipe."""
WAV_KINDS = {"WAV", "WAVEX", "RF64"}
"""The formats whose files are called .wav."""


@record
class Target:
    """One output's file or stream.

    path          ``-`` for standard output
    audio_format  a format of audio; None for frames
    encoding      libsndfile's name of the encoding; None for the source's
    streamed      whether output is written as it is ready, to a descriptor
    descriptor    the descriptor of standard output
    array         whether frames in a stream are written as one array, a .npy, instead of a table
    events        the detector of the events to write in place of frames; None to write frames
    event_suffix  the format of events, as a suffix without its dot
    source        the name of the audio file, for formats of events that contain it
    """

    path: Path
    audio_format: AudioFormat | None = None
    encoding: str | None = None
    streamed: bool = False
    descriptor: int | None = None
    array: bool = False
    events: "DetectorChoice | None" = None
    event_suffix: str = "jsonl"
    source: str = "sound"

    @classmethod
    def of_frames(cls, path: Path, suffix: str | None = None) -> "Target":
        """Create a target for frames: a file, or a pipe, which gets a table if no suffix says otherwise.

        suffix  a format that overrides the suffix of a pipe: csv or npy
        Raises  InputError: no such format of frames
        """
        streamed = is_stream(path)
        word = (suffix or path.suffix.removeprefix(".") or ("csv" if streamed else "")).lower()
        if f".{word}" not in WRITABLE:
            kind = f".{word}" if word else kind_of(path)
            raise InputError(f"{_name(path)}: frames are written as {' or '.join(WRITABLE)}, not {kind}")
        _require_suffix(path, word, streamed)
        return cls(path, streamed=streamed, array=word == "npy")

    @classmethod
    def of_events(
        cls, path: Path, events: "DetectorChoice", source: str, suffix: str | None = None
    ) -> "Target":
        """Create a target for events; a pipe without a suffix gets JSON lines. Raises InputError: no such format."""
        from streaming.events.event_formats import event_format

        streamed = is_stream(path)
        word = (suffix or path.suffix.removeprefix(".") or ("jsonl" if streamed else "")).lower()
        event_format(_name(path), word)
        _require_suffix(path, word, streamed, "events")
        return cls(path, streamed=streamed, events=events, event_suffix=word, source=source)

    @classmethod
    def of(
        cls,
        path: Path,
        usual: Literal["wav", "csv"] = "wav",
        suffix: str | None = None,
        encoding: str | None = None,
        descriptor: int | None = None,
    ) -> "Target":
        """Create a target from its description.

        usual     the format of a pipe without a suffix
        suffix    a format that overrides the suffix: wav, flac …, raw, csv
        encoding  libsndfile's name, such as float or pcm_24, or one such as s16
        Raises    InputError: no such format or encoding, or not one for a pipe
        """
        streamed = is_stream(path)
        word = (suffix or path.suffix.removeprefix(".")).lower()
        frames = f".{word}" in WRITABLE
        audio_format = None if frames else find_format(word)
        if suffix is None and streamed and not frames and audio_format is None:
            word, frames = usual, usual == "csv"
            audio_format = None if frames else find_format(usual)
        if audio_format is None and not frames:
            from streaming.events.event_formats import FORMATS

            formats = f"audio is written as {common_suffixes()}, frames as {', '.join(WRITABLE)}"
            events = f"; for events, add {spell('events', 'segments')}" if word in FORMATS else ""
            raise InputError(f"{_name(path)}: {formats}, not {f'.{word}' if word else kind_of(path)}{events}")
        if streamed and (word if audio_format is None else audio_format.name.lower()) not in STREAMED:
            raise InputError(
                f"{_name(path)}: takes {', '.join(STREAMED)}, not {word}, which is written only as a whole: name a file"
            )
        if frames:
            _require_suffix(path, word, streamed)
        if suffix is not None and audio_format is not None and not streamed:
            _require_own_format(path, word, audio_format)
        if encoding is not None and audio_format is None:
            raise InputError(f"{spell('encoding', encoding)}: {_name(path)} takes frames, which have none")
        parsed = None if encoding is None or audio_format is None else audio_format.parse_encoding(encoding)
        if streamed and parsed is not None:
            _stream_encoding(parsed)
        return cls(path, audio_format, parsed, streamed, descriptor, array=word == "npy")

    @property
    def is_audio(self) -> bool:
        """Whether audio is written, not frames."""
        return self.audio_format is not None

    @property
    def is_terminal(self) -> bool:
        return self.descriptor is not None and os.isatty(self.descriptor)

    @property
    def name(self) -> str:
        """The name in messages."""
        return _name(self.path)

    def audio_sink(self, rate_hz: int, channels: int, source: str) -> AudioSink:
        """Open an audio writer; ``source`` is the encoding of the input.

        Raises InputError: the target takes frames, or cannot be opened
        """
        if self.audio_format is None:
            raise InputError(f"{self.name}: takes frames, not audio")
        encoding = self.encoding or self.audio_format.suitable_encoding(source)
        if not self.streamed:
            return AudioWriter(self.path, rate_hz, channels, encoding, self.audio_format)
        stream_format = StreamFormat(_stream_encoding(encoding), rate_hz, channels)
        return StreamWriter(self.name, self._open(), stream_format, wav=self.audio_format.name != "RAW")

    def frames_writer(
        self, port: Port, rate_hz: float | None
    ) -> "FramesFile | TableStream | ArrayStream | EventsOutput":
        """Open a writer of an output's frames, or of the events in them; ``rate_hz`` is in frames of the symbol.

        Raises InputError: the target cannot be opened, or the output has no events
        """
        if self.events is not None:
            from streaming.events.events_output import EventsOutput

            return EventsOutput(self.events.of_port(port, rate_hz), port.axis or 0, self._events_sink())
        if self.streamed and self.array:
            return ArrayStream(self.name, self._open(), port.axis)
        frames_hz = port.frames_hz(rate_hz)
        if self.streamed:
            return TableStream(self.name, self._open(), port.axis, frames_hz)
        return FramesFile(self.path, port.axis, frames_hz)

    def _events_sink(self) -> "EventsFile | EventsStream":
        from streaming.events.event_formats import event_format
        from streaming.events.writers import EventsFile, EventsStream

        if not self.streamed:
            return EventsFile(self.path, self.source)
        return EventsStream(self.name, self._open(), event_format(self.name, self.event_suffix)(self.source))

    def _open(self) -> int:
        with file_errors(self.name, "written", InputError):
            return os.open(self.path, os.O_WRONLY) if self.descriptor is None else os.dup(self.descriptor)


def _name(path: Path) -> str:
    return STANDARD_OUTPUT if str(path) in OUTPUT_NAMES else str(path)


def _require_suffix(path: Path, word: str, streamed: bool, content: str = "frames") -> None:
    """Raise InputError if a file has not the suffix of its format."""
    if not streamed and path.suffix.lower() != f".{word}":
        raise InputError(
            f"{path}: {content} are written by suffix; call the file {path.with_suffix('.' + word)}"
        )


def _require_own_format(path: Path, word: str, audio_format: AudioFormat) -> None:
    """Raise InputError if the suffix of a file stands for another format than the one that is requested."""
    stated = find_format(path.suffix)
    is_table = path.suffix.lower() in WRITABLE
    if is_table or (
        stated is not None
        and stated.name != audio_format.name
        and {stated.name, audio_format.name} - WAV_KINDS
    ):
        raise InputError(
            f"{path}: the name says {path.suffix}, {spell('format', word)} something else; call the file "
            f"{path.with_suffix('.' + word)}, or omit {spell('format')}"
        )


def _stream_encoding(subtype: str) -> Encoding:
    for encoding in ENCODINGS.values():
        if encoding.subtype == subtype:
            return encoding
    names = ", ".join(encoding.subtype.lower() for encoding in ENCODINGS.values())
    raise InputError(f"{spell('encoding', subtype.lower())}: a pipe takes {names}")
