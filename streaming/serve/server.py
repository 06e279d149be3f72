"""The sockets of a server: uvicorn, with other defaults."""

import errno
import socket
import sys
from contextlib import ExitStack
from types import FrameType

import uvicorn

from pulse.errors import InputError
from pulse.support.wording import spell
from streaming.serve.app import make_app
from streaming.serve.service import Service
from streaming.serve.stream_protocol import StreamProtocol

PING_TIMEOUT_S = 20.0
"""The seconds between pings of a WebSocket, and the longest wait for the answer."""
MAX_BACKLOG = 512
"""Connections that wait to be accepted; the system refuses more."""


class Server(uvicorn.Server):
    """Ends streams with a message before uvicorn closes their sockets."""

    def __init__(self, service: Service, listening: socket.socket) -> None:
        settings = service.settings
        super().__init__(
            uvicorn.Config(
                make_app(service),
                ws=StreamProtocol,
                ws_max_size=settings.limits.message_bytes,
                ws_ping_interval=PING_TIMEOUT_S,
                ws_ping_timeout=PING_TIMEOUT_S,
                ws_per_message_deflate=False,
                ssl_certfile=settings.certificate,
                ssl_keyfile=settings.key,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=5,
                timeout_keep_alive=10,
                h11_max_incomplete_event_size=1 << 16,
            )
        )
        self._service = service
        self._listening = listening

    async def serve_streams(self) -> None:
        """Serve until a signal or ``should_exit``."""
        await self.serve(sockets=[self._listening])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal, end at once at the second; neither is an error."""
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain, then end."""
        await self._service.drain()
        await super().shutdown(sockets)


def listen(host: str, port: int, slow_s: float) -> socket.socket:
    """Open a listening socket; port 0 for any. Raises InputError: the address is in use, or not of this machine."""
    with ExitStack() as stack:
        try:
            family, socket_type, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[
                0
            ]
            listening = stack.enter_context(socket.socket(family, socket_type, proto))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if (
                sys.platform == "linux"
            ):  # for clients that do not read, or are gone: inherited by their sockets
                listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(2e3 * slow_s + 5e3))
            listening.bind(address)
            listening.listen(MAX_BACKLOG)
        except (OSError, OverflowError, UnicodeError) as error:
            raise InputError(_describe_refusal(host, port, error)) from None
        stack.pop_all()
    return listening


def _describe_refusal(host: str, port: int, error: Exception) -> str:
    """Describe why an address cannot be listened on, and what to do."""
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, socket.gaierror | UnicodeError):
        return (
            f"host {host}: not an IP address, and the name does not resolve; give an address of this machine with "
            f"{spell('host')}"
        )
    if number == errno.EADDRINUSE:
        return (
            f"port {port} of {host}: is in use, perhaps by another server; end that one, or choose another port with "
            f"{spell('port')} (0: any free one)"
        )
    if number == errno.EADDRNOTAVAIL:
        return (
            f"host {host}: is not an address of this machine; choose one with {spell('host')}, such as 127.0.0.1, or "
            "0.0.0.0 for all of them"
        )
    if number in (errno.EACCES, errno.EPERM):
        return f"port {port} of {host}: this user may not listen on it; choose one from 1024 on with {spell('port')}"
    reason = (isinstance(error, OSError) and error.strerror) or error
    return f"{host}, port {port}: {reason}; choose others with {spell('host')} and {spell('port')}"


def url_of(listening: socket.socket, secure: bool) -> str:
    """Return the URL of the server for a browser."""
    host, port = listening.getsockname()[:2]
    name = f"[{host}]" if ":" in host else host
    return f"http{'s' if secure else ''}://{name}:{port}"
