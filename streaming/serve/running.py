"""Opens the models of a server, and runs it with its settings."""

import logging
import ssl
from importlib.util import find_spec
from ipaddress import ip_address

import anyio

from pulse.chunks.chunking import Chunking
from pulse.errors import InputError
from pulse.rounding import Rounding
from pulse.support.cores import core_count
from pulse.support.wording import spell
from streaming.opening.opened_model import OpenedModel
from streaming.opening.source import load_source
from streaming.serve.logs import log_to_stderr
from streaming.serve.server import Server, listen, url_of
from streaming.serve.service import HostedProgram, Service
from streaming.serve.settings import ServerSettings, read_text

LEVELS = ("debug", "info", "warning", "error")
logger = logging.getLogger("pulse.serve")


def open_programs(settings: ServerSettings) -> list[HostedProgram]:
    """Return the models of a server, compiled. Raises PulseError: a model cannot be read or compiled."""
    programs: list[HostedProgram] = []
    for model in settings.models:
        source = load_source(model.path, chunking=Chunking(pulse=model.pulse))
        opened = OpenedModel.of(source, model.rate, model.pulse, builtin=model.path is None)
        program = opened.compile(rounding=Rounding(model.weights, model.activations))
        programs.append((model, program, opened.rate_hz))
    return programs


def require_certificate(settings: ServerSettings) -> None:
    """Raise InputError if the files for TLS cannot be read, or are not a certificate and its key."""
    certificate, key = settings.certificate, settings.key
    if certificate is None or key is None:
        return
    for path in (certificate, key):
        read_text(path, "TLS in PEM")
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        raise InputError(
            f"{certificate}, {key}: are not a certificate and its key in PEM ({error.strerror or error}); give the two "
            "files of one certificate"
        ) from None


def run_server(settings: ServerSettings, level: str) -> None:
    """Open the models and serve them until a signal. Raises PulseError: invalid settings, or a model."""
    if level not in LEVELS:
        raise InputError(f"{spell('log_level', level)}: the levels are {', '.join(LEVELS)}")
    require_certificate(settings)
    programs = open_programs(settings)
    service = Service(settings, programs, settings.threads or core_count())
    listening = listen(settings.host, settings.port, settings.limits.slow_s)
    log_to_stderr(level)
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
