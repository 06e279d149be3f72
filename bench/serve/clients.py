"""Many clients in one process, cheap enough to leave the cores to the server: blocks in real time, answers timed."""

import heapq
import json
import os
import random
import selectors
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from streaming.protocol.binary_messages import HEADER, INPUT, OUTPUT


@dataclass
class Client:
    """A stream: blocks of silence and noise, numbered, and when each was sent."""

    stream: socket.socket
    block: int
    payload: bytes
    delay: int
    sent: int = 0
    answered: int = 0
    messages: int = 0
    sent_at: dict[int, float] = field(default_factory=dict)
    rest: bytearray = field(default_factory=bytearray)
    closed: bool = False

    def send(self, now: float) -> None:
        """Send the next block, in one frame whose mask is zero."""
        header = HEADER.pack(INPUT, 0, 0, self.block, self.sent, 0, 0)
        data = header + self.payload
        self.sent += self.block
        self.sent_at[self.sent] = now
        try:
            self.stream.sendall(_frame_head(2, len(data)) + data)
        except OSError:
            self.closed = True

    def receive(self, now: float, times: list[float]) -> None:
        """Take received frames; record the time from a block to the last output frame that needs it."""
        try:
            data = self.stream.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return
        self.rest += data
        while (frame := _take_frame(self.rest)) is not None:
            opcode, payload = frame
            if opcode == 9:
                self.stream.sendall(_frame_head(10, len(payload)) + payload)
            if opcode == 2 and payload[0] == OUTPUT:
                _, _, _, frames, first, _, _ = HEADER.unpack_from(payload)
                self.answered = first + frames
                self.messages += 1
                for end in [end for end in self.sent_at if end <= self.answered + self.delay]:
                    times.append(now - self.sent_at.pop(end))


def open_client(address: tuple[str, int], model: str, sample_format: str, block: int) -> Client | str:
    """Return a client that is ready, or the reason why it was refused."""
    stream = socket.create_connection(address)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.sendall(
        b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    rest = bytearray()
    while b"\r\n\r\n" not in rest:
        rest += stream.recv(4096)
    del rest[: rest.index(b"\r\n\r\n") + 4]
    hello = json.dumps({"type": "hello", "model": model, "format": sample_format, "block": block}).encode()
    stream.sendall(_frame_head(1, len(hello)) + hello)
    while (frame := _take_frame(rest)) is None:
        rest += stream.recv(4096)
    ready = json.loads(frame[1])
    if ready["type"] != "ready":
        return f"{ready['code']}: {ready['message']}"
    samples = 0.1 * np.random.default_rng(os.getpid()).standard_normal(block)
    payload = (samples * 32768).astype("<i2") if sample_format == "pcm16" else samples.astype("<f4")
    stream.setblocking(False)
    return Client(stream, block, payload.tobytes(), ready["outputs"][0]["delay"], rest=rest)


@dataclass
class ClientRun:
    """The result of a run: the number of streams, and the milliseconds from sending a block to its last answer.

    late    blocks whose answers had not come at the end
    cpu_us  CPU time of the clients' process, per block
    """

    streams: int
    refused: list[str]
    lost: int
    blocks: int
    late: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    cpu_us: float


def hold(
    addresses: Sequence[tuple[str, int]],
    model: str,
    streams: int,
    seconds: float,
    block: int,
    rate_hz: int,
    sample_format: str,
    begin: Callable[[], None],
) -> ClientRun:
    """Run streams in real time, distributed over the servers; ``begin`` is called when all are open."""
    clients: list[Client] = []
    refused: list[str] = []
    selector = selectors.DefaultSelector()
    for index in range(streams):
        client = open_client(addresses[index % len(addresses)], model, sample_format, block)
        if isinstance(client, str):
            refused.append(client)
            break
        clients.append(client)
        selector.register(client.stream, selectors.EVENT_READ, client)
    begin()
    computed_s = time.process_time()
    block_s, start = block / rate_hz, time.perf_counter() + 0.2
    order = random.Random(0)
    due = [(start + order.random() * block_s, index) for index in range(len(clients))]
    heapq.heapify(due)
    times: list[float] = []
    warm, end, counted = start + min(2.0, seconds / 4), start + seconds, False
    while (now := time.perf_counter()) < end and clients:
        if not counted and now > warm:
            times.clear()
            counted = True
        while due and due[0][0] <= now:
            next_s, index = due[0]
            if not clients[index].closed:
                clients[index].send(now)
            heapq.heapreplace(due, (next_s + block_s, index))
        for key, _ in selector.select(max(0.0, (due[0][0] if due else end) - time.perf_counter())):
            key.data.receive(time.perf_counter(), times)
            if key.data.closed:
                selector.unregister(key.data.stream)
    computed_s = time.process_time() - computed_s
    blocks = sum(client.sent for client in clients) // block
    clients = [client for client in clients if not client.closed]
    late = sum(len([s for s in c.sent_at.values() if s < end - 0.1 - block_s]) for c in clients)
    for client in clients:
        client.stream.close()
    times_ms = np.array(times or [float("nan")]) * 1e3
    p50, p99 = np.percentile(times_ms, [50, 99])
    count = len(clients)
    return ClientRun(
        streams=count,
        refused=refused,
        lost=streams - count - len(refused),
        blocks=len(times),
        late=late,
        p50_ms=float(p50),
        p99_ms=float(p99),
        max_ms=float(times_ms.max()),
        cpu_us=1e6 * computed_s / max(1, blocks),
    )


def _frame_head(opcode: int, size: int) -> bytes:
    if size < 126:
        head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, size)
    return head + b"\0\0\0\0"


def _take_frame(data: bytearray) -> tuple[int, bytes] | None:
    """Remove and return the first complete frame."""
    if len(data) < 2:
        return None
    size, start = data[1] & 127, 2
    if size == 126:
        if len(data) < 4:
            return None
        size, start = struct.unpack_from("!H", data, 2)[0], 4
    elif size == 127:
        if len(data) < 10:
            return None
        size, start = struct.unpack_from("!Q", data, 2)[0], 10
    if len(data) < start + size:
        return None
    opcode, payload = data[0] & 15, bytes(data[start : start + size])
    del data[: start + size]
    return opcode, payload
