"""Connection: one WebSocket and its stream.

It receives messages, holds a client back that sends too fast, and ends. ``Outbox`` sends, ``StreamSaving`` saves
checkpoints and resumes from them, workers compute.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Any, cast
from uuid import uuid4

import anyio
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketDisconnected

from pulse.support.not_copyable import NotCopyable
from streaming.protocol import PROTOCOL_VERSION, SUBPROTOCOL
from streaming.protocol.errors import ProtocolError
from streaming.protocol.messages import REQUESTS, Hello, read_confirmation, read_message, write_message
from streaming.serve.admission import Admission
from streaming.serve.checkpoints import Checkpoint
from streaming.serve.counts import ServerCounts
from streaming.serve.lanes.lane_stream import Answer, OutgoingMessage
from streaming.serve.open_stream import OpenStream
from streaming.serve.outbox import Outbox
from streaming.serve.placement import CheckpointStore, Placement
from streaming.serve.rate_limiter import RateLimiter
from streaming.serve.settings import LimitSettings
from streaming.serve.stream_protocol import protocol_of
from streaming.serve.stream_saving import StreamSaving

LEAVE_TIMEOUT_S = 1.0
"""The seconds that sending the last message may take."""
RELEASE_TIMEOUT_S = 10.0
"""The seconds that a worker may take to release a lane: normally one step."""
NORMAL_CLOSES = (1000, 1001)
"""Close statuses of clients that leave; a close without a status may also be a lost connection."""
DISCONNECT_ERRORS = (WebSocketDisconnect, WebSocketDisconnected)
"""The errors of a socket whose client is gone; an OSError may also come from a disk, so it is not included."""


def flatten_errors(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors in nested groups: reader and writer may both detect that a client is gone, or wrong."""
    if isinstance(error, BaseExceptionGroup):
        for member in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from flatten_errors(member)
    else:
        yield error


class Connection(NotCopyable, reason="it is an open connection"):
    """Serves one client, from its WebSocket's first byte to the last.

    token        the token in the headers; None if there is none
    counts       the server's counts, which this adds to
    checkpoints  the store for the stream's checkpoints
    placement    the placement of streams in a fleet
    """

    def __init__(
        self,
        socket: WebSocket,
        address: str,
        token: str | None,
        admission: Admission,
        limits: LimitSettings,
        counts: ServerCounts,
        checkpoints: CheckpointStore | None = None,
        placement: Placement | None = None,
    ) -> None:
        self.id = uuid4().hex
        self.address = address
        self.stream: OpenStream | None = None
        self.began_s = time.time()
        self._socket, self._token = socket, token
        self._admission, self._limits, self._counts = admission, limits, counts
        self._placement = placement
        self._saving = None if checkpoints is None else StreamSaving(checkpoints, placement, counts, self.id)
        self._scope = anyio.CancelScope()
        self._ending: ProtocolError | None = None
        self._protocol = protocol_of(socket)
        self._outbox = Outbox(self._protocol, counts, self.end)
        self._rate_limiter = RateLimiter(limits, None)
        self._last_message = time.monotonic()
        self._is_held = False
        self._hold_timer: asyncio.TimerHandle | None = None
        self._failure: Exception | None = None

    async def run(self) -> str:
        """Serve the client until the end. Returns why it ended: ``left``, ``lost`` or the code of an error."""
        protocols: list[str] = self._socket.scope["subprotocols"]
        await self._socket.accept(SUBPROTOCOL if SUBPROTOCOL in protocols else None)
        reason: str | None = None
        try:
            with self._scope:
                reason = await self._serve()
        except Exception as error:
            errors = list(flatten_errors(error))
            protocol_errors = [member for member in errors if isinstance(member, ProtocolError)]
            if not all(isinstance(member, (*DISCONNECT_ERRORS, ProtocolError)) for member in errors):
                raise
            self._ending = protocol_errors[0] if protocol_errors else None
        if self._failure is not None:
            raise self._failure
        if self._ending is not None:
            await self._refuse(self._ending)
            return self._ending.code
        return reason or "lost"

    def end(self, error: ProtocolError) -> None:
        """End the connection from outside."""
        if self._ending is None:
            self._ending = error
            self._scope.cancel()

    def as_dict(self) -> dict[str, Any]:
        """Return the connection as JSON, for the status."""
        stream = self.stream
        return {
            "stream": self.id,
            "address": self.address,
            "model": None if stream is None else stream.model.name,
            "seconds": round(time.time() - self.began_s, 1),
            "frames": None if stream is None else stream.received,
            "answer_us": None if stream is None else stream.times.as_dict()["answer_us"],
        }

    def send_successors(self) -> None:
        """After the servers change, tell the client which ones would resume its stream."""
        if self._placement is not None and self.stream is not None:
            self._outbox.push({"type": "servers", **self._successors(self._placement)})

    def end_if_idle_or_slow(self, now: float) -> None:
        """End the connection if the client is silent, or does not read."""
        limits = self._limits
        if self._outbox.full_s(now) > limits.slow_s:
            self.end(
                ProtocolError("slow", f"outputs were not read for {limits.slow_s:g} s", "read what is sent")
            )
        elif now - self._last_message > limits.idle_s:
            self.end(
                ProtocolError(
                    "idle", f"no message for {limits.idle_s:g} s", "send a ping if there is no audio"
                )
            )

    async def _serve(self) -> str:
        self._admission.admit(self.address)
        try:
            hello = await self._receive_hello()
            if hello is None:
                return "left"
            model = self._admission.model(hello, self._token)
            checkpoint = await self._load_checkpoint(model.name, hello)
            worker = self._admission.worker(model)
            conversion = model.conversion(hello)
            self._rate_limiter = RateLimiter(self._limits, conversion.client_hz)
            stream = model.open_stream(worker, hello, conversion, self._send_answer, checkpoint)
            self.stream = OpenStream(model, stream, worker, conversion, self._limits, checkpoint)
            self._outbox.stream = self.stream
            self._outbox.push(self._ready_message(self.stream))
            if checkpoint is not None:
                self._counts.resumed += 1
                for message in checkpoint.outputs:
                    self._outbox.push(message)
            reason = "lost"
            try:
                async with anyio.create_task_group() as tasks:
                    if self._saving is not None:
                        tasks.start_soon(self._saving.run, self.stream, self._outbox.push)
                    self._protocol.hand_over(self._receive, self._outbox.send_waiting)
                    reason = await self._wait_until_gone()
                    tasks.cancel_scope.cancel()
            finally:
                with anyio.move_on_after(RELEASE_TIMEOUT_S, shield=True):
                    await self.stream.close()
                    if reason == "left" and self._saving is not None:
                        await self._saving.remove()
            return reason
        finally:
            self._admission.leave(self.address)

    async def _receive_hello(self) -> Hello | None:
        """Receive the first message; None if the client left."""
        with anyio.move_on_after(self._limits.hello_s):
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return None
            text = message.get("text")
            if text is None:
                raise ProtocolError("hello", "the first message is binary", 'begin with {"type": "hello"}')
            return Hello.of_message(read_message(text))
        raise ProtocolError("hello", f"no hello within {self._limits.hello_s:g} s", "send it at once")

    async def _load_checkpoint(self, model: str, hello: Hello) -> Checkpoint | None:
        """Return the checkpoint from which the stream continues.

        Raises ProtocolError: the stream cannot be resumed here
        """
        if self._saving is not None:
            return await self._saving.open(model, hello)
        if hello.resume is not None:
            raise ProtocolError("resume", "this server keeps no checkpoints", "begin a new stream")
        return None

    def _ready_message(self, stream: OpenStream) -> OutgoingMessage:
        return {
            "type": "ready",
            "version": PROTOCOL_VERSION,
            "stream": self.id,
            **stream.as_dict(),
            **({} if self._saving is None else {"resume": self._saving.name, "confirms": True}),
            **({} if self._placement is None else self._successors(self._placement)),
            "limits": {
                "message_bytes": self._limits.message_bytes,
                "window": stream.window,
                "idle_s": self._limits.idle_s,
            },
        }

    def _successors(self, placement: Placement) -> dict[str, Any]:
        return {"urls": list(placement.successors("" if self._saving is None else self._saving.name))}

    async def _wait_until_gone(self) -> str:
        """Wait until the client is gone; messages go to ``_receive`` meanwhile."""
        while (message := await self._socket.receive())["type"] != "websocket.disconnect":
            pass
        return "left" if message.get("code") in NORMAL_CLOSES else "lost"

    def _receive(self, message: bytes | str) -> None:
        """Handle a message of the client."""
        stream = self.stream
        if stream is None or self._ending is not None or self._failure is not None:
            return
        try:
            self._last_message = time.monotonic()
            self._rate_limiter.count_message(len(message), isinstance(message, str))
            if isinstance(message, str):
                self._handle_request(stream, read_message(message))
                return
            frames = stream.accept(message)
            self._counts.frames_in += frames
            self._rate_limiter.count_frames(frames)
            hold_s = self._rate_limiter.hold_s()
            if hold_s > 0:
                self._counts.held_back += 1
                self._read_later(hold_s)
            if stream.is_ahead() or hold_s > 0:
                self._is_held = True
                self._protocol.hold()
        except ProtocolError as error:
            self.end(error)
        except Exception as error:
            self._failure = error
            self._scope.cancel()

    def _read_later(self, hold_s: float) -> None:
        """Try to resume reading after a time, if no earlier call does."""
        if self._hold_timer is None:
            self._hold_timer = asyncio.get_running_loop().call_later(hold_s, self._end_hold)

    def _end_hold(self) -> None:
        self._hold_timer = None
        self._read_again()

    def _read_again(self) -> None:
        """Resume reading if there is space and the frames so far are paid for, else wait for the rest of their time."""
        if not self._is_held or self.stream is None or self._ending is not None:
            return
        try:
            if self.stream.is_ahead():
                return
        except ProtocolError as error:
            self.end(error)
            return
        hold_s = self._rate_limiter.hold_s()
        if hold_s > 0:
            self._read_later(hold_s)
            return
        self._is_held = False
        self._protocol.resume_reading()

    def _handle_request(self, stream: OpenStream, message: dict[str, object]) -> None:
        message_type = message["type"]
        if message_type == "flush":
            stream.flush()
        elif message_type == "reset":
            stream.reset()
        elif message_type == "ping":
            self._outbox.push({**message, "type": "pong", "server_ns": time.monotonic_ns()})
        elif message_type == "stats":
            self._outbox.push({"type": "stats", **stream.times.as_dict()})
        elif message_type == "confirm":
            epoch, saved = read_confirmation(message)
            if self._saving is not None:
                self._saving.confirm(epoch, saved)
        else:
            raise ProtocolError(
                "message", f"type {message_type!r}", f"after the hello: {', '.join(REQUESTS)}"
            )

    def _send_answer(self, answer: Answer) -> None:
        """Send a lane's answer."""
        stream = self.stream
        if stream is None:
            return
        if self._saving is not None:
            self._saving.add(answer)
        acks = stream.record_answer(answer)
        self._outbox.send([*answer.messages, *acks] if acks else answer.messages, answer.turn)
        if self._is_held:
            self._read_again()
        if answer.error is not None:
            self._outbox.push(answer.error)

    async def _refuse(self, error: ProtocolError) -> None:
        """Send the error, and close."""
        with anyio.move_on_after(LEAVE_TIMEOUT_S, shield=True):
            try:
                await self._socket.send_text(write_message(error.as_message()))
                await self._socket.close(error.status, error.code)
            except (*DISCONNECT_ERRORS, OSError, RuntimeError):
                self._counts.errors_undelivered += 1
