"""WebSocket frames in any pieces: the fast path for whole messages, and the parser for all others."""

import importlib
import socket
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from pulse.errors import InputError
from pulse.facts import Array
from streaming.protocol.binary_messages import HEADER, INPUT, OUTPUT, Header, pack_frames
from streaming.protocol.messages import read_message, write_message
from tests.noise import normal_noise
from tests.streaming.executor.streams import named_program
from tests.streaming.serve.offline_outputs import block_shape, expected_outputs
from tests.streaming.serve.servers import PULSE, RunningServer

MODEL = "filtered"


class RawClient:
    """A client that controls the moments at which bytes are sent."""

    def __init__(self, server: RunningServer) -> None:
        uri = parse_uri(f"{server.ws}/v1/stream")
        self.socket = socket.create_connection((uri.host, uri.port), timeout=10)
        self.protocol = ClientProtocol(uri)
        self.protocol.send_request(self.protocol.connect())
        self.send(self.protocol.data_to_send())
        self.messages = []
        while not self.protocol.events_received():
            self.protocol.receive_data(self.socket.recv(4096))
        self.protocol.send_text(write_message({"type": "hello", "model": MODEL}).encode())
        self.send(self.protocol.data_to_send())
        assert self.receive_until("ready")["type"] == "ready"

    def send(self, parts: list[bytes]) -> None:
        """Send the parts of bytes one by one."""
        for part in parts:
            self.socket.sendall(part)

    def frame(self, opcode: Opcode, data: bytes, fin: bool = True) -> bytes:
        """The bytes of one masked frame."""
        return Frame(opcode, data, fin).serialize(mask=True)

    def receive_until(self, kind: str) -> dict[str, Any]:
        """Receive messages until a text message of this type; keep binary messages."""
        while True:
            data = self.socket.recv(1 << 16)
            assert data, self.protocol.close_rcvd
            self.protocol.receive_data(data)
            for event in self.protocol.events_received():
                if isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                    message = read_message(bytes(event.data).decode())
                    if message["type"] == kind:
                        return message
                elif isinstance(event, Frame) and event.opcode is Opcode.BINARY:
                    self.messages.append(bytes(event.data))

    def status(self) -> int:
        """The status with which the server closes."""
        while self.protocol.close_rcvd is None and (data := self.socket.recv(1 << 16)):
            self.protocol.receive_data(data)
        return self.protocol.close_rcvd.code


@pytest.fixture
def client(server: RunningServer) -> Iterator[RawClient]:
    connection = RawClient(server)
    yield connection
    connection.socket.close()


def blocks(x: Array) -> list[bytes]:
    """Messages of random sizes: heads of 6, 8 and 14 bytes."""
    cuts = [0, 1, 3, 30, 70, 16_600, x.size]
    return [pack_frames(Header(INPUT, 0, 0, to - at, at), x[at:to].tobytes()) for at, to in pairwise(cuts)]


def bytes_cut_as(client: RawClient, cut: str, messages: list[bytes]) -> list[bytes]:
    """The bytes of messages, cut into parts."""
    whole = [client.frame(Opcode.BINARY, message) for message in messages]
    if cut == "one by one":
        return whole
    if cut == "all at once":
        return [b"".join(whole)]
    if cut == "after each byte of a head":
        data = b"".join(whole)
        return [data[n : n + 1] for n in range(400)] + [data[400:]]
    parts = []
    for message in messages:  # fragments, with a ping in between
        half = len(message) // 2
        parts.append(client.frame(Opcode.BINARY, message[:half], False))
        parts.append(client.frame(Opcode.PING, b"?"))
        parts.append(client.frame(Opcode.CONT, message[half:]))
    return parts


@pytest.mark.parametrize("cut", ["one by one", "all at once", "after each byte of a head", "in fragments"])
def test_bytes_in_any_pieces_give_the_same_outputs(client: RawClient, cut: str) -> None:
    program = named_program(MODEL, PULSE)
    (port,) = [port for port in program.inputs if port.streams]
    x = normal_noise(17003)
    client.send(bytes_cut_as(client, cut, blocks(x)))
    client.send([client.frame(Opcode.TEXT, write_message({"type": "flush"}).encode())])
    client.receive_until("flushed")
    expected = expected_outputs(program, {port.name: x.reshape(block_shape(port, -1))})
    for number, name in enumerate(port.name for port in program.outputs):
        values = [
            message[HEADER.size :] for message in client.messages if message[:2] == bytes((OUTPUT, number))
        ]
        output = np.frombuffer(b"".join(values), "<f4")
        np.testing.assert_allclose(output, expected[name].ravel(), rtol=1e-5, atol=1e-6)
    assert len(client.messages) > 4


@pytest.mark.parametrize(
    ("status", "data"),
    [
        pytest.param(1002, bytes([0x82, 1, 0]), id="unmasked"),
        pytest.param(1002, bytes([0xC2, 0x81, 0, 0, 0, 0, 0]), id="reserved bit"),
        pytest.param(1002, bytes([0x83, 0x80, 0, 0, 0, 0]), id="unknown opcode"),
        pytest.param(1009, bytes([0x82, 0xFF]) + (1 << 30).to_bytes(8, "big") + bytes(4), id="too long"),
        pytest.param(1007, bytes([0x81, 0x81, 0, 0, 0, 0, 0xFF]), id="not UTF-8"),
    ],
)
def test_invalid_frames_close_with_their_status(client: RawClient, status: int, data: bytes) -> None:
    client.send([data])
    assert client.status() == status


def test_a_message_between_fragments_closes_the_connection(client: RawClient) -> None:
    (message, *_) = blocks(np.zeros(30_000, np.float32))
    client.send([client.frame(Opcode.BINARY, message[:5], False), client.frame(Opcode.BINARY, message)])
    assert client.status() == 1002


@pytest.mark.parametrize("version", ["0.53.9", "0.55.0", "0.540.0", "1.0.0"])
def test_another_version_of_uvicorn_is_refused(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    import uvicorn

    name = "streaming.serve.stream_protocol"
    importlib.import_module(name)
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(uvicorn, "__version__", version)
    with pytest.raises(InputError, match=f"needs uvicorn 0.54, and {version} is installed; pip install"):
        importlib.import_module(name)
