"""The command-line options of the parameters of ``pulse.stream`` and of live runs."""

from collections.abc import Mapping
from shlex import quote
from typing import Any, cast

OPTIONS = {
    "pulse": "--pulse",
    "stage": "--stage",
    "quality": "--quality",
    "symbol": "--symbol",
    "inputs": "--input",
    "outputs": "--keep",
    "backend": "--backend",
    "max_context": "--max-context",
    "constants": "--constant",
    "states": "--state",
    "context": "--context",
    "axes": "--axis",
    "delay": "--delay",
    "initial": "--initial",
    "weights": "--weights",
    "activations": "--activations",
    "threads": "--threads",
    "specialise": "--specialise",
    "min_gain": "--min-gain",
    "budget": "--budget",
    "signature": "--signature",
    "example": "--example",
    "dynamic": "--dynamic",
    "method": "--method",
    "ignore_value_info": "--ignore-value-info",
    "opset": "--opset",
    "lengths": "--length",
    "long": "--long",
    "block_frames": "--block",
    "headroom_s": "--headroom",
    "policy": "--policy",
    "engine": "--engine",
    "priority": "--priority",
    "reconnect": "--reconnect",
    "routes": "--in",
    "input": "--mic",
    "output": "--speaker",
    "raw": "--raw",
    "encoding": "--subtype",
    "rate": "--rate",
    "events": "--events",
    "event": "--event",
}
"""Parameter -> option. An option of a mapping takes ``name=value`` and is repeated; ``none`` is the empty one."""


def as_options(parameter: str, example: Any = None) -> str:
    """Return ``--input``, or ``--input x=1,80,T`` with an example."""
    option = OPTIONS[parameter]
    if example is None or example is True:
        return option
    if isinstance(example, Mapping):
        mapping = cast("Mapping[str, Any]", example)
        pairs = [f"{name}={_value(value)}" for name, value in mapping.items()]
        return " ".join(f"{option} {quote(pair)}" for pair in pairs or ["none"])
    return f"{option} {quote(str(example))}"


def _value(value: Any) -> str:
    """Return a value of a mapping: ``2:T`` for the axis 2 with its symbol."""
    if not isinstance(value, Mapping):
        return str(value)
    return ",".join(f"{axis}:{symbol}" for axis, symbol in cast("Mapping[Any, Any]", value).items())
