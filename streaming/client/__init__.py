"""A client of ``pulse serve`` on asyncio or trio.

async with connect("ws://localhost:8080", "denoiser") as stream:
    await stream.send(samples)
    rest = await stream.flush()
"""

from pulse.errors import InputError

try:
    from streaming.client.connecting import connect
    from streaming.client.errors import ClientError
    from streaming.client.remote_stream import RemoteStream
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "websockets":
        raise
    raise InputError("a client needs websockets; pip install 'pulse-stream[client]'") from None

__all__ = ["ClientError", "RemoteStream", "connect"]
