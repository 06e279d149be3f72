"""The inputs and outputs of ``pulse run``, and the options that exclude each other."""

from pathlib import Path
from typing import TYPE_CHECKING

from pulse.errors import InputError
from pulse.support.record import record
from streaming.audio.frame_files import READABLE
from streaming.audio.source import is_audio_source, is_stream
from streaming.builtin import noisy_path
from streaming.cli.audio_options import AudioOptions
from streaming.cli.live_options import LiveOptions
from streaming.cli.spelling import names_given
from streaming.files.atomic import refuse_same

if TYPE_CHECKING:
    from streaming.events.choice import DetectorChoice


@record
class RunRequest:
    """A run as the command line requests it.

    model           None: the built-in one
    source, target  IN and OUT; None if not given
    audio           the options of audio
    events          the events to detect in the output; None for none
    """

    model: Path | None
    source: Path | None
    target: Path | None
    audio: AudioOptions
    events: "DetectorChoice | None"

    @property
    def read(self) -> Path | None:
        """The file for inputs without ``--in``; the built-in recording by default."""
        return self.source if self.source is not None or self.audio.in_routes else noisy_path()

    @property
    def has_frames(self) -> bool:
        """Whether frames are read instead of audio: by IN, or by all ``--in``."""
        routes = self.audio.in_routes
        if not routes:
            return self.read is not None and self.read.suffix.lower() in READABLE
        return self.source is None and all(text.lower().endswith(READABLE) for text in routes)

    def refuse_live(self, live: LiveOptions) -> None:
        """Raise InputError for options that exclude --live."""
        self._refuse_events()
        for path in (self.source, self.target):
            if path is not None and is_stream(path):
                raise InputError(f"{path}: --live takes files; run a pipe without it")
        if self.audio.raw or self.audio.format_name:
            raise InputError(
                "--raw and --format exclude --live, which reads files with a header and writes by suffix"
            )
        refuse_same([self.model, self.source], [self.target, *live.output_paths])
        if self.audio.out_routes:
            raise InputError(
                "--out excludes --live; --output selects the played output, --frames a file of frames"
            )

    def refuse_file(self, live: LiveOptions) -> None:
        """Raise InputError for options that need --live."""
        self._refuse_events()
        self._refuse_tables()
        audio = self.audio
        names = names_given(live)
        if names:
            raise InputError(
                f"{', '.join(names)}: only for live audio; add --live, or omit {_pronoun(names)}"
            )
        if audio.out_routes and not (self.target is None and audio.output is None and self.events is None):
            raise InputError("--out names outputs and their files: omit OUT, --output and --events")
        if not self.has_frames:
            return
        name = self.read or ", ".join(audio.in_routes or ())
        if audio.raw or audio.subtype:
            raise InputError(f"{name}: holds frames; --raw and --subtype are for audio")
        if audio.out_routes:
            raise InputError(f"{name}: holds frames; --out is for audio, give OUT and --output")

    def _refuse_tables(self) -> None:
        for text in (str(self.source or ""), *(self.audio.in_routes or ())):
            if text.lower().endswith(".csv"):
                path = text.partition("=")[2] or text
                raise InputError(
                    f"{path}: tables are written, but not read; give audio, or frames as {' or '.join(READABLE)}, "
                    "which numpy.save and numpy.savez write"
                )

    def _refuse_events(self) -> None:
        if self.events is not None and self.model is None:
            raise InputError(
                "--events: the built-in denoiser has no probabilities; give a model before the audio"
            )


def _pronoun(names: list[str]) -> str:
    return "it" if len(names) == 1 else "them"


def sort_paths(
    model: Path | None, source: Path | None, target: Path | None, audio: AudioOptions, live: bool
) -> tuple[Path | None, Path | None, Path | None]:
    """Sort MODEL, IN and OUT: an audio file as MODEL is IN; one file after ``--in`` is OUT.

    Raises InputError: three files are given, and MODEL is an audio file
    """
    if model is not None and is_audio_source(model):
        if target is not None:
            raise InputError(f"{model}: is an audio file, but a model is expected here; give [MODEL] IN OUT")
        model, source, target = None, model, source
    if audio.in_routes and not (audio.out_routes or live) and target is None:
        source, target = None, source
    return model, source, target
