"""Worker: the thread that computes the pulses of a pipeline."""

import threading

from pulse.support.not_copyable import NotCopyable
from streaming.live.pipeline import Pipeline
from streaming.native.pipeline import work
from streaming.realtime import Realtime, RealtimeSetting, apply_to_thread, share_priority


class Worker(NotCopyable):
    """One thread that computes whenever a block of input has come.

    pipeline  whose pulses they are; a native one is computed without Python
    realtime  what the thread requests of the system
    realtime_settings  what the system granted
    """

    why_not = "it has a thread; make another one"

    def __init__(self, pipeline: Pipeline, realtime: Realtime) -> None:
        self.realtime_settings: list[RealtimeSetting] = []
        self.error: Exception | None = None
        """What ended the thread before its time, such as a program in Python that raised."""
        self._pipeline = pipeline
        self._realtime = realtime
        self._event = pipeline.new_wake_event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulse-worker", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the thread; its settings are there then."""
        if self._pipeline.native:
            _ = work.call
        self._thread.start()
        self._started.wait()

    def stop(self, limit_s: float = 2.0) -> bool:
        """End the thread between two pulses; False where a pulse takes longer than the limit."""
        self._pipeline.control_block.stop = 1
        self._event.set()
        self._thread.join(limit_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self.realtime_settings = apply_to_thread(self._realtime)
            share_priority(self._pipeline.program.helpers)
            self._started.set()
            if self._pipeline.native:
                work.call(self._pipeline.address)
                return
            while not self._pipeline.control_block.stop:
                self._pipeline.pump()
                self._event.clear()
        except Exception as error:
            self.error = error
        finally:
            self._started.set()
