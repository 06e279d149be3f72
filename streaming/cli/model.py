"""The model that a command is about: opened, its pulse chosen, compiled."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np

from pulse.dim import TDim
from pulse.errors import InputError, PulseWarning
from pulse.facts import TypedFact
from pulse.loading.load import load
from pulse.loading.loaded import Loaded
from pulse.models import PulsedModel, TypedModel
from pulse.program.compiler import Prepare
from pulse.program.program import Program
from pulse.pulsify.network import Port
from pulse.pulsify.receptive import Receptive
from streaming.builtin import SAMPLE_RATE_HZ, model_path
from streaming.cli.chunk_options import budget, chunking, constants, pairs
from streaming.cli.options import ChunkOptions

DEFAULT_RATE_HZ = 16_000
PULSE_S = 0.01


@dataclass(frozen=True)
class Opened:
    """A model, and how long its frames last.

    model        as it was loaded
    rate_hz      frames of the symbol a second; None where nobody says it
    rate_from    ``model`` (its metadata), ``builtin``, ``option`` or ``default``
    max_context  the longest stream, for attention to all frames before
    """

    model: Loaded
    rate_hz: int | None
    rate_from: str | None
    max_context: int | None = None

    @property
    def typed(self) -> TypedModel:
        """The decluttered model."""
        return self.model.typed

    @property
    def title(self) -> str:
        """The model's name."""
        return self.model.title

    def pulsed(self, pulse: int | None) -> PulsedModel:
        """In pulses of the given size; about 10 ms by default, if the rate is known. Raises PulsifyError."""
        if pulse is not None or self.rate_hz is None or self.model.defines_pulse:
            return self._pulsed(pulse)
        smallest = self._pulsed(None).pulse
        wanted = max(1, -(-int(self.rate_hz * PULSE_S) // smallest)) * smallest
        return self._pulsed(wanted)

    def _pulsed(self, pulse: int | None) -> PulsedModel:
        return self.model.pulsed(pulse, max_context=self.max_context)

    def milliseconds(self, frames: int | float) -> float | None:
        """How long frames of the symbol last."""
        return None if self.rate_hz is None else frames / self.rate_hz * 1e3

    def delay(self, port: Port, pulse: int) -> dict[str, Any]:
        """The algorithmic delay of an output in frames of the symbol: its own, and until a pulse is full."""
        own = float(port.delay / port.rate)
        total = own + pulse - 1
        return {
            "output": port.name,
            "model_frames": own,
            "reblocking_frames": pulse - 1,
            "total_frames": total,
            "total_ms": self.milliseconds(total),
        }

    def delay_text(self, port: Port, pulse: int) -> str:
        """The same, in words."""
        delay = self.delay(port, pulse)
        parts = f"{delay['model_frames']:g} of the model + {pulse - 1} until a pulse is full"
        return f"{delay['total_frames']:g} frames{self._ms(delay['total_frames'])}: {parts}"

    def receptive_text(self, field: Receptive) -> str:
        """How many frames of the symbol an output frame depends on."""
        if field.frames is None:
            span = "all frames so far"
        else:
            span = f"{field.frames} frame{'s' if field.frames > 1 else ''}{self._ms(field.frames)}"
        return f"{span}, {field.ahead} of them ahead{self._ms(field.ahead)}"

    def pulse_text(self, pulse: int) -> str:
        """The pulse, and how long it lasts."""
        return f"{pulse} frame{'s' if pulse > 1 else ''}{self._ms(pulse)}"

    def rate_text(self) -> str:
        """The rate, and who says it."""
        if self.rate_hz is None:
            return "not known; --rate gives it"
        told = {
            "model": "from the model's metadata",
            "option": "as given",
            "builtin": "that of the built-in model",
            "default": "assumed; --rate gives another",
        }
        return f"{self.rate_hz} Hz, {told[self.rate_from or 'default']}"

    def _ms(self, frames: float) -> str:
        milliseconds = self.milliseconds(frames)
        return "" if milliseconds is None else f" = {milliseconds:.2f} ms"


def load_model(
    path: Path | None,
    symbol: str | None = None,
    inputs: Sequence[str] | None = None,
    chunks: ChunkOptions | None = None,
    pulse: int | None = None,
) -> Loaded:
    """Load, with what the options say; ``pulse`` where the model may take chunks of any length. Raises PulseError."""
    given = chunks or ChunkOptions()
    return load(
        path or model_path(),
        parse_inputs(inputs),
        constants(given),
        given.keep,
        symbol,
        chunking(given, pulse),
        given.ignore_value_info,
        budget(given),
        given.signature,
    )


def open_model(
    path: Path | None,
    symbol: str | None = None,
    inputs: Sequence[str] | None = None,
    rate_hz: int | None = None,
    max_context: int | None = None,
    chunks: ChunkOptions | None = None,
    pulse: int | None = None,
) -> Opened:
    """The same, with its rate; it has a stream. Raises PulseError."""
    model = load_model(path, symbol, inputs, chunks, pulse)
    if not model.defines_pulse:
        model.typed.find_symbol(symbol)
    rate, told = _rate(model, rate_hz, builtin=path is None)
    return Opened(model, rate, told, max_context)


def parse_inputs(texts: Sequence[str] | None) -> dict[str, str]:
    """``["x=1,80,T,f32"]`` as a mapping. Raises InputError."""
    return pairs("--input", texts, "a shape", "x=1,80,T,f32")


def _rate(model: Loaded, given: int | None, builtin: bool) -> tuple[int | None, str | None]:
    """The rate and who says it; warns where the one given contradicts the model."""
    known, told = (SAMPLE_RATE_HZ, "builtin") if builtin else (_stated(model, given), "model")
    if given is None:
        if known is not None:
            return known, told
        return (DEFAULT_RATE_HZ, "default") if takes_sound(model) else (None, None)
    if known is not None and known != given:
        who = "the built-in model" if builtin else f"{model.title}: by its metadata the model"
        warn(
            f"{who} is made for {known} Hz; --rate {given} lets it hear other frequencies: leave it out",
            PulseWarning,
            stacklevel=3,
        )
    return given, "option"


def _stated(model: Loaded, given: int | None) -> int | None:
    """The rate in the metadata; None where there is none. Raises InputError."""
    text = model.metadata.get("sample_rate")
    if text is None:
        return None
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    if given is not None:
        return None
    raise InputError(f"{model.title}: its metadata says sample_rate {text!r}, no whole number; give --rate")


def takes_sound(model: Loaded) -> bool:
    """Whether all inputs with time are f32, of one value for each frame of the symbol; states do not count."""
    if model.defines_pulse:
        ports = [port for port in model.pulsed().inputs if port.streams]
        return bool(ports) and all(port.is_sound for port in ports)
    typed, symbol = model.typed, model.symbol
    stream = TDim.of(typed.find_symbol(symbol))
    facts = [fact for fact in typed.inputs.values() if any(dim.symbols for dim in fact.shape)]
    return bool(facts) and all(_is_sound(fact, stream) for fact in facts)


def _is_sound(fact: TypedFact, stream: TDim) -> bool:
    dims = list(fact.shape)
    if fact.dtype != np.float32 or dims.count(stream) != 1:
        return False
    dims.remove(stream)
    return all(dim == 1 for dim in dims)


def compile_model(model: PulsedModel, backend: str, weights: str = "f32", live: bool = False) -> Program:
    """A program, and what else a live run needs, compiled with a bar at the first time. Raises CompileError."""
    return model.compile(backend, weights, compiling(live))


def compiling(live: bool = False) -> Prepare:
    """How commands compile."""
    from streaming.warming import LIVE, compile_in_parallel

    return compile_in_parallel(*LIVE if live else ())


def backend_text(program: Program) -> str:
    """The backend, and how weights are stored where that is not f32."""
    return program.backend if program.form == "f32" else f"{program.backend}, weights of {program.form}"


def port_row(port: Port) -> list[str]:
    """A port for a table: name, shape, type, axis, delay, rate, length."""
    form = str(port).partition(": ")[2].split(", ")[0]
    if port.axis is None:
        return [port.name, form, "no stream", "", "", ""]
    if not port.streams:
        return [port.name, form, str(port.axis), "at the end", "0", str(port.length)]
    return [port.name, form, str(port.axis), str(port.delay), str(port.rate), str(port.length)]
