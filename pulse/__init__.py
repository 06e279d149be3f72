"""Runs offline neural audio models on live audio, pulse by pulse, with exact results.

model      = pulse.load("denoise.onnx")                 # LoadedModel  from a file, a recipe …
typed      = model.analyse()                            # TypedModel   every dtype and shape known
simplified = typed.declutter()                          # TypedModel   same meaning, less of it
pulsed     = simplified.pulsify(symbol="T", pulse=160)  # PulsedModel  fixed-size pulses
program    = pulsed.compile()                           # Program      immutable, shared by streams
state      = program.spawn()                            # State        one for each stream
y          = state.step(x)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pulse.errors import (
    CompileError,
    CopyError,
    DimError,
    DivergenceError,
    FactError,
    FaultError,
    InputError,
    LoadError,
    NotProvedError,
    PulseError,
    PulseWarning,
    PulsifyError,
    WriteError,
)
from pulse.support.collector import fewer_collections
from pulse.version import __version__

if TYPE_CHECKING:
    from pulse import build, front, tensorflow
    from pulse.api import load, stream, verify
    from pulse.chains import Stage, chain
    from pulse.chunks.chunking import Chunking
    from pulse.costs.counting import cost_report
    from pulse.models import TypedModel
    from pulse.onnx.registry import operator
    from pulse.program.program import Program
    from pulse.torch import from_torch

__all__ = [
    "Chunking",
    "CompileError",
    "CopyError",
    "DimError",
    "DivergenceError",
    "FactError",
    "FaultError",
    "InputError",
    "LoadError",
    "NotProvedError",
    "Program",
    "PulseError",
    "PulseWarning",
    "PulsifyError",
    "Stage",
    "TypedModel",
    "WriteError",
    "__version__",
    "build",
    "chain",
    "cost_report",
    "from_torch",
    "front",
    "load",
    "operator",
    "stream",
    "tensorflow",
    "verify",
]

_HOMES = {
    "Chunking": "pulse.chunks.chunking",
    "Program": "pulse.program.program",
    "Stage": "pulse.chains",
    "TypedModel": "pulse.models",
    "chain": "pulse.chains",
    "cost_report": "pulse.costs.counting",
    "from_torch": "pulse.torch",
    "load": "pulse.api",
    "operator": "pulse.onnx.registry",
    "stream": "pulse.api",
    "verify": "pulse.api",
}
"""The modules of names other than errors, imported on first use so that ``import pulse`` is fast."""


def __getattr__(name: str) -> Any:
    """Return a function or class of ``_HOMES``, or a module of this package."""
    missing = AttributeError(f"module 'pulse' has no attribute {name!r}")
    if name.startswith("_"):
        raise missing
    with fewer_collections():
        if name != "Program":
            # registers the formats; a program of a file needs no reader of models
            import_module("pulse.formats")
        if name in _HOMES:
            value = globals()[name] = getattr(import_module(_HOMES[name]), name)
            return value
    try:
        return import_module(f"pulse.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"pulse.{name}":
            raise
        raise missing from None


def __dir__() -> list[str]:
    """Return all public names, imported yet or not."""
    return sorted({*globals(), *__all__})
