"""StreamProtocol: the WebSocket of a stream on uvicorn, with a direct path for the messages of an open stream."""

from collections import deque
from collections.abc import Callable
from typing import Any, cast

import uvicorn
from starlette.websockets import WebSocket
from websockets.http11 import Request

from pulse.errors import InputError

try:
    from websockets.speedups import apply_mask
except ImportError:
    from websockets.utils import apply_mask

UVICORN = "0.54"
"""The versions of uvicorn whose protocol, a private part, is extended here."""
if uvicorn.__version__.startswith(f"{UVICORN}."):
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
else:
    raise InputError(
        f"a server needs uvicorn {UVICORN}, and {uvicorn.__version__} is installed; pip install 'pulse-stream[serve]'"
    )

SCOPE_KEY = "pulse.stream"
"""The key of the protocol in the scope of a WebSocket."""
BINARY, TEXT = 0x82, 0x81
"""The first bytes of frames that are whole messages."""
MIN_CONTROL_OPCODE = 8
"""Codes of messages that control the connection begin here (RFC 6455)."""
MASKED, LONG, LONGER = 0x80, 126, 127
MASK_BYTES = 4
"""The bytes of the mask of each frame of a client."""
Take = Callable[[bytes | str], None]


class StreamProtocol(WebSocketsSansIOProtocol):
    """A stream's protocol; uvicorn and websockets handle handshakes, control frames, fragments, errors and the end.

    After ``hand_over``, each message is one call in the event loop, without a task, a queue or a change to what it
    polls. Whole binary messages are split and unmasked here; all other frames go to the parser of websockets.
    """

    _take: Take | None = None
    _may_write: Callable[[], None] | None = None
    _splits: bool | None = None
    _in_fragments = False
    _is_paused = False
    _incomplete = b""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._waiting: deque[bytes | str] = deque()

    def handle_connect(self, event: Request) -> None:
        """Handle the request; its scope gets a reference to this protocol."""
        super().handle_connect(event)
        if self.handshake_initiated and not self.handshake_complete:
            scope = cast("dict[str, Any]", self.scope)
            scope["extensions"][SCOPE_KEY] = self

    def hand_over(self, take: Take, may_write: Callable[[], None]) -> None:
        """Pass messages to ``take`` from now on, waiting ones first; call ``may_write`` when writing can resume."""
        self._take, self._may_write = take, may_write
        while not self.queue.empty():
            event = cast("dict[str, Any]", self.queue.get_nowait())
            if event["type"] != "websocket.receive":
                self.queue.put_nowait(cast("Any", event))  # the end, which is the last event
                break
            data = event.get("bytes")
            self._pass_on(event["text"] if data is None else data)
        if not self._is_paused:
            self._pause_reading(pause=False)

    def hold(self) -> None:
        """Stop reading until ``resume_reading``."""
        if not self._is_paused:
            self._is_paused = True
            self._pause_reading(pause=True)

    def resume_reading(self) -> None:
        """Read again, waiting messages first."""
        self._is_paused = False
        while self._waiting and not self._is_paused:
            self._pass_on(self._waiting.popleft())
        if not self._is_paused:
            self._pause_reading(pause=False)

    @property
    def is_writable(self) -> bool:
        """Whether few bytes are waiting to be sent."""
        return self.writable.is_set()

    def write(self, *messages: bytes | str) -> None:
        """Send messages in one write; does nothing if the connection has ended."""
        if self.close_sent or self.transport.is_closing():
            return
        parts: list[bytes] = []
        for message in messages:
            data = message.encode() if isinstance(message, str) else message
            parts += (_head(TEXT if isinstance(message, str) else BINARY, len(data)), data)
        self.transport.write(b"".join(parts))

    def resume_writing(self) -> None:
        """Handle that the client reads again."""
        super().resume_writing()
        if self._may_write is not None:
            self._may_write()

    def data_received(self, data: bytes) -> None:
        """Handle bytes from the client."""
        if self._splits is None:
            # a client that has waited for the response to its request sends frames from now on
            self._splits = self.handshake_complete if self.handshake_initiated else None
        if not self._splits:
            super().data_received(data)
            return
        data = self._incomplete + data if self._incomplete else data
        frame_start, size = 0, len(data)
        self._incomplete = b""
        while frame_start < size and not self.transport.is_closing():
            if size - frame_start < 2:
                break
            start, end = _value_range(data, frame_start)
            if not data[frame_start + 1] & MASKED or end - start > self.config.ws_max_size:
                super().data_received(data[frame_start:])  # an error, which closes the connection
                return
            if end > size:
                break
            self._handle_frame(data, frame_start, start, end)
            frame_start = end
        self._incomplete = data[frame_start:]

    def send_receive_event_to_app(self) -> None:
        """Handle a message from the parser."""
        if self._take is None or self.close_sent:
            super().send_receive_event_to_app()
            return
        data, self.frames = b"".join(self.frames), []
        if self.curr_msg_data_type == "bytes":
            self._pass_on(data)
            return
        try:
            text = data.decode()
        except UnicodeDecodeError:
            self.conn.send_close(1007)
            self.handle_parser_exception()
            return
        self._pass_on(text)

    def _handle_frame(self, data: bytes, frame_start: int, start: int, end: int) -> None:
        """Handle a whole frame, whose values begin at ``start``."""
        first = data[frame_start]
        if first == BINARY and self._take is not None and not self._in_fragments:
            self._pass_on(apply_mask(data[start:end], data[start - MASK_BYTES : start]))
            return
        opcode, is_last = first & 15, first & 0x80
        if opcode < MIN_CONTROL_OPCODE:
            self._in_fragments = not is_last
        super().data_received(data[frame_start:end])

    def _pass_on(self, message: bytes | str) -> None:
        if self._is_paused or self._take is None:
            self._waiting.append(message)
        else:
            self._take(message)

    def _pause_reading(self, *, pause: bool) -> None:
        if pause == self.read_paused or self.transport.is_closing():
            return
        self.read_paused = pause
        (self.transport.pause_reading if pause else self.transport.resume_reading)()


def protocol_of(socket: WebSocket) -> StreamProtocol:
    """Return the protocol under a WebSocket that ``Server`` has accepted."""
    return socket.scope["extensions"][SCOPE_KEY]


def _value_range(data: bytes, frame_start: int) -> tuple[int, int]:
    """Return where the values of a frame start and end; both beyond the data if its head is incomplete."""
    size = data[frame_start + 1] & 127
    start = frame_start + 2
    if size == LONG:
        start += 2
        size = int.from_bytes(data[frame_start + 2 : start], "big")
    elif size == LONGER:
        start += 8
        size = int.from_bytes(data[frame_start + 2 : start], "big") if len(data) >= start else 0
    start += MASK_BYTES
    return start, max(start, start + size)


def _head(first: int, size: int) -> bytes:
    """Return the head of a server's frame, which is not masked."""
    if size < LONG:
        return bytes((first, size))
    if size < 1 << 16:
        return bytes((first, LONG)) + size.to_bytes(2, "big")
    return bytes((first, LONGER)) + size.to_bytes(8, "big")
