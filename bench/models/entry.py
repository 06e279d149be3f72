"""One row of the bench: a model, its pulse, and the forms of it that its author wrote."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import onnx

import pulse
from bench.models.explicit import Explicit
from pulse.program.program import Program

Source: TypeAlias = onnx.ModelProto | Path


@dataclass(frozen=True)
class Target:
    """How many times slower the fastest form of a peer should be, by p50; None: no target."""

    onnxruntime: float | None = None
    tract: float | None = None
    roofline: float | None = None


@dataclass(frozen=True, eq=False)
class Entry:
    """One model at one pulse.

    key     its name in the command line
    source  the input of this project: an offline model, or one that its author made streaming
    offline  whether ``source`` is an offline model, which other runtimes may pulsify
    twin    the author's explicit-state form of the same pulse; None if there is none
    arguments  further ones of ``pulse.load``
    scale   standard deviation of the normal noise that is its input
    rate_hz  frames of its input per second
    """

    key: str
    title: str
    pulse: int
    source: Callable[[], Source]
    offline: bool = True
    twin: Callable[[], Explicit] | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    scale: float = 1.0
    rate_hz: float = 100.0
    target: Target = Target()

    @property
    def name(self) -> str:
        """The title with the pulse."""
        return f"{self.title}, {self.pulse}"

    def program(self, source: Source) -> Program:
        """Return the program of a source. Raises PulseError: the source cannot be loaded, pulsified or compiled."""
        return pulse.stream(pulse.load(source, **self.arguments), self.pulse)
