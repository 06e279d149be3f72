"""The errors of the protocol, by their codes."""

from collections.abc import Sequence
from typing import Any

from pulse.errors import PulseError

POLICY, TOO_LONG, FAILED, AGAIN_LATER = 1008, 1009, 1011, 1013
"""The close statuses of a WebSocket."""
STATUSES = {
    "hello": POLICY,
    "token": POLICY,
    "model": POLICY,
    "rate": POLICY,
    "message": POLICY,
    "gap": POLICY,
    "input": POLICY,
    "ended": POLICY,
    "size": TOO_LONG,
    "pace": POLICY,
    "slow": POLICY,
    "idle": POLICY,
    "busy": AGAIN_LATER,
    "address": AGAIN_LATER,
    "drain": AGAIN_LATER,
    "moved": AGAIN_LATER,
    "fault": FAILED,
    "resume": POLICY,
    "connection": AGAIN_LATER,
}
"""Code -> the status that closes the WebSocket after the message."""


class ProtocolError(PulseError):
    """An error that ends a stream between server and client.

    code  a key of ``STATUSES``
    hint  what to do about it
    """

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        assert code in STATUSES, code
        super().__init__(f"{message}; {hint}" if hint else message)
        self.code, self.message, self.hint = code, message, hint

    @property
    def status(self) -> int:
        """The status that closes the WebSocket."""
        return STATUSES[self.code]

    def as_message(self) -> dict[str, Any]:
        """Return the message of text."""
        return {"type": "error", "code": self.code, "message": self.message, "hint": self.hint}


class MovedError(ProtocolError):
    """A stream that other servers of a fleet should take.

    stream  the name under which they accept it
    urls    the URLs of these servers, best first
    """

    def __init__(self, stream: str, urls: Sequence[str]) -> None:
        super().__init__("moved", "another server of the fleet has this stream", f"connect to {urls[0]}")
        self.stream, self.urls = stream, tuple(urls)

    def as_message(self) -> dict[str, Any]:
        return {**super().as_message(), "stream": self.stream, "urls": list(self.urls)}
