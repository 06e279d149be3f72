"""Connecting to servers: once, or again when a connection is lost."""

import ssl
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import anyio
from anyio.abc import TaskGroup

from streaming.client.errors import ClientError
from streaming.client.remote_stream import RETRYABLE_CODES, RemoteStream
from streaming.client.websocket import ClientSocket, open_socket
from streaming.errors import unwrap_single_error
from streaming.protocol import PATH
from streaming.protocol.messages import Hello, Message, read_message, write_message
from streaming.protocol.opus import SKIP_SAMPLES

PAUSE_S = 0.05
"""The seconds between two attempts to reconnect a lost stream."""
ANSWER_TIMEOUT_S = 10.0
"""The seconds that a server may take to answer a hello."""
RESUME_TIMEOUT_S = 2.0
"""The seconds that a server may take to resume a lost stream before the next one is asked."""
CHECKS_PER_TIMEOUT = 4
"""The number of times in ``server_timeout_s`` that a client checks whether its server has sent something."""


class Servers:
    """The servers that a client may use, and its hello to each.

    reconnect_timeout_s  seconds to look for a server that resumes a lost stream
    server_timeout_s     seconds after which a silent server counts as lost; None: only a closed connection does
    """

    def __init__(
        self,
        urls: Sequence[str],
        hello: Hello,
        tls: ssl.SSLContext | None,
        reconnect_timeout_s: float,
        server_timeout_s: float | None = None,
    ) -> None:
        self._urls = [_with_path(url) for url in urls]
        self._hello, self._tls, self._reconnect_timeout_s = hello, tls, reconnect_timeout_s
        self._server_timeout_s = server_timeout_s
        self._refusals: dict[str, str] = {}

    async def open(self, stack: AsyncExitStack) -> tuple[ClientSocket, Message]:
        """Open a stream on the first server that accepts it. Raises the last server's ClientError if none does."""
        for index, url in enumerate(self._urls):
            try:
                return await self._open_on(stack, url, self._hello)
            except ClientError as error:
                if index + 1 == len(self._urls) or error.code not in RETRYABLE_CODES:
                    raise
        raise ClientError("hello", "no server", "give the address of one")

    async def run(self, stream: RemoteStream, stack: AsyncExitStack) -> None:
        """Read a stream to its end, over as many connections as needed."""
        while True:
            await self._read(stream)
            await stack.aclose()
            if not stream.lost:
                break
            try:
                with anyio.fail_after(self._reconnect_timeout_s):
                    socket, ready = await self._find_successor(stream, stack)
            except TimeoutError:
                error = ClientError(
                    "resume",
                    f"no server resumes the stream within {self._reconnect_timeout_s:g} s: "
                    + "; ".join(self._refusals.values()),
                    "begin a new stream",
                )
                stream.give_up(error)
                return
            await stream.continue_over(socket, ready)
        stream.fail(ClientError("drain", "the server has closed the connection", "connect again"))

    async def _find_successor(
        self, stream: RemoteStream, stack: AsyncExitStack
    ) -> tuple[ClientSocket, Message]:
        """Find a server that resumes a lost stream, without a time limit; its successors in a fleet are asked first."""
        hello = replace(self._hello, resume=stream.resume_name)
        successors = [_with_path(url) for url in stream.successors]
        while True:
            for url in dict.fromkeys([*successors, *self._urls]):
                follows = url not in successors
                try:
                    with anyio.fail_after(RESUME_TIMEOUT_S):
                        return await self._resume_on(stack, url, replace(hello, follows=follows), stream)
                except ClientError as error:
                    self._refusals[url] = error.message
                except TimeoutError:
                    self._refusals[url] = f"{url} does not answer within {RESUME_TIMEOUT_S:g} s"
                await anyio.sleep(PAUSE_S)

    async def _resume_on(
        self, stack: AsyncExitStack, url: str, hello: Hello, stream: RemoteStream
    ) -> tuple[ClientSocket, Message]:
        """Resume a lost stream on a server, or restart it if all its frames are still here.

        Raises ClientError: the server refuses it
        """
        try:
            return await self._open_on(stack, url, hello)
        except ClientError as error:
            if error.code != "resume" or not stream.is_whole:
                raise
        again = replace(hello, resume=None, stream=stream.resume_name)  # under its name: the version stays
        return await self._open_on(stack, url, again)

    async def _open_on(self, stack: AsyncExitStack, url: str, hello: Hello) -> tuple[ClientSocket, Message]:
        """Open a stream on this server, or on others that it names. Raises ClientError: they refuse it."""
        try:
            return await self._connect(stack, url, hello)
        except ClientError as error:
            if error.moved is None:
                raise
            message = error.moved
        stream = None if hello.resume is not None else message["stream"]
        next_hello = replace(hello, stream=stream, follows=False)
        urls: list[str] = message["urls"]
        for index, candidate in enumerate(urls):
            try:
                return await self._connect(stack, _with_path(candidate), next_hello)
            except ClientError as error:
                if index + 1 == len(urls) or error.code not in (*RETRYABLE_CODES, "hello"):
                    raise
        raise ClientError("moved", f"{url} names no server that has the stream", "try again later")

    async def _connect(self, stack: AsyncExitStack, url: str, hello: Hello) -> tuple[ClientSocket, Message]:
        async with AsyncExitStack() as opened:
            socket = await opened.enter_async_context(open_socket(url, self._tls))
            try:
                await socket.send(write_message(hello.as_message()))
                ready = await receive_ready(socket)
            except BaseException:
                await socket.cut()  # a closing handshake would end the stream if the server has resumed it
                raise
            stack.push_async_exit(opened.pop_all())
        return socket, ready

    async def _read(self, stream: RemoteStream) -> None:
        """Receive until the connection ends or its server is silent for too long."""
        if self._server_timeout_s is None:
            await stream.read()
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cut_if_silent, stream, self._server_timeout_s, tasks)
            await stream.read()
            tasks.cancel_scope.cancel()

    async def _cut_if_silent(self, stream: RemoteStream, server_timeout_s: float, tasks: TaskGroup) -> None:
        """Ping a silent server, and cut the connection if it stays silent."""
        pinged = False
        while (quiet_s := time.monotonic() - stream.answered_s) < server_timeout_s or not pinged:
            if quiet_s < server_timeout_s / 2:
                pinged = False
            elif not pinged:
                pinged = True
                tasks.start_soon(stream.probe)
            await anyio.sleep(server_timeout_s / CHECKS_PER_TIMEOUT)
        await stream.cut()


@asynccontextmanager
async def connect(
    url: str | Sequence[str] = "ws://127.0.0.1:8080",
    model: str | None = None,
    *,
    rate_hz: int | None = None,
    format: str = "f32",
    block: int | None = None,
    outputs: Iterable[str] | None = None,
    token: str | None = None,
    tls: ssl.SSLContext | None = None,
    reconnect_timeout_s: float = 0.0,
    server_timeout_s: float | None = None,
) -> AsyncGenerator[RemoteStream]:
    """Open a stream of a server, on asyncio or trio.

    url      ws://HOST:PORT or wss://HOST:PORT, path optional; of several, the first that accepts the stream
    model    its name in the server; the server's first model by default
    rate_hz  the rate of the samples, in and out: the server resamples if it is not the model's
    format   f32; pcm16: 16-bit samples, half the bytes; opus: packets of 10 ms at 48 kHz, for which client
             and server need PyAV
    block    the number of samples sent at once, a hint
    outputs  the names of the outputs to send
    token    a token, if the server has tokens
    tls      trusted certificates for wss; the system's authorities by default
    reconnect_timeout_s  above 0: if the connection is lost, try for this many seconds to resume over another one, with
             the same bits as a result. The server must keep checkpoints; frames not in one are kept here and sent again
    server_timeout_s  time without an answer to a ping after which a server counts as lost, as when its machine loses
             power, if ``reconnect_timeout_s`` is above 0. None: only a closed connection does
    Raises   ClientError: the server cannot be reached or refuses; ``code`` is the reason

        async with connect("ws://localhost:8080", "denoiser") as stream:
            await stream.send(samples)
            async for outputs in stream: ...
    """
    names = None if outputs is None else list(outputs)
    fields = {
        "model": model,
        "rate": rate_hz,
        "format": format,
        "block": block,
        "outputs": names,
        "token": token,
        "skip": SKIP_SAMPLES if format == "opus" else None,
        "follows": True,
        "confirms": reconnect_timeout_s > 0,
    }
    hello = Hello.of_message({"type": "hello", **fields})
    urls = [url] if isinstance(url, str) else url
    servers = Servers(urls, hello, tls, reconnect_timeout_s, server_timeout_s)
    failed: BaseException | None = None
    async with AsyncExitStack() as stack:
        socket, ready = await servers.open(stack)
        try:
            async with anyio.create_task_group() as tasks:
                stream = RemoteStream(socket, ready, format, tasks, reconnect_timeout_s > 0)
                tasks.start_soon(servers.run, stream, stack)
                yield stream
                tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            failed = unwrap_single_error(group)
            if isinstance(failed, BaseExceptionGroup):
                raise
    if failed is not None:
        raise failed


async def receive_ready(socket: ClientSocket) -> Message:
    """Receive the answer to a hello. Raises ClientError: it refuses, or does not answer in time."""
    message: bytes | str | None = None
    with anyio.move_on_after(ANSWER_TIMEOUT_S):
        message = await socket.receive()
    if not isinstance(message, str):
        raise ClientError("connection", "the server did not answer the hello", "is this a pulse server?")
    reply = read_message(message)
    if reply["type"] == "error":
        error = ClientError(reply["code"], reply["message"], reply["hint"])
        error.moved = reply if reply["code"] == "moved" else None
        raise error
    return reply


def _with_path(url: str) -> str:
    return url if PATH in url else url.rstrip("/") + PATH
