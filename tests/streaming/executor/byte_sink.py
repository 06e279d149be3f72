"""A byte stream that keeps what it is sent."""

import anyio.abc
import anyio.lowlevel


class ByteSink(anyio.abc.ByteSendStream):
    def __init__(self) -> None:
        self.data = b""

    async def send(self, item: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        self.data += item

    async def aclose(self):
        pass
