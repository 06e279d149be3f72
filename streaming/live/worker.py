"""Worker: the thread that computes the pulses of a line."""

import threading

from pulse.uncopied import Uncopied
from streaming.live.line import Line
from streaming.native import line_words as w
from streaming.native.line import work
from streaming.realtime import Measure, Realtime, on_this_thread


class Worker(Uncopied):
    """One thread that computes whenever a block of input has come.

    line      whose pulses they are; a native one is computed without Python
    realtime  what the thread asks of the system
    measures  what it had of that
    """

    instead = "it has a thread; make another one"

    def __init__(self, line: Line, realtime: Realtime) -> None:
        self.measures: list[Measure] = []
        self.error: Exception | None = None
        """What ended the thread before its time, such as a program in Python that raised."""
        self._line = line
        self._realtime = realtime
        self._event = line.wakes()
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulse-worker", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the thread; its measures are there then."""
        if self._line.native:
            _ = work.call
        self._thread.start()
        self._begun.wait()

    def stop(self, limit_s: float = 2.0) -> bool:
        """End the thread between two pulses; False where a pulse takes longer than the limit."""
        self._line.words[w.STOP] = 1
        self._event.set()
        self._thread.join(limit_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self.measures = on_this_thread(self._realtime)
            self._begun.set()
            if self._line.native:
                work.call(self._line.address)
                return
            while not self._line.words[w.STOP]:
                self._line.pump()
                self._event.clear()
        except Exception as error:
            self.error = error
        finally:
            self._begun.set()
