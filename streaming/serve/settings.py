"""The settings of a server, from a file; options of the command line override them."""

import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from math import inf
from pathlib import Path
from typing import Any, TypeVar, cast

from pulse.errors import InputError, LoadError
from pulse.support.record import record
from pulse.support.value_types import TomlTable, require_known, require_type

SettingsT = TypeVar("SettingsT")
SCRIPT, MODULE = "worklet.js", "module.wasm"
"""The files that run a model in a browser."""
SERVER, MODEL = "the server", "[[model]]"
"""The parts of a file, in errors."""


def require_range(
    settings: object, names: Iterable[str], prefix: str = "", allows_zero: bool = False
) -> None:
    """Raise InputError for a number that is infinite, or not above 0 (at least 0, if that is allowed)."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and not (0 < value < inf or (allows_zero and value == 0)):
            minimum = "at least" if allows_zero else "above"
            raise InputError(f"{prefix}{name} = {value:g}: must be {minimum} 0, and finite")


@record
class ModelSettings:
    """A model of a server.

    path     the path of a model, a recipe or a program; None for the built-in denoiser
    name     its name in the protocol; the file's name by default
    title    its name on the page; by default the model's own title
    streams  the most streams at once
    pulse    frames of a pulse; about 10 ms by default
    rate     the rate in Hz, if the model does not state it
    weights  the form in which weights are stored
    activations  rounding of the operands of weights: None, ``bf16`` or ``int8``; must equal ``weights``
    events   output -> detector and its parameters: {kind = "segments", threshold = 0.6}
    constants  the inputs that do not stream: name -> a number or a list
    web      folder with the model for browsers, as ``pulse build --target wasm32`` writes it: the page then runs it too
    """

    path: Path | None = None
    name: str = ""
    title: str = ""
    streams: int = 64
    pulse: int | None = None
    rate: int | None = None
    weights: str | None = None
    activations: str | None = None
    events: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    constants: Mapping[str, Any] = field(default_factory=dict[str, Any])
    web: Path | None = None

    def __post_init__(self) -> None:
        require_range(self, ("streams", "pulse", "rate"), f"{self.id}: ")
        missing = [name for name in (SCRIPT, MODULE) if self.web and not (self.web / name).is_file()]
        if missing:
            raise InputError(
                f"{self.id}: web = {self.web} has no {missing[0]}; pulse build --target wasm32 -o {self.web} writes it"
            )

    @property
    def id(self) -> str:
        """The model's name in the protocol."""
        return self.name or ("denoiser" if self.path is None else self.path.stem)


@record
class LimitSettings:
    """The limits for clients.

    message_bytes        bytes of a message
    messages_per_s       messages of one connection in each second of the clock
    speed                frames that a stream may send, as a multiple of its rate; more are held back
    window_s             seconds by which an input may be ahead of the steps
    idle_s               seconds without any message
    slow_s               seconds in which a client does not read
    hello_s              seconds until the hello
    streams_per_address  streams of one address at once
    """

    message_bytes: int = 1 << 18
    messages_per_s: int = 2000
    speed: float = 8.0
    window_s: float = 2.0
    idle_s: float = 60.0
    slow_s: float = 10.0
    hello_s: float = 10.0
    streams_per_address: int = 64


@record
class ServerSettings:
    """The settings of a server.

    models               the models; by default the built-in denoiser
    host, port           the address to listen on
    tokens               tokens that grant access; if empty, anyone who reaches the server may use it
    origins              origins of other pages that may use it
    certificate, key     files for TLS
    threads              the number of threads that step lanes; None: one for each core
    budget               the fraction of each thread that the p99 of all steps may fill; above 1 it is overbooked
    drain_s              seconds that streams may continue when the server ends
    checkpoints          a folder of checkpoints, which several servers may share; None for no checkpoints
    checkpoint_s         seconds of audio between two checkpoints of a stream
    keep_s               seconds that a checkpoint is kept after its stream is lost
    limits               the limits for clients
    """

    models: tuple[ModelSettings, ...] = (ModelSettings(),)
    host: str = "127.0.0.1"
    port: int = 8080
    tokens: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    threads: int | None = None
    budget: float = 0.8
    drain_s: float = 0.0
    checkpoints: Path | None = None
    checkpoint_s: float = 1.0
    keep_s: float = 300.0
    limits: LimitSettings = field(default_factory=LimitSettings)

    def __post_init__(self) -> None:
        names = [model.id for model in self.models]
        if not names:
            raise InputError(
                "the server's file lists no model; add [[model]], or leave the file out for the built-in denoiser"
            )
        if len(set(names)) < len(names):
            raise InputError(
                f"models {', '.join(names)}: two have the same name; set name in the server's file"
            )
        if (self.certificate is None) != (self.key is None):
            raise InputError("TLS needs both files, a certificate and its key")
        require_range(self, ("threads", "budget", "keep_s"))
        require_range(self, ("drain_s", "checkpoint_s"), allows_zero=True)
        require_range(self.limits, vars(self.limits), "limits.")


def read_settings(path: Path) -> ServerSettings:
    """Read settings from a TOML file; paths are relative to it. Raises InputError as ``read_toml``."""
    return read_toml(path, lambda table: read_table(table, path.parent))


def read_toml(path: Path, parse: Callable[[dict[str, Any]], SettingsT]) -> SettingsT:
    """Return the settings that a function makes from the table in a file.

    Raises InputError: it cannot be read, or a key or value is not valid
    """
    text = read_text(path, "settings in TOML")
    try:
        return parse(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not TOML: {error}") from None
    except (InputError, LoadError) as error:
        raise InputError(f"{path}: {error}") from None


def read_table(table: Mapping[str, Any], folder: Path) -> ServerSettings:
    """Read settings from a table; paths are relative to the folder.

    Raises LoadError: an unknown key, or a value of another type; InputError: settings that do not fit together
    """
    entries = dict(table)
    models = take_entry(entries, "model", Sequence[TomlTable], [{}], SERVER)
    limits = fill(LimitSettings(), take_entry(entries, "limits", TomlTable, {}, SERVER), "limits")
    _resolve_paths(entries, ("certificate", "key", "checkpoints"), folder, SERVER)
    settings = ServerSettings(tuple(_model(model, folder) for model in models), limits=limits)
    return fill(settings, entries, SERVER, ("models", "limits"))


def read_tokens(path: Path) -> tuple[str, ...]:
    """Read tokens from a file, one per line. Raises InputError: it cannot be read, or there are none."""
    tokens = tuple(line.strip() for line in read_text(path, "tokens").splitlines() if line.strip())
    if not tokens:
        raise InputError(f"{path}: contains no token; write one per line")
    return tokens


def read_text(path: Path, content: str) -> str:
    """Read a text file; ``content`` is what it should contain. Raises InputError: it cannot be read, or is not text."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder; give the file of {content} in it") from None
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); check the path and its permissions"
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not text in UTF-8; give a file of {content}") from None


def _model(table: Mapping[str, Any], folder: Path) -> ModelSettings:
    entries = dict(table)
    _resolve_paths(entries, ("path", "web"), folder, MODEL)
    events = take_entry(entries, "events", Mapping[str, TomlTable], {}, MODEL)
    constants = take_entry(entries, "constants", TomlTable, {}, MODEL)
    return fill(ModelSettings(events=events, constants=constants), entries, MODEL)


def _resolve_paths(entries: dict[str, Any], keys: Iterable[str], folder: Path, subject: str) -> None:
    for key in keys:
        if key in entries:
            require_type(key, entries[key], str, subject)
            entries[key] = folder / entries[key]


def take_entry(entries: dict[str, Any], key: str, hint: object, default: Any, subject: str) -> Any:
    """Remove a key and return its value. Raises LoadError: it has another type."""
    value = entries.pop(key, default)
    require_type(key, value, hint, subject)
    return value


def fill(
    settings: SettingsT, table: Mapping[str, Any], subject: str, others: Collection[str] = ()
) -> SettingsT:
    """Create settings from the values of a table. Raises LoadError: an unknown key, or a wrong type.

    others  fields that are not keys of the table
    """
    types = {field.name: field.type for field in fields(cast("Any", settings)) if field.name not in others}
    require_known(table, types, subject, "key")
    values: dict[str, Any] = {}
    for key, value in table.items():
        require_type(key, value, types[key], subject)
        as_declared = float(value) if types[key] is float else value
        values[key] = tuple(cast("list[Any]", value)) if isinstance(value, list) else as_declared
    return replace(cast("Any", settings), **values)
