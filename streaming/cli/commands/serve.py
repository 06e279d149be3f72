"""pulse serve: models for many clients, over WebSockets."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pulse.support.record import record
from streaming.cli.options import extra_for, takes_groups

if TYPE_CHECKING:
    from streaming.serve.settings import ServerSettings


@record
class ServerOptions:
    """Options of a server, which take precedence over its file."""

    host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Address to listen on. Default: 127.0.0.1."),
    ] = None
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=0, max=65535, help="Port. Default: 8080; 0: any free one."),
    ] = None
    streams: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Maximum number of simultaneous streams of each model. Default: 64."
        ),
    ] = None
    tokens: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file with one token per line; clients need one."),
    ] = None
    origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Origin of web pages that may use the server. May be repeated."),
    ] = None
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Certificate for TLS, with --key."),
    ] = None
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="Key of the certificate.")] = None
    threads: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Threads that step streams. Default: all cores."),
    ] = None
    drain: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="How long open streams may continue after the first Ctrl-C or SIGTERM. Default: 0.",
        ),
    ] = None
    checkpoints: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of checkpoints, shared by servers: if this one is lost, clients continue on another one.",
        ),
    ] = None

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
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Settings of the server (.toml)."),
    ] = None,
    server: ServerOptions,
    log_level: Annotated[
        str,
        typer.Option(metavar="LEVEL", help="debug, info, warning or error; lines of JSON on stderr."),
    ] = "info",
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
