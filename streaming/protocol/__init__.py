"""The protocol between a server of streams and its clients, see docs/protocol.md: data only, without any I/O."""

PROTOCOL_VERSION = 1
"""A hello of another version is refused."""
SUBPROTOCOL = "pulse.v1"
PATH = "/v1/stream"
