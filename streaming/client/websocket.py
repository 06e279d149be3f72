"""ClientSocket: a WebSocket over anyio, for asyncio and trio; ``websockets`` reads and writes its bytes."""

import ssl
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import ByteStream
from websockets.client import ClientProtocol
from websockets.exceptions import InvalidURI
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from pulse.support.not_copyable import NotCopyable
from streaming.client.errors import ClientError
from streaming.protocol import SUBPROTOCOL

MAX_MESSAGE_BYTES = 1 << 26
"""Maximum size of a server's message in bytes; a larger one closes the connection."""
MAX_READ_BYTES = 1 << 16
"""Maximum number of bytes in one read."""
CLOSE_TIMEOUT_S = 2.0
"""A close frame that cannot be sent within this many seconds is abandoned."""
CLOSED_ERRORS = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


class ClientSocket(NotCopyable, reason="it is an open connection; connect again"):
    """Messages to and from a server. One task may receive while another one sends."""

    def __init__(self, stream: ByteStream, protocol: ClientProtocol) -> None:
        self._stream, self._protocol = stream, protocol
        self._messages: deque[bytes | str] = deque()
        self._parts: list[bytes] = []
        self._is_text = False
        self._sending = anyio.Lock()

    async def send(self, message: bytes | str) -> None:
        """Send a message. Raises ClientError: the connection is closed."""
        if self._protocol.state is not State.OPEN:
            raise self._end_error()
        if isinstance(message, str):
            self._protocol.send_text(message.encode())
        else:
            self._protocol.send_binary(message)
        await self._send_bytes()

    async def receive(self) -> bytes | str | None:
        """Return the next message; None if the server closed the connection."""
        while not self._messages:
            try:
                data = await self._stream.receive(MAX_READ_BYTES)
            except CLOSED_ERRORS:
                self._protocol.receive_eof()
                return None
            self._protocol.receive_data(data)
            for event in self._protocol.events_received():
                if isinstance(event, Frame):
                    self._receive_frame(event)
            if not await self._try_to_send():
                return self._messages.popleft() if self._messages else None
            if self._protocol.close_rcvd is not None and not self._messages:
                return None
        return self._messages.popleft()

    async def shake_hands(self) -> None:
        """Perform the opening handshake. Raises ClientError: the server refuses."""
        self._protocol.send_request(self._protocol.connect())
        await self._send_bytes()
        while self._protocol.state is State.CONNECTING and self._protocol.handshake_exc is None:
            try:
                self._protocol.receive_data(await self._stream.receive(MAX_READ_BYTES))
            except CLOSED_ERRORS:
                self._protocol.receive_eof()
                break
        events = self._protocol.events_received()
        error = self._protocol.handshake_exc
        if error is not None:
            answer = next((event for event in events if isinstance(event, Response)), None)
            status = f"status {answer.status_code}" if answer is not None else str(error)
            raise ClientError(
                "hello", f"the server refuses the WebSocket: {status}", "check address, origin and token"
            )
        for event in events:
            if isinstance(event, Frame):
                self._receive_frame(event)

    async def close(self) -> None:
        """Send a close frame; its answer is not awaited."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(1000)
            await self._try_to_send()

    async def cut(self) -> None:
        """Cut the connection at once, without a close frame."""
        await anyio.aclose_forcefully(self._stream)

    def _receive_frame(self, frame: Frame) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._is_text, self._parts = frame.opcode is Opcode.TEXT, []
        elif frame.opcode is not Opcode.CONT:
            return
        self._parts.append(bytes(frame.data))
        if frame.fin:
            data = b"".join(self._parts)
            self._messages.append(data.decode() if self._is_text else data)

    async def _send_bytes(self) -> None:
        """Send waiting bytes. Raises ClientError: the connection is lost."""
        if not await self._try_to_send():
            raise self._end_error()

    async def _try_to_send(self) -> bool:
        """Send all waiting bytes. Returns whether the connection still exists."""
        async with self._sending:
            data = b"".join(self._protocol.data_to_send())
            try:
                if data:
                    await self._stream.send(data)
            except CLOSED_ERRORS:
                return False
        return True

    def _end_error(self) -> ClientError:
        closed = self._protocol.close_rcvd
        reason = f"status {closed.code} {closed.reason}" if closed is not None else "without a reason"
        return ClientError("connection", f"the server has closed the connection, {reason}", "connect again")


@asynccontextmanager
async def open_socket(url: str, context: ssl.SSLContext | None) -> AsyncGenerator[ClientSocket]:
    """Open a WebSocket to ws://… or wss://…. Raises ClientError: no answer, or the server refuses."""
    try:
        uri = parse_uri(url)
    except InvalidURI as error:
        raise ClientError("hello", str(error), "write ws://HOST:PORT or wss://HOST:PORT") from None
    protocol = ClientProtocol(uri, subprotocols=[Subprotocol(SUBPROTOCOL)], max_size=MAX_MESSAGE_BYTES)
    try:
        secure = (context or ssl.create_default_context()) if uri.secure else None
        if secure is not None:
            stream: ByteStream = await anyio.connect_tcp(
                uri.host, uri.port, ssl_context=secure, tls_standard_compatible=False
            )
        else:
            stream = await anyio.connect_tcp(uri.host, uri.port)
    except (OSError, ssl.SSLError) as error:
        raise ClientError(
            "hello", f"{uri.host}, port {uri.port}: {error}", "is the server running?"
        ) from None
    async with stream:
        socket = ClientSocket(stream, protocol)
        await socket.shake_hands()
        try:
            yield socket
        finally:
            with anyio.move_on_after(CLOSE_TIMEOUT_S, shield=True):
                await socket.close()
