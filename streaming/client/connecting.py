"""Connecting to servers: once, or again when a connection is lost."""

import itertools
import ssl
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import anyio

from streaming.client.errors import ClientError
from streaming.client.remote_stream import AGAIN, RemoteStream
from streaming.client.websocket import ClientSocket, open_socket
from streaming.errors import only_one
from streaming.wire import PATH
from streaming.wire.messages import Hello, Message, read_message, write_message
from streaming.wire.opus import SKIP_SAMPLES

PAUSE_S = 0.05
"""Between two attempts of a lost stream."""
ANSWER_S = 10.0
"""How long a server may take to answer a hello."""


class Servers:
    """The servers that a client may use, and what it says to each.

    patience_s  how long a lost stream looks for a server that goes on with it
    """

    def __init__(
        self, urls: Sequence[str], hello: Hello, tls: ssl.SSLContext | None, patience_s: float
    ) -> None:
        self._urls = [url if PATH in url else url.rstrip("/") + PATH for url in urls]
        self._hello, self._tls, self._patience_s = hello, tls, patience_s
        self._refusals: dict[str, str] = {}

    async def open(self, until: AsyncExitStack) -> tuple[ClientSocket, Message]:
        """A stream of the first server that takes it. Raises ClientError: none does; that of the last one."""
        for number, url in enumerate(self._urls):
            try:
                return await self._try(until, url, self._hello)
            except ClientError as error:
                if number + 1 == len(self._urls) or error.code not in AGAIN:
                    raise
        raise ClientError("hello", "no server", "give the address of one")

    async def run(self, stream: RemoteStream, until: AsyncExitStack) -> None:
        """Read a stream to its end, over as many connections as it takes."""
        while True:
            await stream.read()
            await until.aclose()
            if not stream.lost:
                break
            try:
                with anyio.fail_after(self._patience_s):
                    socket, ready = await self._find(stream, until)
            except TimeoutError:
                error = ClientError(
                    "resume",
                    f"no server goes on within {self._patience_s:g} s: {'; '.join(self._refusals.values())}",
                    "begin a new stream",
                )
                stream.give_up(error)
                return
            await stream.go_on(socket, ready)
        stream.fail(ClientError("drain", "the server has closed the connection", "connect again"))

    async def _find(self, stream: RemoteStream, until: AsyncExitStack) -> tuple[ClientSocket, Message]:
        """A server that goes on with a lost stream, however long it takes."""
        for url in itertools.cycle(self._urls):
            try:
                return await self._try(until, url, replace(self._hello, resume=stream.resume))
            except ClientError as error:
                self._refusals[url] = error.message
                if error.code == "resume" and stream.is_whole:
                    return await self._try(until, url, self._hello)
            await anyio.sleep(PAUSE_S)
        raise AssertionError("a cycle has no end")

    async def _try(self, until: AsyncExitStack, url: str, hello: Hello) -> tuple[ClientSocket, Message]:
        async with AsyncExitStack() as opened:
            socket = await opened.enter_async_context(open_socket(url, self._tls))
            await socket.send(write_message(hello.as_message()))
            ready = await _receive_ready(socket)
            until.push_async_exit(opened.pop_all())
        return socket, ready


@asynccontextmanager
async def connect(
    url: str | Sequence[str] = "ws://127.0.0.1:8080",
    model: str | None = None,
    *,
    rate_hz: int | None = None,
    form: str = "f32",
    block: int | None = None,
    outputs: Iterable[str] | None = None,
    token: str | None = None,
    tls: ssl.SSLContext | None = None,
    patience_s: float = 0.0,
) -> AsyncGenerator[RemoteStream]:
    """A stream of a server, on asyncio or trio.

    url         ws://HOST:PORT or wss://HOST:PORT, the path may be left out; several: the first that takes the stream
    model       its name in the server; the first one by default
    rate_hz     that of the samples, in and out: the server resamples if it is not the model's
    form        f32; pcm16: half the bytes, samples of 16 bits; opus: packets of 10 ms at 48 kHz, which need PyAV here
                and there
    block       samples that are sent at once, a hint
    outputs     the names of those that are wanted
    token       if the server has tokens
    tls         for wss: what is trusted; the system's authorities by default
    patience_s  above 0: if the connection is lost, go on over another one, for which this long is looked, with the same
                bits as a result. The server must keep checkpoints; what is not in one is kept here and sent again
    Raises      ClientError: the server cannot be reached or refuses; ``code`` says why

        async with connect("ws://localhost:8080", "denoiser") as stream:
            await stream.send(samples)
            async for outputs in stream: ...
    """
    wanted = None if outputs is None else list(outputs)
    fields = {
        "model": model,
        "rate": rate_hz,
        "format": form,
        "block": block,
        "outputs": wanted,
        "token": token,
        "skip": SKIP_SAMPLES if form == "opus" else None,
    }
    hello = Hello.of_message({"type": "hello", **fields})
    servers = Servers([url] if isinstance(url, str) else url, hello, tls, patience_s)
    failed: BaseException | None = None
    async with AsyncExitStack() as until:
        socket, ready = await servers.open(until)
        try:
            async with anyio.create_task_group() as tasks:
                stream = RemoteStream(socket, ready, form, tasks, patience_s > 0)
                tasks.start_soon(servers.run, stream, until)
                yield stream
                tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            failed = only_one(group)
            if isinstance(failed, BaseExceptionGroup):
                raise
    if failed is not None:
        raise failed


async def _receive_ready(socket: ClientSocket) -> Message:
    message: bytes | str | None = None
    with anyio.move_on_after(ANSWER_S):
        message = await socket.receive()
    if not isinstance(message, str):
        raise ClientError("connection", "the server did not answer the hello", "is this a server of pulse?")
    found = read_message(message)
    if found["type"] == "error":
        raise ClientError(found["code"], found["message"], found["hint"])
    return found
