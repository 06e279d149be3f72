"""LoopPacing: spaces the iterations of an event loop, so that each handles more events."""

import asyncio
import time

from pulse.support.not_copyable import NotCopyable

MAX_PAUSE_S = 0.001
"""Maximum pause between two iterations, in seconds."""
STREAM_PAUSE_S = 20e-6
"""The pause per open stream in seconds, up to ``MAX_PAUSE_S``: with few streams, there is almost none."""


class LoopPacing(NotCopyable, reason="it belongs to an event loop"):
    """Makes the loop sleep before it polls its sockets again, if it has just done so.

    Messages of many clients arrive at any time. A loop that wakes for each of them spends more on waking than on the
    message, and each time takes the GIL from the threads of the lanes.
    """

    def __init__(self) -> None:
        self.streams = 0
        """The number of open streams."""
        self._began = 0.0
        self._will_pause = False

    def record_traffic(self) -> None:
        """Record that this iteration has moved bytes of a stream. Called in the event loop."""
        if not self._will_pause:
            self._will_pause = True
            asyncio.get_running_loop().call_soon(self._pause)

    def _pause(self) -> None:
        self._will_pause = False
        left_s = self._began + min(MAX_PAUSE_S, self.streams * STREAM_PAUSE_S) - time.monotonic()
        if left_s > 0:
            time.sleep(left_s)
        self._began = time.monotonic()
