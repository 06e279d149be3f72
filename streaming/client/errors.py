"""What a client raises."""

from streaming.wire.errors import WireError


class ClientError(WireError):
    """A server that cannot be reached, or that ended the stream; ``code`` and ``hint`` are those of the protocol."""
