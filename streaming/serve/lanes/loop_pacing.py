"""LoopRounds: keeps the rounds of an event loop apart, so that each of them has more to do."""

import asyncio
import time

from pulse.support.not_copyable import NotCopyable

APART_S = 0.001
"""The longest that a round waits after the one before."""
STREAM_S = 20e-6
"""For each stream that is open, up to ``APART_S``: a few streams do not wait."""


class LoopPacing(NotCopyable):
    """Has the loop sleep before it asks again which sockets are ready, if it has asked a moment ago.

    Messages of many clients come at any time. A loop that wakes for each of them spends more on waking than on the
    message, and takes the lock of Python away from the threads of the lanes each time.
    """

    why_not = "it belongs to an event loop"

    def __init__(self) -> None:
        self.streams = 0
        """That are open."""
        self._began = 0.0
        self._will_pause = False

    def note(self) -> None:
        """This round has moved bytes of a stream. In the event loop."""
        if not self._will_pause:
            self._will_pause = True
            asyncio.get_running_loop().call_soon(self._pause)

    def _pause(self) -> None:
        self._will_pause = False
        left_s = self._began + min(APART_S, self.streams * STREAM_S) - time.monotonic()
        if left_s > 0:
            time.sleep(left_s)
        self._began = time.monotonic()
