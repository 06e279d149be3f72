"""Event: a segment, keyword, text or class in the outputs of a model, with its times in the audio."""

from dataclasses import asdict

from pulse.support.record import record


@record
class Event:
    """An event between two times of the audio.

    start_s  seconds in the audio of the model's input: frame j of an output begins at j/rate
    end_s    likewise; None if only the start is known yet
    label    speech, a keyword, a class, or text
    score    the mean probability, or a score defined by the detector
    known_s  seconds of audio that a stream needs before the event is known, the model's delay and the rest of a pulse
             included
    """

    start_s: float
    end_s: float | None
    label: str
    score: float
    known_s: float

    def as_dict(self) -> dict[str, float | str | None]:
        """Return the event, for JSON."""
        return asdict(self)
