"""The client of ``pulse serve``: ``async with pulse.client.connect("ws://localhost:8080") as stream``.

Its code depends on time, so it is in ``streaming.client``; this module is its name in the package that users import.
"""

from streaming.client import ClientError, RemoteStream, connect

__all__ = ["ClientError", "RemoteStream", "connect"]
