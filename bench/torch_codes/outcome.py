"""The outcome of one model: a row of the table."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class ModelOutcome:
    """A row of the table.

    packages   the versions that were run
    change     the difference from the author's code; empty if there is none
    stage      the last one reached: built, exported, pulsified, compiled, streamed
    reason     the error of the next stage
    error      the largest difference of the stream from the module, as a share of the module's largest value
    delays     delays of the outputs, in their frames
    min_delay  a lower bound of the first output's delay in any stream of this pulse; None for integers
    exported   how: the module itself, or one of its methods
    convert_s  seconds from the module to a program, its export and its comparison in them
    export_s   the part of ``from_torch``
    step_us    microseconds of a step, median
    realtime   seconds of computing for a second of sound
    author     the same for the author's code: its own streaming mode, or else the module on the whole input
    twin       the largest difference of the stream from the author's own streaming mode; None: it has none
    onnxruntime  how many times longer a step takes there, in alternating rounds; None: the exported model does not run
                 there, or returns another result
    """

    name: str
    packages: dict[str, str]
    change: str = ""
    stage: str = "built"
    reason: str = ""
    pulse: int = 0
    error: float = 0.0
    delays: tuple[int, ...] = ()
    min_delay: int | None = None
    exported: str = "forward"
    convert_s: float = 0.0
    export_s: float = 0.0
    step_us: float = 0.0
    realtime: float = 0.0
    author: float | None = None
    twin: float | None = None
    onnxruntime: float | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "ModelOutcome":
        """Return the outcome of the data of ``json``."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
        }
        return cls(**values)

    def json(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        return asdict(self)
