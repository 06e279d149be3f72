"""The options of events, which are detected in the frames of an output."""

from typing import TYPE_CHECKING

from pulse.support.record import record
from streaming.cli.options import option

if TYPE_CHECKING:
    from streaming.events.choice import DetectorChoice

PANEL = "Events"


@record
class EventOptions:
    """The options that choose and configure a detector, as typed by the user."""

    events: str | None = option(
        "Write events instead of frames: segments (silero, fireredvad: by their rules), triggers, ctc or "
        "argmax; to .csv, .txt (Audacity), .rttm, .srt, .vtt or .jsonl.",
        metavar="KIND",
        panel=PANEL,
    )
    event: list[str] | None = option(
        "Parameter of the events: threshold=0.6, min_silence_s=0.3, labels=no,yes, tokens=tokens.txt … May be "
        "repeated.",
        metavar="NAME=VALUE",
        panel=PANEL,
    )

    def choice(self) -> "DetectorChoice | None":
        """Return the chosen detector; None if frames are to be written.

        Raises InputError: ``--events`` is missing, or there is no such detector or parameter
        """
        if self.events is None and not self.event:
            return None
        from pulse.errors import InputError
        from streaming.events.choice import DetectorChoice

        if self.events is None:
            raise InputError(f"--event {(self.event or [''])[0]} needs --events, such as --events segments")
        return DetectorChoice.parse(self.events, self.event or ())
