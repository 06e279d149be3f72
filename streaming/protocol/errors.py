"""The errors of the protocol, by their codes."""

from collections.abc import Sequence
from typing import Any

from pulse.errors import PulseError

POLICY_VIOLATION, MESSAGE_TOO_BIG, INTERNAL_ERROR, TRY_AGAIN_LATER = 1008, 1009, 1011, 1013
"""WebSocket close codes, by their names in RFC 6455 and its registry."""
STATUSES = {
    "hello": POLICY_VIOLATION,
    "token": POLICY_VIOLATION,
    "model": POLICY_VIOLATION,
    "rate": POLICY_VIOLATION,
    "message": POLICY_VIOLATION,
    "gap": POLICY_VIOLATION,
    "input": POLICY_VIOLATION,
    "ended": POLICY_VIOLATION,
    "size": MESSAGE_TOO_BIG,
    "pace": POLICY_VIOLATION,
    "slow": POLICY_VIOLATION,
    "idle": POLICY_VIOLATION,
    "busy": TRY_AGAIN_LATER,
    "address": TRY_AGAIN_LATER,
    "drain": TRY_AGAIN_LATER,
    "moved": TRY_AGAIN_LATER,
    "fault": INTERNAL_ERROR,
    "resume": POLICY_VIOLATION,
    "connection": TRY_AGAIN_LATER,
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
    """Raised for a stream that belongs to another server of the fleet.

    stream  the name under which they accept it
    urls    the URLs of these servers, best first
    """

    def __init__(self, stream: str, urls: Sequence[str]) -> None:
        super().__init__("moved", "another server of the fleet has this stream", f"connect to {urls[0]}")
        self.stream, self.urls = stream, tuple(urls)

    def as_message(self) -> dict[str, Any]:
        return {**super().as_message(), "stream": self.stream, "urls": list(self.urls)}
