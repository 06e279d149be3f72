"""Events: what people read off the frames of a model, as segments, keywords, text or classes with their times."""

from streaming.events.clock import Clock
from streaming.events.detector import Detector
from streaming.events.event import Event
from streaming.events.segments import Segments
from streaming.events.writers import EventsFile

__all__ = ["Clock", "Detector", "Event", "EventsFile", "Segments"]
