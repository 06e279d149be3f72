"""A limit on the messages and frames that one connection may send."""

import time
from collections.abc import Callable

from pulse.support.wording import count_of
from streaming.protocol.errors import ProtocolError
from streaming.serve.settings import LimitSettings

MAX_TEXT_BYTES = 4096
"""Maximum size of a text message in bytes; a larger one is refused."""


class RateLimiter:
    """Counts the messages and frames of one connection.

    frames_per_s  frames per second of the model; None if unknown, then frames are not held back
    monotonic     the clock, in seconds
    """

    def __init__(
        self,
        limits: LimitSettings,
        frames_per_s: float | None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits, self._monotonic = limits, monotonic
        self._frame_s = 0.0 if frames_per_s is None else 1 / (frames_per_s * limits.speed)
        self._second, self._messages = 0, 0
        self._allowed_until_s = 0.0

    def count_message(self, size: int, is_text: bool) -> None:
        """Count a message. Raises ProtocolError: it is too long, or one too many."""
        max_bytes = min(MAX_TEXT_BYTES, self._limits.message_bytes) if is_text else self._limits.message_bytes
        if size > max_bytes:
            raise ProtocolError(
                "size",
                f"a message of {count_of(size, 'byte')}",
                f"send at most {count_of(max_bytes, 'byte')}",
            )
        second = int(self._monotonic())
        if second != self._second:
            self._second, self._messages = second, 0
        self._messages += 1
        if self._messages > self._limits.messages_per_s:
            raise ProtocolError(
                "pace",
                f"more than {count_of(self._limits.messages_per_s, 'message')} in a second",
                "send larger blocks",
            )

    def count_frames(self, frames: float) -> None:
        """Count frames; ``hold_s`` grows by the time that they last."""
        earliest_s = self._monotonic() - self._limits.window_s
        self._allowed_until_s = max(self._allowed_until_s, earliest_s) + frames * self._frame_s

    def hold_s(self) -> float:
        """Return the seconds to wait before the next frames are read."""
        return max(0.0, self._allowed_until_s - self._monotonic())
