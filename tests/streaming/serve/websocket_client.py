"""A client that can send any message: a WebSocket of the package websockets, in this thread."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from pulse.facts import Array
from streaming.protocol.binary_messages import HEADER, INPUT, Header, pack_frames
from tests.streaming.serve.servers import RunningServer


class WebSocketClient:
    """A client that sends and receives messages unchanged."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    def send(self, message: bytes | dict[str, Any] | str) -> None:
        self.socket.send(json.dumps(message) if isinstance(message, dict) else message)

    def receive(self, timeout: int = 60) -> bytes | dict[str, Any]:
        message = self.socket.recv(timeout)
        return json.loads(message) if isinstance(message, str) else message

    def hello(self, **fields: Any) -> dict[str, Any]:
        """Send a hello and return the answer."""
        self.send({"type": "hello", "version": 1, **fields})
        return self.receive()

    def send_frames(
        self, samples: Array | list[float], first: int, port: int = 0, epoch: int = 0, kind: int = INPUT
    ) -> None:
        """Send samples of an audio input as f32."""
        array = np.asarray(samples, "<f4")
        self.send(pack_frames(Header(kind, port, epoch, array.size, first), array.tobytes()))

    def receive_until(self, kind: str, timeout: int = 60) -> list[Any]:
        """Receive and return messages up to the first of a type."""
        messages = []
        while not messages or not isinstance(messages[-1], dict) or messages[-1]["type"] != kind:
            messages.append(self.receive(timeout))
        return messages

    def closing_status(self, timeout: int = 60) -> int:
        """The status with which the server closes, after all that it sends."""
        try:
            while True:
                self.socket.recv(timeout)
        except ConnectionClosed as error:
            return error.rcvd.code if error.rcvd else None


@contextmanager
def raw(server: RunningServer, **options: dict[str, str] | int | str) -> Iterator[WebSocketClient]:
    """Open a connection without a hello."""
    with connect(f"{server.ws}/v1/stream", compression=None, **options) as socket:
        yield WebSocketClient(socket)


def samples_of(message: bytes) -> Array:
    """The values of a binary message."""
    return np.frombuffer(message[HEADER.size :], "<f4")
