"""What a client raises."""

from streaming.wire.errors import WireError
from streaming.wire.messages import Message


class ClientError(WireError):
    """A server that cannot be reached, or that ended the stream; ``code`` and ``hint`` are those of the protocol.

    moved  the server's message, if other servers of a fleet are to take the stream
    """

    moved: Message | None = None
