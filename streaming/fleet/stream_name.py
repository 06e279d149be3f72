"""The name of a stream in a fleet: a secret key, and the version of the models."""

import re
import secrets

from pulse.support.record import record
from streaming.protocol.errors import ProtocolError

VERSION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
STREAM_NAME = re.compile(rf"([0-9a-f]{{32}})\.({VERSION_NAME.pattern})")


@record
class StreamName:
    """A stream's name, which grants access to the stream.

    key      determines the worker that the stream belongs to
    version  the version of the models
    """

    key: str
    version: str

    @classmethod
    def new(cls, version: str) -> "StreamName":
        """Create a name that cannot be guessed."""
        return cls(new_key(), version)

    @classmethod
    def of_text(cls, text: str) -> "StreamName":
        """Parse a name. Raises ProtocolError: not a name of a stream."""
        match = STREAM_NAME.fullmatch(text)
        if match is None:
            raise ProtocolError("resume", "no stream of this fleet has such a name", "begin a new stream")
        return cls(match[1], match[2])

    def __str__(self) -> str:
        return f"{self.key}.{self.version}"


def new_key() -> str:
    """Create a key of 32 digits that cannot be guessed."""
    return secrets.token_hex(16)
