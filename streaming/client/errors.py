"""The error that a client raises."""

from streaming.protocol.errors import ProtocolError
from streaming.protocol.messages import Message


class ClientError(ProtocolError):
    """The server cannot be reached, or has ended the stream; ``code`` and ``hint`` are those of the protocol.

    moved  the server's message, if other servers of a fleet should take the stream
    """

    moved: Message | None = None
