"""Events from the frames of a model: segments, keywords, text or classes, with their times."""

from streaming.events.argmax import Argmax
from streaming.events.ctc import Ctc
from streaming.events.detector import Detector
from streaming.events.event import Event
from streaming.events.frame_clock import FrameClock
from streaming.events.segments import Segments
from streaming.events.triggers import Triggers
from streaming.events.writers import EventsFile

__all__ = ["Argmax", "Ctc", "Detector", "Event", "EventsFile", "FrameClock", "Segments", "Triggers"]
