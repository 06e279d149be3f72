"""The proof that an exported file, run pulse by pulse in another runtime, gives what the offline model gives."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto

from pulse.errors import DivergenceError, InputError, WriteError
from pulse.facts import Array
from pulse.onnx.write.runtime import Run, RuntimeProgram
from pulse.oracle import oracle_of
from pulse.program.whole import streamed
from pulse.proof import RTOL, allowed, default_lengths, random_feeds
from pulse.pulsify.model import PulsedModel
from pulse.typed import TypedModel

STEPS = 4
"""How many steps of its type's precision a value may be off, where these are coarser than the law's tolerance."""


@dataclass(frozen=True)
class Checked:
    """What was run, and the largest absolute difference over all outputs.

    lengths  frames of the symbol of each stream; those that the offline model refuses are in ``skipped``
    """

    runtime: str
    lengths: tuple[int, ...]
    skipped: tuple[int, ...]
    error: float


def check(
    proto: ModelProto,
    model: PulsedModel,
    typed: TypedModel | None = None,
    lengths: Sequence[int] | None = None,
    run: Run | None = None,
    seed: int = 0,
) -> Checked:
    """Run random streams through a file that ``to_onnx`` made of ``model``, the padding of the last pulse NaN.

    typed    the offline model; see ``oracle_of``
    run      one call of a runtime; by default onnxruntime, or onnx's evaluator
    Raises   DivergenceError: a value differs; WriteError: no length can be run
    """
    program, oracle = RuntimeProgram(model, proto, run), oracle_of(model, typed)
    rng = np.random.default_rng(seed)
    ran: list[int] = []
    skipped: list[int] = []
    worst = 0.0
    for length in default_lengths(model) if lengths is None else lengths:
        feeds = random_feeds(model, length, rng)
        try:
            with np.errstate(all="ignore"):
                expected = oracle(feeds)
        except InputError:
            skipped.append(length)
            continue
        ran.append(length)
        got = streamed(program, feeds)
        for name, wanted in expected.items():
            worst = max(worst, _compared(name, got[name], wanted, length, program.backend))
    if not ran:
        raise WriteError(
            f"{model.title}: it runs at none of the lengths {skipped}; give lengths that it takes"
        )
    return Checked(program.backend, tuple(ran), tuple(skipped), worst)


def _compared(name: str, got: Array, wanted: Array, length: int, runtime: str) -> float:
    """The largest difference. Raises DivergenceError where it is too large."""
    where = f"{name}, a stream of {length} frames in {runtime}"
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        raise DivergenceError(
            f"{where}: expected {list(wanted.shape)} {wanted.dtype}, got {list(got.shape)} {got.dtype}"
        )
    wide, target = got.astype(np.float64), wanted.astype(np.float64)
    same = (wide == target) | (np.isnan(wide) & np.isnan(target))
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, np.abs(wide - target))
    wrong = ~(difference <= _allowed(wanted))
    if wrong.any():
        at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        place = list(map(int, at))
        raise DivergenceError(f"{where}: at {place} offline {wanted[at]:.6g}, the file gives {got[at]:.6g}")
    return float(difference.max(initial=0.0))


def _allowed(wanted: Array) -> Array:
    """How far each value may be off: as the law has it, and not at all for integers."""
    if not np.issubdtype(wanted.dtype, np.inexact):
        return np.zeros(wanted.shape)
    return allowed(wanted, max(RTOL, STEPS * float(np.finfo(wanted.dtype).eps)))
