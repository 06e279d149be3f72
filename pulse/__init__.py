"""Runs offline neural audio models on live audio, pulse by pulse, with exact results.

model   = pulse.load("denoise.onnx")            # Loaded        from a file, a recipe …
typed   = model.analyse()                       # TypedModel    every dtype and shape known
lean    = typed.declutter()                     # TypedModel    same meaning, less of it
pulsed  = lean.pulsify(symbol="T", pulse=160)   # PulsedModel   fixed-size pulses
program = pulsed.compile()                      # Program       immutable, shared by streams
state   = program.spawn()                       # State         one for each stream
y       = state.step(x)
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from pulse import formats as formats  # registers them
from pulse.api import load, stream, verify
from pulse.chain import Stage, chain
from pulse.chunks.chunking import Chunking
from pulse.costs.counting import cost_report
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
from pulse.models import TypedModel
from pulse.onnx.registry import operator
from pulse.torch import from_torch
from pulse.version import __version__

if TYPE_CHECKING:
    from pulse import front, tensorflow

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
    "PulseError",
    "PulseWarning",
    "PulsifyError",
    "Stage",
    "TypedModel",
    "WriteError",
    "__version__",
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


def __getattr__(name: str) -> ModuleType:
    """``pulse.front`` and ``pulse.tensorflow``, imported when they are asked for."""
    if name in ("front", "tensorflow"):
        return import_module(f"pulse.{name}")
    raise AttributeError(f"module 'pulse' has no attribute {name!r}")
