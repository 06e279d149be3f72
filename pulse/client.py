"""The client of ``pulse serve``: ``async with pulse.client.connect("ws://localhost:8080") as stream``.

It has time in it, so it lives in ``streaming.client``; this module gives it a name in the package that users import.
"""

from streaming.client import ClientError, RemoteStream, connect

__all__ = ["ClientError", "RemoteStream", "connect"]
