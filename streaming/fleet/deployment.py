"""Deployment: a version of the models in a fleet and its number of workers, as set in a file."""

from pathlib import Path
from typing import Any

from pulse.errors import InputError
from pulse.support.record import record
from pulse.support.value_types import TomlTable
from streaming.fleet.stream_name import VERSION_NAME
from streaming.serve.settings import (
    SERVER,
    ServerSettings,
    fill,
    read_table,
    read_toml,
    require_range,
    take_entry,
)


@record
class Deployment:
    """A version of the models, and its workers.

    version     the name of the version
    server      the settings of each worker; port 0: any free one
    weight      its share of new streams, relative to other versions; 0 in a running fleet: it ends with its last stream
    min_workers  the minimum number of workers
    max_workers  the maximum number of workers
    load        the fraction of the budget of steps that streams should fill: workers are added above it
    down_after_s  seconds of lower load before a worker is removed
    cpus        the CPUs of Ray that a worker counts as
    copies      the number of nodes that get each checkpoint
    url         the URL at which clients reach a worker: {host} and {port} are replaced
    moved_per_s  streams that a draining worker hands over per second
    """

    version: str = "1"
    server: ServerSettings = ServerSettings(port=0)
    weight: float = 1.0
    min_workers: int = 2
    max_workers: int = 8
    load: float = 0.6
    down_after_s: float = 60.0
    cpus: float = 1.0
    copies: int = 1
    url: str = ""
    moved_per_s: float = 50.0

    def __post_init__(self) -> None:
        if not VERSION_NAME.fullmatch(self.version):
            raise InputError(f"version {self.version!r}: use up to 32 letters, digits, - or _")
        if not 1 <= self.min_workers <= self.max_workers:
            raise InputError(
                f"min_workers = {self.min_workers}, max_workers = {self.max_workers}: there must be "
                "1 <= min_workers <= max_workers"
            )
        if not 0 < self.load <= 1:
            raise InputError(f"load = {self.load:g}: must be above 0 and at most 1")
        require_range(self, ("down_after_s", "weight"), allows_zero=True)
        require_range(self, ("cpus", "copies", "moved_per_s"))
        if self.server.checkpoints is not None:
            raise InputError("checkpoints: in a fleet the other machines hold them; leave the folder out")
        for model in self.server.models:
            if model.events:
                raise InputError(
                    f"{model.id}: checkpoints do not contain event detectors; a fleet needs checkpoints"
                )
        if self.url:
            try:
                self.address("host", 1)
            except (KeyError, IndexError, ValueError):
                raise InputError(f"url = {self.url!r}: only {{host}} and {{port}} are replaced") from None

    def address(self, host: str, port: int) -> str:
        """Return the address at which clients reach a worker."""
        if self.url:
            return self.url.format(host=host, port=port)
        name = f"[{host}]" if ":" in host else host
        return f"ws{'s' if self.server.certificate else ''}://{name}:{port}"


def read_deployment(path: Path) -> Deployment:
    """Read a deployment from a TOML file: a server's file with a table [fleet].

    Raises InputError: the file cannot be read, or a setting is not valid
    """

    def parse(table: dict[str, Any]) -> Deployment:
        settings = take_entry(table, "fleet", TomlTable, {}, SERVER)
        server = read_table({"port": 0, **table}, path.parent)
        return fill(Deployment(server=server), settings, "[fleet]", ("server",))

    return read_toml(path, parse)
