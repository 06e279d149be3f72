"""pulse serve: models for many clients, over WebSockets."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pulse.support.record import record
from streaming.cli.options import extra_for, option, takes_groups

if TYPE_CHECKING:
    from streaming.serve.settings import ServerSettings


@record
class ServerOptions:
    """Options of a server, which take precedence over its file."""

    host: str | None = option("Address to listen on. Default: 127.0.0.1.", metavar="ADDRESS")
    port: int | None = option("Port. Default: 8080; 0: any free one.", metavar="PORT", min=0, max=65535)
    streams: int | None = option(
        "Maximum number of simultaneous streams of each model. Default: 64.", metavar="N", min=1
    )
    tokens: Path | None = option("A file with one token per line; clients need one.", metavar="FILE")
    origin: list[str] | None = option(
        "Origin of web pages that may use the server. May be repeated.", metavar="ORIGIN"
    )
    certificate: Path | None = option("Certificate for TLS, with --key.", metavar="FILE")
    key: Path | None = option("Key of the certificate.", metavar="FILE")
    threads: int | None = option("Threads that step streams. Default: all cores.", metavar="N", min=1)
    drain: float | None = option(
        "How long open streams may continue after the first Ctrl-C or SIGTERM. Default: 0.",
        metavar="SECONDS",
        min=0,
    )
    checkpoints: Path | None = option(
        "Folder of checkpoints, shared by servers: if this one is lost, clients continue on another one.",
        metavar="DIR",
    )

    def apply(self, settings: "ServerSettings", models: Sequence[Path]) -> "ServerSettings":
        """Return the settings with these options, and with these models if there are any.

        Raises InputError: a setting is not valid, or the file of tokens cannot be read
        """
        from streaming.serve.settings import ModelSettings, read_tokens

        options = {
            "models": tuple(map(ModelSettings, models)),
            "host": self.host,
            "port": self.port,
            "tokens": self.tokens and read_tokens(self.tokens),
            "origins": self.origin and tuple(self.origin),
            "certificate": self.certificate,
            "key": self.key,
            "threads": self.threads,
            "drain_s": self.drain,
            "checkpoints": self.checkpoints,
        }
        settings = replace(
            settings, **{name: value for name, value in options.items() if value not in (None, (), [])}
        )
        if self.streams is None:
            return settings
        return replace(
            settings, models=tuple(replace(model, streams=self.streams) for model in settings.models)
        )


@takes_groups
def serve(
    models: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="MODEL",
            help="Model files, recipes or programs. Default: those of --config, else the built-in denoiser.",
        ),
    ] = None,
    *,
    config: Path | None = option("Settings of the server (.toml).", metavar="FILE"),
    server: ServerOptions,
    log_level: str = option(
        "debug, info, warning or error; lines of JSON on stderr.", metavar="LEVEL", default="info"
    ),
) -> None:
    """Serve models to browsers and programs: one stream over a WebSocket for each client.

    Open the printed address: its page streams your microphone. Programs use pulse.client, or the protocol in
    docs/protocol.md. Clients share the weights; their streams are stepped together in lanes.

    Examples:
      pulse serve                                      the built-in denoiser
      pulse serve model.onnx gtcrn.toml --streams 200
      pulse serve --config server.toml
      pulse serve --host 0.0.0.0 --tokens tokens.txt   clients need a token
      pulse serve --certificate my.crt --key my.key    over TLS
    """
    with extra_for("a server", "serve"):
        from streaming.serve.running import run_server
    from streaming.serve.settings import ServerSettings, read_settings

    settings = server.apply(ServerSettings() if config is None else read_settings(config), models or [])
    run_server(settings, log_level)
