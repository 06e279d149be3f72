"""The command-line options of the parameters of ``pulse.stream`` and of live runs."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib import import_module
from inspect import signature
from shlex import quote
from typing import Any, cast

from pulse.support.wording import Spelling

RENAMED = {
    "inputs": "--input",
    "outputs": "--keep",
    "constants": "--constant",
    "states": "--state",
    "axes": "--axis",
    "lengths": "--length",
    "block_frames": "--block",
    "headroom_s": "--headroom",
    "routes": "--in",
    "input": "--mic",
    "output": "--speaker",
    "encoding": "--subtype",
}
"""Parameter -> option, where the names differ."""

COMMANDS = ("compile", "run", "dump", "convert", "check")
"""The commands to which a message refers for an option that its own command lacks, in this order."""


def options_of(command: Callable[..., None]) -> Spelling:
    """Return ``as_options`` for a command; an option of others comes with one of them: ``--backend … of pulse run``."""

    def spell_option(parameter: str, example: Any = None) -> str:
        text, option = as_options(parameter, example), option_of(parameter)
        if option in _option_names(command):
            return text
        commands = {name: getattr(import_module(f"streaming.cli.commands.{name}"), name) for name in COMMANDS}
        owner = next((name for name, other in commands.items() if option in _option_names(other)), None)
        return text if owner is None else f"{text} of pulse {owner}"

    return spell_option


def _option_names(command: Callable[..., None]) -> set[str]:
    """Return the names of a command's options."""
    return {
        name
        for parameter in signature(command).parameters.values()
        for option in getattr(parameter.annotation, "__metadata__", ())
        for declared in option_names(parameter.name, option)
        for name in declared.split("/")
    }


def option_names(parameter: str, option: Any) -> list[str]:
    """Return typer's names of an option: those that it declares, or its parameter's.

    typer keeps the first declared name of an annotation as the option's default.
    """
    declared = (option.default, *(getattr(option, "param_decls", None) or ()))
    names = [name for name in declared if isinstance(name, str)]
    return names or [f"--{parameter.replace('_', '-')}"]


def names_given(options: Any) -> list[str]:
    """Return the options of a group that do not have their default, as the user gives them.

    options  the dataclass of the group, as the command receives it
    """
    names: list[str] = []
    for field in fields(options):
        if getattr(options, field.name) != field.default:
            *_, name = option_names(field.name, field.metadata["option"])[0].split("/")
            names.append(name)
    return names


def option_of(parameter: str) -> str:
    """Return the option of a parameter."""
    return RENAMED.get(parameter, f"--{parameter.replace('_', '-')}")


def as_options(parameter: str, example: Any = None) -> str:
    """Return ``--input``, or ``--input x=1,80,T`` with an example.

    The option of a mapping takes ``name=value`` and is repeated; ``none`` is the empty one. False is ``--no-check``.
    """
    option = option_of(parameter)
    if example is None or example is True:
        return option
    if example is False:
        return option.replace("--", "--no-", 1)
    if isinstance(example, Mapping):
        mapping = cast("Mapping[str, Any]", example)
        pairs = [f"{name}={_mapping_value_text(value)}" for name, value in mapping.items()]
        return " ".join(f"{option} {quote(pair)}" for pair in pairs or ["none"])
    return f"{option} {quote(str(example))}"


def _mapping_value_text(value: Any) -> str:
    """Return a value of a mapping as text: ``2:T`` for the axis 2 with its symbol."""
    if not isinstance(value, Mapping):
        return str(value)
    return ",".join(f"{axis}:{symbol}" for axis, symbol in cast("Mapping[Any, Any]", value).items())
