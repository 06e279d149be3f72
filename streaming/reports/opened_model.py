"""A model and the rate of its stream, with which every report begins."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pulse.interface import Interface, Port
from pulse.loading.loaded_model import LoadedModel
from pulse.metadata import RATE_KEY
from pulse.program.program import Program
from pulse.rounding import Rounding
from pulse.support.record import record

if TYPE_CHECKING:
    from pulse.models import PulsedModel, TypedModel
    from pulse.program.backends.registry import Prepare
    from pulse.pulsify.driver import PulsifyOptions
    from pulse.pulsify.receptive_fields import Receptive

PULSE_S = 0.01
"""The minimum of audio in a pulse if none is given."""
RATE_ORIGINS = {
    "model": "from the model's metadata",
    "option": "as given",
    "builtin": "that of the built-in model",
    "default": "assumed; --rate sets another",
}


@record
class OpenedModel:
    """A model, the rate of its frames, and how it is converted to pulses.

    model      the model as loaded
    rate_hz    frames of the symbol per second; None if unknown
    rate_from  one of ``RATE_ORIGINS``; None without a rate
    pulse      frames in each step; by default the smallest pulse of at least 10 ms, if the rate is known
    options    the other options of ``LoadedModel.pulsify``
    """

    model: LoadedModel
    rate_hz: int | None
    rate_from: str | None
    pulse: int | None = None
    options: "PulsifyOptions | None" = None

    @property
    def typed_model(self) -> "TypedModel":
        """The decluttered model."""
        return self.model.typed_model

    @property
    def title(self) -> str:
        """The model's name."""
        return self.model.title

    def pulsify(self) -> "PulsedModel":
        """Convert it to pulses. Raises PulsifyError: an op cannot stream, or the pulse does not fit."""
        return self.model.pulsify(self.pulse, **self._options())

    def compile(
        self,
        backend: str = "numba",
        rounding: Rounding = Rounding(),
        prepare: "Prepare | None" = None,
    ) -> Program:
        """Compile it in such pulses; see ``LoadedModel.compile``. Raises PulseError: it cannot be compiled."""
        return self.model.compile_rounded(rounding, self.pulse, backend, prepare, **self._options())

    def _options(self) -> "PulsifyOptions":
        return {"min_pulse": int((self.rate_hz or 0) * PULSE_S), **(self.options or {})}

    @property
    def rate_metadata(self) -> dict[str, str]:
        """The rate as files of models state it; empty if it is only assumed."""
        is_known = self.rate_hz is not None and self.rate_from != "default"
        return {RATE_KEY: str(self.rate_hz)} if is_known else {}

    def deadline_s(self, pulse: int) -> float | None:
        """Return the duration of a pulse in seconds; None if the rate is unknown."""
        return None if self.rate_hz is None else pulse / self.rate_hz

    def pairs(self, pulsed: Interface) -> list[tuple[str, str]]:
        """Return the rate, the pulse, and the detected properties."""
        rate = "not known; --rate sets it"
        if self.rate_hz is not None:
            rate = f"{self.rate_hz} Hz, {RATE_ORIGINS[self.rate_from or 'default']}"
        return [("rate", rate), ("pulse", self._span_text(pulsed.pulse)), *self.model.detections()]

    def delay_pairs(self, pulsed: Interface) -> list[tuple[str, str]]:
        """Return the delay of every output."""
        return [
            (f"delay of {port.name}", self.delay_text(port, pulsed.pulse))
            for port in pulsed.outputs
            if port.streams
        ]

    def as_dict(self, pulsed: Interface, outputs: Iterable[Port] | None = None) -> dict[str, Any]:
        """Return the model and its delays for JSON; of these outputs, or of all."""
        ports = pulsed.outputs if outputs is None else outputs
        return {
            "model": self.title,
            "rate_hz": self.rate_hz,
            "rate_from": self.rate_from,
            "pulse_frames": pulsed.pulse,
            "pulse_ms": self._milliseconds(pulsed.pulse),
            "chunks": pulsed.chunks,
            "sizes": pulsed.sizes,
            "delays": [self._delay(port, pulsed.pulse) for port in ports if port.streams],
        }

    def delay_text(self, port: Port, pulse: int) -> str:
        """Return the algorithmic delay of an output in frames of the symbol: its own, and until a pulse is full."""
        delay_frames = float(port.delay / port.rate)
        total = self._span_text(delay_frames + pulse - 1)
        return f"{total}: {delay_frames:g} of the model + {pulse - 1} until a pulse is full"

    def receptive_text(self, field: "Receptive") -> str:
        """Return how many frames of the symbol an output frame depends on."""
        span = "all frames so far" if field.frames is None else self._span_text(field.frames)
        return f"{span}, {field.ahead} of them ahead{self._milliseconds_text(field.ahead)}"

    def _delay(self, port: Port, pulse: int) -> dict[str, Any]:
        delay_frames = float(port.delay / port.rate)
        total = delay_frames + pulse - 1
        return {
            "output": port.name,
            "model_frames": delay_frames,
            "reblocking_frames": pulse - 1,
            "total_frames": total,
            "total_ms": self._milliseconds(total),
        }

    def _span_text(self, frames: float) -> str:
        count = str(frames) if isinstance(frames, int) else f"{frames:g}"
        return f"{count} frame{'' if frames == 1 else 's'}{self._milliseconds_text(frames)}"

    def _milliseconds(self, frames: float) -> float | None:
        return None if self.rate_hz is None else frames / self.rate_hz * 1e3

    def _milliseconds_text(self, frames: float) -> str:
        milliseconds = self._milliseconds(frames)
        return "" if milliseconds is None else f" = {milliseconds:.2f} ms"


def backend_text(program: Program) -> str:
    """Return the backend, weights and activations if not f32, and threads if there are several."""
    weights = "" if program.form == "f32" else f", {program.form} weights"
    weights += "" if program.activations == "f32" else f", {program.activations} activations"
    threads = "" if program.threads == 1 else f", {program.threads} threads"
    return f"{program.backend}{weights}{threads}"
