"""Pace: limits on how much one connection may send."""

from streaming.protocol.errors import ProtocolError
from streaming.serve.settings import LimitSettings

MAX_TEXT_LENGTH = 4096
"""The most bytes of a text message."""


class Pace:
    """Counts the messages and frames of one connection.

    frames_per_s  frames per second of the model; None if unknown, then frames are not held back
    """

    def __init__(self, limits: LimitSettings, frames_per_s: float | None) -> None:
        self._limits = limits
        self._frame_s = 0.0 if frames_per_s is None else 1 / (frames_per_s * limits.speed)
        self._second, self._messages = 0, 0
        self._paid_until = 0.0

    def count_message(self, size: int, is_text: bool, now: float) -> None:
        """Count a message at a time of ``time.monotonic``. Raises ProtocolError: it is too long, or one too many."""
        most = min(MAX_TEXT_LENGTH, self._limits.message_bytes) if is_text else self._limits.message_bytes
        if size > most:
            raise ProtocolError("size", f"a message of {size} bytes", f"send at most {most}")
        second = int(now)
        if second != self._second:
            self._second, self._messages = second, 0
        self._messages += 1
        if self._messages > self._limits.messages_per_s:
            raise ProtocolError(
                "pace", f"more than {self._limits.messages_per_s} messages in a second", "send larger blocks"
            )

    def hold_s(self, frames: float, now: float) -> float:
        """The seconds to wait after these frames."""
        self._paid_until = max(self._paid_until, now - self._limits.window_s) + frames * self._frame_s
        return max(0.0, self._paid_until - now)
