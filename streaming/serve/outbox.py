"""Outbox: the messages of a connection to its client, in order."""

import time
from collections import deque
from collections.abc import Callable, Sequence

from pulse.support.not_copyable import NotCopyable
from streaming.protocol.errors import ProtocolError
from streaming.protocol.messages import write_message
from streaming.serve.counts import ServerCounts
from streaming.serve.lanes.lane_stream import OutgoingMessage
from streaming.serve.lanes.turn import TurnTimes
from streaming.serve.open_stream import OpenStream
from streaming.serve.stream_protocol import StreamProtocol


class Outbox(NotCopyable, reason="it has the socket of a connection"):
    """Sends messages at once while the client reads, and keeps them in order while it does not.

    stream  the stream whose lane stalls if too much waits; None before there is one
    end     is called with the error that ends the connection, after all messages before it
    """

    def __init__(
        self, protocol: StreamProtocol, counts: ServerCounts, end: Callable[[ProtocolError], None]
    ) -> None:
        self.stream: OpenStream | None = None
        self._protocol, self._counts, self._end = protocol, counts, end
        self._waiting: deque[tuple[bytes | str | ProtocolError, TurnTimes | None]] = deque()
        self._full_since: float | None = None
        self._stalled = False

    def full_s(self, now: float) -> float:
        """Return the seconds since the client has stopped reading; 0 while it reads."""
        return 0.0 if self._full_since is None else now - self._full_since

    def send(self, messages: Sequence[OutgoingMessage], turn: TurnTimes | None) -> None:
        """Send messages of one step: at once if no others are waiting, else after those."""
        if self._waiting or not self._protocol.is_writable or not messages:
            for count, message in enumerate(messages, 1):
                self.push(message, turn if count == len(messages) else None)
            return
        self._protocol.write(*[_message_data(message) for message in messages])
        self._counts.messages_out += len(messages)
        self._record_sent(turn)

    def push(self, message: OutgoingMessage | ProtocolError, turn: TurnTimes | None = None) -> None:
        """Send a message, or end the connection with an error, after all waiting messages."""
        data = message if isinstance(message, ProtocolError) else _message_data(message)
        self._waiting.append((data, turn))
        if self.stream is not None and not isinstance(data, ProtocolError):
            self._stalled = self.stream.add_unsent(len(data)) or self._stalled
        self.send_waiting()

    def send_waiting(self) -> None:
        """Send waiting messages, as far as the client reads."""
        while self._waiting:
            if not self._protocol.is_writable:
                self._full_since = self._full_since or time.monotonic()
                return
            self._full_since = None
            message, turn = self._waiting.popleft()
            if isinstance(message, ProtocolError):
                self._end(message)
                return
            self._protocol.write(message)
            self._counts.messages_out += 1
            if self.stream is not None:
                self.stream.add_unsent(-len(message))
            self._record_sent(turn)
        if self.stream is not None and self._stalled and self.stream.has_space:
            self._stalled = False
            self.stream.wake()

    def _record_sent(self, turn: TurnTimes | None) -> None:
        if turn is not None and self.stream is not None:
            self.stream.times.total.record_ns(time.monotonic_ns() - turn.arrived_ns, turn.pulses)


def _message_data(message: OutgoingMessage) -> bytes | str:
    return write_message(message) if isinstance(message, dict) else message
