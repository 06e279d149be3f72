"""The protocol between a server of streams and its clients: docs/protocol.md as data. Nothing here waits or sends."""

VERSION = 1
SUBPROTOCOL = "pulse.v1"
PATH = "/v1/stream"
