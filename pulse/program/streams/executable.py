"""The half of a program that its streams read; ``pulse.program`` describes the halves."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar, Self

from pulse.errors import LoadError
from pulse.interface import Interface
from pulse.pulsify.stream_lengths import longest_stream
from pulse.rounding import Rounding
from pulse.version import __version__

_WRITER = "pickled by"


class Executable(ABC):
    """The ports, lengths and identity of a program, which its streams read. Immutable.

    Copying returns the program itself. It pickles without addresses, and is linked again when unpickled.
    """

    threads: int = 1
    """The number of threads that may share a step of a stream."""
    NOT_PICKLED: ClassVar[tuple[str, ...]] = ()
    """Attributes that are valid in this process only, or are computed again on demand."""

    def __init__(self, model: Interface, rounding: Rounding = Rounding()) -> None:
        self.model = model
        self.form = rounding.form
        """The form of stored weights: ``f32``, ``bf16`` or ``int8``."""
        self.activations = rounding.activation_form or "f32"
        """The form to which the operands of the weights are rounded, else ``f32``."""
        self.inputs = model.inputs
        self.outputs = model.outputs
        self.pulse = model.pulse
        self.limit = longest_stream(model.symbol, model.assumptions)
        """Maximum number of frames of the symbol; longer streams are refused; None: any number."""

    @property
    def helpers(self) -> tuple[int, ...]:
        """The native ids of the threads that share steps with the caller's thread; the first stream starts them."""
        return ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the attributes of ``NOT_PICKLED``."""
        kept = {name: value for name, value in vars(self).items() if name not in self.NOT_PICKLED}
        return {**kept, _WRITER: __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Raises LoadError: another version of pulse wrote it."""
        parts = dict(state)
        if (writer := parts.pop(_WRITER)) != __version__:
            raise LoadError(
                f"the program was pickled by pulse {writer}, and this is pulse {__version__}: compile the model here"
            )
        for name, value in parts.items():
            setattr(self, name, value)

    @property
    @abstractmethod
    def backend(self) -> str:
        """The name of what runs it: ``numba``, ``numpy``, or a runtime of a written file."""

    @cached_property
    def fingerprint(self) -> bytes:
        """A digest of model, pulse, backend, form of weights, layout of the state and version of pulse.

        Snapshots must match it.
        """
        return self._digest()

    @abstractmethod
    def _digest(self) -> bytes: ...

    def steps(self, end: int) -> int:
        """Return how many pulses a stream of ``end`` frames of the symbol takes, its tail included."""
        symbol, pulses = self.model.symbol, -(-end // self.pulse)
        for port in self.outputs:
            if port.streams:
                total = max(0, port.length.eval({symbol: end}))
                pulses = max(pulses, -(-(port.delay + total) // port.frames) if total else 0)
        for wire in self.model.awaited_wires():
            pulses = max(pulses, -(-(wire.offset + max(0, wire.length.eval({symbol: end}))) // wire.frames))
        return pulses
