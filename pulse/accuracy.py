"""Loss by rounding: compare the outputs of a stream with its outputs for f32 weights and activations."""

import math

import numpy as np

from pulse.facts import Array
from pulse.program.backends.registry import Prepare
from pulse.program.compiler import compile_model
from pulse.program.whole_stream import stream_whole
from pulse.proof.trial_signals import draw_feeds
from pulse.proof.trials import short_lengths
from pulse.pulsify.network import PulsedNetwork
from pulse.rounding import Rounding
from pulse.support.record import record


@record
class RoundingLoss:
    """Difference between an output and its f32 value.

    output   name of the output
    largest  the largest absolute difference
    snr_db   energy of the output to energy of the difference; infinite if they are equal
    """

    output: str
    largest: float
    snr_db: float

    def __str__(self) -> str:
        return f"{self.largest:.3g} at most, {self.snr_db:.1f} dB below the output"


def rounding_losses(
    model: PulsedNetwork,
    weights: str,
    frames: int | None = None,
    *,
    backend: str = "numba",
    seed: int = 0,
    prepare: Prepare | None = None,
    activations: str | None = None,
) -> list[RoundingLoss]:
    """Return the error of each output on one stream of random input, for weights stored as ``weights``.

    frames  frames of the symbol; by default the longest of the short streams that ``verify`` tries
    activations  see ``Rounding``
    prepare  see ``compile_model``
    Raises  CompileError: as ``compile_model``
    """
    length = max(short_lengths(model)) if frames is None else frames
    feeds = draw_feeds(model, length, seed=seed)
    exact, rounded = (
        stream_whole(compile_model(model, backend, rounding, prepare=prepare), feeds)
        for rounding in (Rounding(), Rounding(weights, activations))
    )
    return [_error(name, exact[name], rounded[name]) for name in exact]


def _error(name: str, exact: Array, rounded: Array) -> RoundingLoss:
    expected, actual = exact.astype(np.float64), rounded.astype(np.float64)
    difference = np.where(exact == rounded, 0.0, actual - expected)
    signal, noise = float(np.square(expected).sum()), float(np.square(difference).sum())
    snr_db = math.inf if noise == 0 else 10 * math.log10(signal / noise) if signal > 0 else -math.inf
    return RoundingLoss(name, float(np.abs(difference).max(initial=0)), snr_db)
