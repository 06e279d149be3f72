"""Runs a server with its settings, for the command line."""

import logging
from collections.abc import Sequence
from importlib.util import find_spec
from ipaddress import ip_address

import anyio

from pulse.errors import InputError
from pulse.support.cores import core_count
from streaming.serve.logs import log_to_stderr
from streaming.serve.server import Server, listen, url_of
from streaming.serve.service import HostedProgram, Service
from streaming.serve.settings import ServerSettings

LEVELS = ("debug", "info", "warning", "error")
logger = logging.getLogger("pulse.serve")


def run_server(settings: ServerSettings, programs: Sequence[HostedProgram], level: str) -> None:
    """Serve until a signal. Raises InputError: invalid settings."""
    if level not in LEVELS:
        raise InputError(f"--log-level {level}: the levels are {', '.join(LEVELS)}")
    log_to_stderr(level)
    service = Service(settings, programs, settings.threads or core_count())
    listening = listen(settings.host, settings.port, settings.limits.slow_s)
    server = Server(service, listening)
    names = [model.name for model in service.models]
    url = url_of(listening, settings.certificate is not None)
    if not settings.tokens and not ip_address(listening.getsockname()[0]).is_loopback:
        logger.warning("everyone who can reach %s may use it: give tokens, see docs/serve.md", url)
    logger.info("serving %s at %s", ", ".join(names), url, extra={"models": names, "url": url})
    anyio.run(server.serve_streams, backend_options=loop_options())


def loop_options() -> dict[str, bool]:
    """Return the options of anyio for a server: the event loop of uvloop, if it is installed."""
    return {"use_uvloop": find_spec("uvloop") is not None}
