"""docs/models.md: the results of the shared models."""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from docs.tables.markdown import table
from pulse.chunks.chunking import Chunking
from pulse.errors import PulseError
from pulse.facts import Array
from pulse.loading.load import load
from pulse.models import PulsedModel, TypedModel

FOLDER = Path(os.environ.get("PULSE_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "models"
TOLERANCE = 1e-4, 1e-5
"""Relative and absolute."""

HEAD = f"""# Models

Made by `python -m docs.tables` from the models that developers keep next to the project
(`../shared/models`); a test compares the page with them if they are there. Each is loaded with the options of its
row, run once by `TypedModel.run` and once by onnxruntime on the same random input, and made a stream. *rate* is output
frames for each input frame, *delay* leading output frames to drop (outputs that are known at the end have
neither). *equals onnxruntime* means within {TOLERANCE[0]:g}; `tests/conformance` proves the streams chunk by chunk.
"""


@dataclass(frozen=True)
class SharedModel:
    """A file, and what must be said of it; ``frames`` are those of the call that is compared."""

    file: str
    pulse: int | None = None
    frames: int = 48
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    constants: Mapping[str, Any] = field(default_factory=dict[str, Any])
    context: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def options(self) -> str:
        """The options of ``pulse run``."""
        words = [] if self.pulse is None else [f"--pulse {self.pulse}"]
        words += [f"--input {name}={shape}" for name, shape in self.inputs.items()]
        words += [f"--constant {name}={value}" for name, value in self.constants.items()]
        words += [f"--context {name}={frames}" for name, frames in self.context.items()]
        return f"`{' '.join(words)}`" if words else ""


MODELS = (
    SharedModel("dtln_1.onnx"),
    SharedModel("dtln_2.onnx"),
    SharedModel("fastenhancer_b_spec.onnx"),
    SharedModel("fastenhancer_t_wav.onnx", context={"wav_in": 256}),
    SharedModel("fireredvad_stream.onnx"),
    SharedModel("fireredvad_stream_cached.onnx", pulse=1),
    SharedModel("gtcrn_offline.onnx"),
    SharedModel("gtcrn_stream.onnx"),
    SharedModel("silero_vad_16k.onnx", pulse=512, constants={"sr": 16000}, context={"input": 64}),
    SharedModel("silero_vad_16k_static.onnx", context={"input": 64}),
    SharedModel("swift_f0.onnx", frames=8_192),
)


def feeds(typed: TypedModel, frames: int) -> dict[str, Array]:
    """Random inputs; every symbol is ``frames``."""
    rng = np.random.default_rng(0)
    return {
        name: (
            rng.standard_normal([int(dim.subs(dict.fromkeys(dim.symbols, frames))) for dim in fact.shape])
            * 0.1
        ).astype(fact.dtype)
        for name, fact in typed.inputs.items()
    }


def by_onnxruntime(path: Path, inputs: Mapping[str, Array], constants: Mapping[str, Any]) -> dict[str, Array]:
    """The outputs, by name."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    stored = {name: np.array(value, np.int64) for name, value in constants.items()}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {**inputs, **stored})))


def equal(path: Path, typed: TypedModel, model: SharedModel) -> bool:
    """Whether one call gives what onnxruntime gives."""
    inputs = feeds(typed, model.frames)
    expected = by_onnxruntime(path, inputs, model.constants)
    return all(np.allclose(output, expected[name], *TOLERANCE) for name, output in typed.run(inputs).items())


def streams_as(pulsed: PulsedModel) -> str:
    """In a few words."""
    if pulsed.chunks is None:
        return f"pulses of {pulsed.pulse}"
    states = len(pulsed.chunks.pairs)
    return f"chunks of {pulsed.pulse}, {states} state{'s' * (states != 1)}"


def text_of_each(values: Sequence[object]) -> str:
    """The values of the outputs; one where all have the same."""
    return ", ".join(map(str, values if len(set(values)) > 1 else values[:1]))


def row(model: SharedModel, folder: Path) -> Sequence[object]:
    """A line of the table."""
    path = folder / model.file
    try:
        chunking = Chunking(context=model.context)
        loaded = load(path, model.inputs, constants=model.constants, chunking=chunking).with_pulse(
            model.pulse
        )
        same = "yes" if equal(path, loaded.resolution.call or loaded.typed_model, model) else "no"
    except PulseError as error:
        return model.file, model.options, f"no: {error}", "", "", "", ""
    try:
        pulsed = loaded.pulsify(model.pulse)
    except PulseError as error:
        return model.file, model.options, "yes", same, f"no: {error}", "", ""
    ports = [port for port in pulsed.outputs if port.rate]
    rates, delays = text_of_each([port.rate for port in ports]), text_of_each([port.delay for port in ports])
    return model.file, model.options, "yes", same, streams_as(pulsed), rates, delays


def document() -> str:
    """The whole document."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [row(model, FOLDER) for model in MODELS]
    head = ["model", "options", "loads", "equals onnxruntime", "streams as", "rate", "delay"]
    return f"{HEAD}\n{table(head, rows)}\n"
