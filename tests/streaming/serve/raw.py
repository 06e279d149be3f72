"""A client that can send any message: a WebSocket of the package websockets, in this thread."""

import json
from contextlib import contextmanager

import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from streaming.protocol.frames import HEADER, INPUT, Header, pack_frames


class Raw:
    """Messages as they are."""

    def __init__(self, socket):
        self.socket = socket

    def send(self, message):
        self.socket.send(json.dumps(message) if isinstance(message, dict) else message)

    def receive(self, timeout=60):
        message = self.socket.recv(timeout)
        return json.loads(message) if isinstance(message, str) else message

    def hello(self, **fields):
        """The answer to a hello."""
        self.send({"type": "hello", "version": 1, **fields})
        return self.receive()

    def send_frames(self, samples, first, port=0, epoch=0, kind=INPUT):
        """Samples of an input of sound, in f32."""
        array = np.asarray(samples, "<f4")
        self.send(pack_frames(Header(kind, port, epoch, array.size, first), array.tobytes()))

    def receive_until(self, kind, timeout=60):
        """All messages up to one of a type, which is the last."""
        messages = []
        while not messages or not isinstance(messages[-1], dict) or messages[-1]["type"] != kind:
            messages.append(self.receive(timeout))
        return messages

    def closing_status(self, timeout=60):
        """The status with which the server closes, after all that it sends."""
        try:
            while True:
                self.socket.recv(timeout)
        except ConnectionClosed as error:
            return error.rcvd.code if error.rcvd else None


@contextmanager
def raw(server, **options):
    """A connection, without a hello."""
    with connect(f"{server.ws}/v1/stream", compression=None, **options) as socket:
        yield Raw(socket)


def samples_of(message):
    """The values of a binary message."""
    return np.frombuffer(message[HEADER.size :], "<f4")
