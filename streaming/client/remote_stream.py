"""RemoteStream: the client's side of a stream of a server."""

import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress

import anyio
import numpy as np
from anyio.abc import TaskGroup

from pulse.errors import InputError
from pulse.facts import Array
from pulse.ops.clock import frames_at
from pulse.support.not_copyable import NotCopyable
from streaming.client.errors import ClientError
from streaming.client.input_arrays import arrays_by_port
from streaming.client.opus_sound import OpusSound
from streaming.client.resend_buffer import ResendBuffer
from streaming.client.websocket import ClientSocket
from streaming.protocol.binary_messages import (
    EPOCH_MODULUS,
    HEADER,
    INPUT,
    Header,
    pack_frames,
    unpack_header,
)
from streaming.protocol.messages import Message, read_message, write_message
from streaming.protocol.ports import StreamPort

RETRYABLE_CODES = ("connection", "drain", "busy", "address")
"""Errors after which another connection may resume the stream."""


class RemoteStream(NotCopyable, reason="it is an open connection; connect again"):
    """A stream of a model in a server: blocks of any size in, valid frames out, like a ``Session``.

    model     the name of the model
    rate_hz   the rate of the model; None if unknown
    pulse     frames of a step
    inputs, outputs  ports, in the order of their numbers
    events    event messages received, oldest first; the caller removes them
    last      the header of the last output: its number, and how long its pulse waited and took

    Outputs wait in memory until they are taken: ``async for outputs in stream``, or ``flush``. One task may send while
    another takes outputs. A refusal of the server raises ClientError when outputs are taken, or by ``send``.
    """

    def __init__(
        self, socket: ClientSocket, ready: Message, format: str, tasks: TaskGroup, is_resumable: bool = False
    ) -> None:
        self._socket, self._format, self._tasks = socket, format, tasks
        self.resume_name: str | None = ready.get("resume") if is_resumable else None
        """The name under which another connection resumes the stream; None if it cannot."""
        self._resend = [ResendBuffer(port) for port in map(StreamPort.of_dict, ready["inputs"])]
        self._frames_received: list[int] = list(ready["sent"])
        """Frames of each streaming output that have arrived."""
        self._sending = anyio.Lock()
        self._flushing = False
        self.id: str = ready["stream"]
        self.model: str = ready["model"]
        self.rate_hz: int | None = ready["rate"]
        self.pulse: int = ready["pulse"]
        self.inputs = tuple(StreamPort.of_dict(port) for port in ready["inputs"])
        self.outputs = tuple(StreamPort.of_dict(port) for port in ready["outputs"])
        self.limits: Message = ready["limits"]
        self._opus = OpusSound(self.inputs, self.outputs, ready["skip"]) if format == "opus" else None
        self._streaming = [port for port in self.outputs if port.kind != "final"]
        self.events: deque[Message] = deque()
        self.last: Header | None = None
        self.stepped = [0] * len(self.inputs)
        """Frames of each input that the server has stepped."""
        self._epoch = 0
        self._confirms = is_resumable and ready.get("confirms", False)
        """Whether the server needs a list of the checkpoints that the client knows."""
        self._saved: list[int] = []
        """Frames of each input that a checkpoint has."""
        self._next_first: list[int] = list(ready["received"])
        """The number of the next frame of each input, which begins the next block."""
        self._answers: deque[Message] = deque()
        self._outputs: deque[dict[str, Array]] = deque()
        self._finals: dict[str, Array] = {}
        self._ended = False
        self._error: Exception | None = None
        self._changed = anyio.Event()
        self.connections = 1
        """The number of connections that the stream has used so far."""
        self.successors: list[str] = ready.get("urls", [])
        """Addresses at which a fleet would resume the stream, best first."""
        self.answered_s = time.monotonic()
        """The time of the server's last message, by ``time.monotonic``."""

    def __aiter__(self) -> "RemoteStream":
        return self

    async def __anext__(self) -> dict[str, Array]:
        """Return output name -> the next frames; after a flush, the last item has the final outputs."""
        while not self._outputs:
            if self._ended:
                finals, self._finals = self._finals, {}
                if finals:
                    return finals
                raise StopAsyncIteration
            await self._wait()
        return self._outputs.popleft()

    async def send(self, block: Array | Mapping[str, Array]) -> None:
        """Send more of the stream: an array for the only input, or input name -> array.

        Raises  InputError: an array that does not fit. ClientError: the server has ended the stream
        """
        for port, array in arrays_by_port(self.inputs, block):
            async with self._sending:
                if self._opus is not None:
                    await self._send_packets(port, self._opus.encode(port, array))
                    continue
                if self.resume_name is not None:
                    self._resend[port.number].add(self._next_first[port.number], array)
                first = self._next_first[port.number]
                self._next_first[port.number] += array.shape[port.axis or 0]
                await self._send_frames(port, array, first)

    async def end(self) -> None:
        """End the input; the iteration ends with the last outputs."""
        async with self._sending:
            self._flushing = True
            if self._opus is not None:
                for port in self.inputs:
                    await self._send_packets(port, self._opus.flush(port))
            await self._send({"type": "flush"})

    async def flush(self) -> dict[str, Array]:
        """End the stream. Returns all frames of each output that have not been taken, joined, and the final outputs."""
        await self.end()
        while not self._ended:
            await self._wait()
        frames = {port.name: self._join(port) for port in self.outputs if port.kind != "final"}
        self._outputs.clear()
        finals, self._finals = self._finals, {}
        return {**frames, **finals}

    async def reset(self) -> None:
        """Begin a new stream; outputs that have not been taken are dropped."""
        async with self._sending:
            self._epoch += 1
            self._next_first = [0] * len(self.inputs)
            self.stepped = [0] * len(self.inputs)
            self._frames_received = [0] * len(self._frames_received)
            for buffer in self._resend:
                buffer.clear()
            self._outputs.clear()
            if self._opus is not None:
                self._opus.reset()
            self._finals, self._ended, self._flushing = {}, False, False
            await self._send({"type": "reset"})
        await self._answer("reset")

    async def statistics(self) -> Message:
        """Request the latencies of this stream: ``queue_us``, ``step_us``, ``answer_us``."""
        await self._send({"type": "stats"})
        return await self._answer("stats")

    async def ping(self) -> Message:
        """Ping the server and return its answer, which does not wait for the model."""
        await self._send({"type": "ping"})
        return await self._answer("pong")

    async def probe(self) -> None:
        """Ping a server that may be silent: its answer only updates ``answered_s``."""
        await self._send({"type": "ping", "probe": True})

    async def _confirm(self, epoch: int, saved: list[int]) -> None:
        """Tell the server that all outputs before a checkpoint are here."""
        with suppress(ClientError):  # the reader reports a connection that has ended
            await self._socket.send(write_message({"type": "confirm", "epoch": epoch, "safe": saved}))

    async def cut(self) -> None:
        """Cut the connection of a silent server and treat it as lost: another one may resume the stream."""
        await self._socket.cut()

    async def process(
        self, blocks: Iterable[Array | Mapping[str, Array]] | AsyncIterable[Array | Mapping[str, Array]]
    ) -> AsyncGenerator[dict[str, Array]]:
        """Send blocks and yield all outputs, flush included. Errors of the blocks are raised here.

        A source for an executor: ``executor.stream(remote.process(blocks))``.
        """

        async def send() -> None:
            try:
                if isinstance(blocks, AsyncIterable):
                    async for block in blocks:
                        await self.send(block)
                else:
                    for block in blocks:
                        await self.send(block)
                await self.end()
            except Exception as error:
                self._error = self._error or error
                self._changed.set()

        self._tasks.start_soon(send)
        async for outputs in self:
            yield outputs

    def sink(self, output: str | None = None) -> Callable[[Mapping[str, Array]], Awaitable[None]]:
        """Return a sink for an executor: it sends one output, by default the only one, to this stream's only input."""

        async def write(outputs: Mapping[str, Array]) -> None:
            name = next(iter(outputs)) if output is None else output
            if len(self.inputs) != 1 or (output is None and len(outputs) != 1) or name not in outputs:
                raise InputError(
                    f"outputs {', '.join(outputs)} for the inputs {', '.join(port.name for port in self.inputs)}: "
                    "give sink() the name of an output, or send them yourself"
                )
            await self.send(outputs[name])

        return write

    async def read(self) -> None:
        """Receive until the connection ends."""
        while (message := await self._socket.receive()) is not None:
            self.answered_s = time.monotonic()
            if isinstance(message, bytes):
                self._receive_frames(message)
            else:
                self._handle_message(read_message(message))
            self._changed.set()

    def fail(self, error: Exception) -> None:
        """End the stream with an error, which the next ``send`` and takers of outputs get; the first one stays."""
        self._error = self._error or error
        self._changed.set()

    def give_up(self, error: ClientError) -> None:
        """End the stream for good: no other connection is tried, whatever the error."""
        self.resume_name = None
        self._error = error
        self._changed.set()

    @property
    def is_whole(self) -> bool:
        """Whether all frames are still in memory, so that a new stream can begin from the start."""
        return not any(buffer.has_checkpoint for buffer in self._resend)

    @property
    def lost(self) -> bool:
        """Whether the connection is lost and another one should follow."""
        error = self._error
        may_follow = error is None or (isinstance(error, ClientError) and error.code in RETRYABLE_CODES)
        return self.resume_name is not None and may_follow

    async def continue_over(self, socket: ClientSocket, ready: Message) -> None:
        """Continue over another connection: resend the frames that its server does not have."""
        async with self._sending:
            self._socket, self.resume_name, self._error = socket, ready["resume"], None
            self._confirms = ready.get("confirms", False)
            self.connections += 1
            self.successors = ready.get("urls", [])
            self.answered_s = time.monotonic()
            for _ in range(self._epoch - ready["epoch"]):
                await self._send({"type": "reset"})
            received = ready["received"] if ready["epoch"] == self._epoch else [0] * len(self.inputs)
            for port, buffer, first in zip(self.inputs, self._resend, received):
                for start, array in buffer.blocks_from(first):
                    await self._send_frames(port, array, start)
            if self._flushing and not self._ended:
                await self._send({"type": "flush"})

    def _receive_frames(self, message: bytes) -> None:
        header = unpack_header(message)
        if header.epoch != self._epoch % EPOCH_MODULUS:
            return
        port = self.outputs[header.port]
        if self._opus is not None:
            sound = self._opus.decode(port, message[HEADER.size :])
            if sound is not None:
                self.last = header
                self._queue_output(port, sound)
                return
        frames = port.decode(memoryview(message)[HEADER.size :], header.frames, self._format)
        self.last = header
        if port.kind == "final":
            self._finals[port.name] = frames
            return
        port_index = self._streaming.index(port)
        repeated = self._frames_received[port_index] - header.first
        if repeated < 0:
            lost_text = f"output {port.name}: frames {self._frames_received[port_index]} to {header.first - 1} are lost"
            self.give_up(ClientError("gap", lost_text, "begin a new stream"))
        elif repeated < header.frames:  # else it came over the previous connection
            self._frames_received[port_index] = header.first + header.frames
            frames = frames_at(frames, port.axis or 0, repeated, header.frames)
            self._outputs.append({port.name: frames})

    def _handle_message(self, message: Message) -> None:
        message_type, current = message["type"], message.get("epoch", self._epoch) == self._epoch
        if message_type == "error":
            self._error = ClientError(message["code"], message["message"], message["hint"])
        elif message_type == "event" and current:
            self.events.append(message)
        elif message_type == "ack" and current:
            self.stepped = message["taken"]
            if self._confirms and message["safe"] != self._saved:
                self._saved = message["safe"]
                self._tasks.start_soon(self._confirm, self._epoch, self._saved)
            for buffer, first in zip(self._resend, message["safe"]):
                buffer.forget(first)
        elif message_type == "servers":
            self.successors = message["urls"]
        elif message_type == "flushed" and current:
            if self._opus:
                for port, sound in self._opus.ends(message["sent"], self._streaming):
                    self._queue_output(port, sound)
            self.stepped, self._ended = message["received"], True
        elif message_type in ("pong", "stats", "reset") and "probe" not in message:
            self._answers.append(message)

    def _queue_output(self, port: StreamPort, sound: Array) -> None:
        if sound.size:
            self._outputs.append({port.name: sound})

    async def _answer(self, message_type: str) -> Message:
        while True:
            for message in self._answers:
                if message["type"] == message_type:
                    self._answers.remove(message)
                    return message
            await self._wait()

    async def _wait(self) -> None:
        """Wait until something arrives. Raises ClientError: nothing will."""
        if self._error is not None and not self.lost:
            raise self._error
        self._changed = anyio.Event()
        await self._changed.wait()

    async def _send(self, message: Message) -> None:
        await self._send_message(write_message(message))

    async def _send_message(self, message: bytes | str) -> None:
        try:
            await self._socket.send(message)
        except ClientError as error:
            if self.lost:
                return  # frames that are not safe are sent again over the next connection
            while self._error is None:
                await self._wait()
            raise self._error from error

    async def _send_frames(self, port: StreamPort, array: Array, begin: int) -> None:
        """Send frames, in messages within the size limit."""
        axis = port.axis or 0
        max_frames = max(1, (self.limits["message_bytes"] - HEADER.size) // port.frame_bytes(self._format))
        for first in range(0, array.shape[axis], max_frames):
            part = array[(*(slice(None),) * axis, slice(first, first + max_frames))]
            frames = part.shape[axis]
            header = Header(INPUT, port.number, self._epoch % EPOCH_MODULUS, frames, begin + first)
            await self._send_message(pack_frames(header, port.encode(part, self._format)))

    async def _send_packets(self, port: StreamPort, packets: Iterable[tuple[int, bytes]]) -> None:
        for count, packet in packets:
            first = self._next_first[port.number]
            self._next_first[port.number] += count
            header = Header(INPUT, port.number, self._epoch % EPOCH_MODULUS, count, first)
            await self._send_message(pack_frames(header, packet))

    def _join(self, port: StreamPort) -> Array:
        pieces = [outputs[port.name] for outputs in self._outputs if port.name in outputs]
        if pieces:
            return np.concatenate(pieces, port.axis or 0)
        return port.decode(b"", 0, self._format)
