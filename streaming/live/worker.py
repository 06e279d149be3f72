"""Worker: the thread that computes the pulses of a pipeline."""

import threading

from pulse.support.not_copyable import NotCopyable
from streaming.live.pipeline import Pipeline
from streaming.native.pulse_loop import work
from streaming.realtime import Realtime, RealtimeSetting, apply_to_thread, share_priority


class Worker(NotCopyable, reason="it has a thread; make another one"):
    """A thread that computes whenever a block of input has arrived.

    pipeline  the pipeline; a native one is computed without Python
    realtime  the real-time settings that the thread requests
    """

    def __init__(self, pipeline: Pipeline, realtime: Realtime) -> None:
        self.realtime_settings: list[RealtimeSetting] = []
        """The settings requested, each with what the system granted."""
        self.error: Exception | None = None
        """The error that ended the thread, such as one raised by a program in Python."""
        self._pipeline = pipeline
        self._realtime = realtime
        self._event = pipeline.new_wake_event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulse worker", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the thread; ``realtime_settings`` is known on return."""
        if self._pipeline.native:
            work.prepare()
        self._thread.start()
        self._started.wait()

    def stop(self, limit_s: float = 2.0) -> bool:
        """End the thread between two pulses. Returns False if a pulse takes longer than the limit."""
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
                self._event.wait()
        except Exception as error:
            self.error = error
        finally:
            self._started.set()
