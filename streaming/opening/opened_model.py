"""A model that streams, and the rate of its stream."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from warnings import warn

import numpy as np

from pulse.errors import InputError, PulseWarning
from pulse.facts import is_sound_shape
from pulse.interface import Interface, Port
from pulse.loading.loaded_model import LoadedModel
from pulse.metadata import RATE_KEY, stated_rate_hz
from pulse.ops.dims import is_floored_symbol
from pulse.program.program import Program
from pulse.rounding import Rounding
from pulse.support.record import record
from pulse.support.wording import count_of, spell
from streaming.builtin import SAMPLE_RATE_HZ
from streaming.compilation.preparation import kernel_preparation

if TYPE_CHECKING:
    from pulse.models import PulsedModel, TypedModel
    from pulse.pulsify.driver import PulsifyOptions
    from pulse.pulsify.receptive_fields import ReceptiveField

DEFAULT_RATE_HZ = 16_000
"""The rate of a model that states none and for which none is given; reports call it assumed."""
PULSE_S = 0.01
"""The minimum of audio in a pulse if none is given."""
RATE_ORIGINS = {
    "model": "from the model's metadata",
    "option": "as given",
    "builtin": "that of the built-in model",
    "default": "assumed",
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

    @classmethod
    def of(
        cls,
        model: LoadedModel,
        rate_hz: int | None = None,
        pulse: int | None = None,
        options: "PulsifyOptions | None" = None,
        *,
        builtin: bool = False,
        max_channels: int = 1,
    ) -> "OpenedModel":
        """Return a model with the given rate, or that of its metadata; warn if they differ.

        max_channels  inputs of up to this many channels are audio, so that a rate is assumed if none is known
        Raises PulseError: it does not stream, or its metadata has no valid rate
        """
        if not model.defines_pulse:
            model.decluttered_model.find_symbol(model.symbol)
        rate, origin = _choose_rate(model, rate_hz, builtin, max_channels)
        return cls(model, rate, origin, pulse, options)

    @property
    def decluttered_model(self) -> "TypedModel":
        """The decluttered model."""
        return self.model.decluttered_model

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
        live: bool = False,
    ) -> Program:
        """Compile it; a progress bar shows kernels that are compiled for the first time.

        live     compile the functions of a live run too
        Raises   PulseError: it cannot be compiled
        """
        return self.model.compile(
            self.pulse,
            backend=backend,
            weights=rounding.weights,
            activations=rounding.activations,
            prepare=kernel_preparation(live),
            **self._options(),
        )

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
        rate = f"not known; {spell('rate')} sets it"
        if self.rate_hz is not None:
            rate = f"{self.rate_hz} Hz, {RATE_ORIGINS[self.rate_from or 'default']}"
            rate += f"; {spell('rate')} sets another" if self.rate_from == "default" else ""
        return [
            ("rate", rate),
            ("pulse", self._span_text(pulsed.pulse)),
            *self.model.detections(),
            *_end_pairs(pulsed),
        ]

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

    def program_pairs(self, program: Program) -> list[tuple[str, str]]:
        """Return labels and values of a program of this model: how it computes, its ports and its delays."""
        model = program.model
        title = f"{self.title}, {backend_text(program)}"
        return [("model", title), *self.pairs(model), *self.delay_pairs(model)]

    def delay_text(self, port: Port, pulse: int) -> str:
        """Return the algorithmic delay of an output in frames of the symbol: its own, and until a pulse is full."""
        delay_frames = float(port.delay / port.rate)
        total = self._span_text(delay_frames + pulse - 1)
        return f"{total}: {_frames_text(delay_frames)} of the model + {pulse - 1} until a pulse is full"

    def receptive_text(self, field: "ReceptiveField") -> str:
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
        return f"{_frames_text(frames)} frame{'' if frames == 1 else 's'}{self._milliseconds_text(frames)}"

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


def _end_pairs(pulsed: Interface) -> Iterator[tuple[str, str]]:
    """Yield the outputs that end before their stream does, however long it is."""
    for port in pulsed.outputs:
        frames = port.most_frames(pulsed.symbol)
        if port.streams and frames is not None:
            text = (
                f"after {count_of(frames, 'frame', form=',')} of every stream: its length is {port.length}; if it "
                "should be as long as the "
                "input, an exporter fixed the length of its example"
            )
            yield f"end of {port.name}", text


def _choose_rate(
    model: LoadedModel, rate_hz: int | None, builtin: bool, max_channels: int
) -> tuple[int | None, str | None]:
    """Return the rate and its source; warn if ``rate_hz`` contradicts the model."""
    model_rate_hz, origin = (
        (SAMPLE_RATE_HZ, "builtin") if builtin else (_stated_rate(model, rate_hz), "model")
    )
    if rate_hz is None:
        if model_rate_hz is not None:
            return model_rate_hz, origin
        return (DEFAULT_RATE_HZ, "default") if _takes_sound(model, max_channels) else (None, None)
    if model_rate_hz is not None and model_rate_hz != rate_hz:
        who = "the built-in model" if builtin else f"{model.title}: by its metadata the model"
        warn(
            f"{who} is made for {model_rate_hz} Hz; {spell('rate', rate_hz)} would shift all frequencies: omit it",
            PulseWarning,
            stacklevel=3,
        )
    return rate_hz, "option"


def _stated_rate(model: LoadedModel, rate_hz: int | None) -> int | None:
    """Return the rate in the metadata; None if there is none. Raises InputError: it is not an integer."""
    stated_hz, text = stated_rate_hz(model.metadata), model.metadata.get(RATE_KEY)
    if stated_hz is None and text is not None and rate_hz is None:
        raise InputError(
            f"{model.title}: its metadata has sample_rate {text!r}, which is not an integer; give {spell('rate')}"
        )
    return stated_hz


def _takes_sound(model: LoadedModel, max_channels: int) -> bool:
    """Return whether all streaming inputs are audio, a frame for each of the symbol; states do not count."""
    if model.defines_pulse:
        program = model.pulsify() if model.program is None else model.program
        ports = [port for port in program.inputs if port.streams]
        return bool(ports) and all(1 <= port.channels <= max_channels for port in ports)
    typed, symbol = model.decluttered_model, model.symbol
    stream = typed.find_symbol(symbol)
    facts = [fact for fact in typed.inputs.values() if any(dim.symbols for dim in fact.shape)]
    return bool(facts) and all(
        fact.dtype == np.float32
        and is_sound_shape(fact.shape, max_channels)
        and any(stream in dim.symbols and is_floored_symbol(dim) for dim in fact.shape)
        for fact in facts
    )


def _frames_text(frames: float) -> str:
    """Return a number of frames: a whole one with all its digits."""
    return str(int(frames)) if frames == int(frames) else f"{frames:g}"
