"""The comparison of a stream with what its model was exported from, such as a PyTorch module."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.interface import Interface
from pulse.ops.arithmetic import is_floating
from pulse.program.program import Program
from pulse.program.whole_stream import stream_whole
from pulse.proof.oracle import Feeds, Oracle
from pulse.proof.report import Divergence, OriginalRecord
from pulse.proof.tolerance import ExpectedOutputs
from pulse.support.wording import count_of

COMPARED_LENGTHS = 3
"""The number of lengths at which an original runs."""


class Original(Protocol):
    """The module or function that a model was exported from, and which still runs.

    title   its name, for reports
    """

    @property
    def title(self) -> str: ...

    def draw(self, model: Interface, frames: int, seed: int) -> dict[str, Array]:
        """Return inputs that it takes, for about this many frames of the symbol."""
        ...

    def run(self, model: Interface, feeds: Feeds, precise: bool = False) -> dict[str, Array]:
        """Return the outputs for a whole stream, by name, or the first frames of them.

        precise  whether it runs in f64
        Raises   InputError: it does not take these inputs, or does not run in f64
        """
        ...


def compare_with_original(
    original: Original, model: Interface, oracle: Oracle, program: Program, lengths: Sequence[int], seed: int
) -> OriginalRecord | Divergence:
    """Compare the stream of a program with the original, by the rule of tolerance.

    If the original's own sums round more than the model may, the original in f64 decides.

    oracle   the offline model, for the tolerance
    lengths  the frames of the symbol to try: the longest, the middle and the shortest that the original takes
    """
    tried: list[int] = []
    error, refusal = 0.0, ""
    for length in _in_order_of_trial(lengths):
        feeds = original.draw(model, length, seed)
        try:
            offline = ExpectedOutputs(oracle, feeds, seed)
            expected = _as_in_model(original.run(model, feeds), offline)
            if not expected:
                raise InputError("it returns none of the outputs")
        except InputError as reason:
            refusal = refusal or f"at {count_of(length, 'frame')}: {reason}"
            continue
        streamed = stream_whole(program, feeds)
        reason = _difference(model, offline, expected, streamed, original.title)
        if reason is not None:
            try:
                precise = _as_in_model(original.run(model, feeds, precise=True), offline)
            except InputError:
                precise = expected
            reason = _difference(model, offline, precise, streamed, original.title)
        if reason is not None:
            name, text = reason
            return Divergence(name, "output", length, "the example", program.backend, reason=text)
        tried.append(length)
        error = max(error, *(_distance(streamed[name], value) for name, value in expected.items()))
        if len(tried) == COMPARED_LENGTHS:
            break
    return OriginalRecord(original.title, tuple(sorted(tried)), error, "" if tried else refusal)


def _in_order_of_trial(lengths: Sequence[int]) -> list[int]:
    order = sorted(set(lengths))
    return list(dict.fromkeys([order[-1], order[len(order) // 2], order[0], *order]))


def _as_in_model(outputs: Mapping[str, Array], offline: ExpectedOutputs) -> dict[str, Array]:
    """Return the outputs of the model's types; an f64 run of the original is rounded to them."""
    native = offline.native
    return {name: outputs[name].astype(native[name].dtype, copy=False) for name in native if name in outputs}


def _difference(
    model: Interface,
    offline: ExpectedOutputs,
    expected: Mapping[str, Array],
    streamed: Mapping[str, Array],
    title: str,
) -> tuple[str, str] | None:
    """Return the first output that differs, and how; None if original, model and stream agree."""
    for port in model.outputs:
        if port.name not in expected:  # an inner wire that the user kept
            continue
        original, native, stream = expected[port.name], offline.native[port.name], streamed[port.name]
        shapes = f"{title} has shape {list(original.shape)}, the stream {list(stream.shape)}"
        whole = native.copy()
        part = tuple(slice(0, size) for size in original.shape)
        if whole[part].shape != original.shape or (original.shape != native.shape and port.axis is None):
            return port.name, shapes
        whole[part] = original
        for value in (whole, stream):
            judgement = offline.judge(port.name, value, port.axis)
            if not judgement.fits:
                return port.name, shapes
            if judgement.wrong is not None:
                locations = np.argwhere(judgement.wrong)
                index = tuple(map(int, min(locations, key=lambda location: location[port.axis or 0])))
                values = f"{title} has {float(whole[index]):.6g}, the stream {float(stream[index]):.6g}"
                return port.name, f"at {list(index)} {values}"
    return None


def _distance(streamed: Array, expected: Array) -> float:
    """Return the largest difference of finite numbers in the frames that both have."""
    if not is_floating(expected.dtype):
        return 0.0
    part = tuple(slice(0, size) for size in expected.shape)
    with np.errstate(invalid="ignore"):  # equal infinities
        difference = np.abs(streamed[part].astype(np.float64) - expected)
    return float(difference[np.isfinite(difference)].max(initial=0.0))
