"""The allowed distance between a result and the offline model: the one rule of tolerance of the project.

``docs/proof.md`` states the rule. A result within ``CLOSE_ULPS`` of the offline model's own run is right. Otherwise
the model is run in f64, and the largest of three allowances counts: ``ROUNDING_ULPS`` of the channel's largest value,
the error of the offline model in its own types, and the change in runs with random rounding errors
(``SAFETY_FACTOR``, ``PERTURBED_RUNS``).

The second and third are taken at the element or as the median of its channel, not the largest of it: a decision that
rounding may turn (a quantiser at a tie) moves few elements, by much, and must excuse only these. Which ones turn is
chance: as many elements may stray as in one of the runs that is judged by the others (``Strays``).

Source: D. Stott Parker, Monte Carlo Arithmetic (1997); N. Higham, Accuracy and Stability of Numerical Algorithms.
"""

from functools import cached_property

import numpy as np

from pulse.facts import Array, DType
from pulse.ops.arithmetic import NATIVE, PerturbedArithmetic, RecordingArithmetic, is_floating, unit_roundoff
from pulse.proof.oracle import Feeds, Oracle, typed_oracle
from pulse.proof.transform_weights import TransformWeights
from pulse.support.record import record
from pulse.typed import TypedNetwork

CLOSE_ULPS = 8
"""Units in the last place of the largest value; a result this close to the offline model's own needs no run in f64."""
ROUNDING_ULPS = 16
"""The roundings allowed per value: what kernels need (reordered sums, functions within a few units), with a margin."""
PERTURBED_RUNS = 24
"""A tie goes the other way in half of the runs: this many leave out one of ten million elements at a tie."""
SAFETY_FACTOR = 2
"""Tolerance as a multiple of the spread of the perturbed runs."""


@record
class Judgement:
    """The comparison of a result with the expected one.

    difference  the largest distance from the offline model: from its f64 run, if its own did not suffice
    relative    the same as a share of the largest value of the output
    share       the largest distance as a share of what is allowed: at most 1 if the model is exact enough
    allowed     how far each element may be off
    wrong       the elements that are further off, None if there are none
    fits        whether shape and type are right; nothing is compared if they are not
    """

    difference: float
    relative: float
    share: float
    allowed: Array
    wrong: Array | None = None
    fits: bool = True

    @property
    def agrees(self) -> bool:
        """Whether every element is as it should be."""
        return self.fits and self.wrong is None


@record
class Strays:
    """The elements of a run that are further off than is allowed for each.

    count  how many there are
    share  the largest distance, as a multiple of the largest change of its element in the other runs

    Infinite distances, from an overflow, do not count.
    """

    count: int = 0
    share: float = 0.0

    def join(self, shares: Array) -> "Strays":
        """Return the larger count and the larger share, of these and of the strays of another run."""
        shares = shares[np.isfinite(shares)]
        return Strays(max(self.count, shares.size), max(self.share, float(shares.max(initial=0.0))))


class ExpectedOutputs:
    """A model's outputs for some inputs: in its own types, in f64, and with their tolerances for rounding.

    oracle   the offline model
    Raises   InputError: the model does not take these inputs
    """

    def __init__(self, oracle: Oracle, feeds: Feeds, seed: int = 0) -> None:
        self._oracle = oracle
        self._feeds = feeds
        self._seed = seed
        self.native = oracle(feeds, NATIVE)
        """The outputs in the model's own types."""
        self._recording = RecordingArithmetic()
        self._transforms = TransformWeights()
        self._runs: list[dict[str, Array]] = []

    @cached_property
    def exact(self) -> dict[str, Array]:
        """The outputs in f64; integers and booleans unchanged."""
        return self._oracle(self._feeds, self._recording)

    @classmethod
    def of(cls, model: TypedNetwork, feeds: Feeds, seed: int = 0) -> "ExpectedOutputs":
        """Return what an offline model outputs for these inputs."""
        return cls(typed_oracle(model), feeds, seed)

    def judge(self, name: str, output: Array, axis: int | None, runs: int = PERTURBED_RUNS) -> Judgement:
        """Compare a result with output ``name``; fewer runs take less time, and allow less.

        axis  its time axis; None if it has none
        """
        native = self.native[name]
        if output.shape != native.shape or output.dtype != native.dtype:
            infinite = float("inf")
            return Judgement(infinite, infinite, infinite, np.zeros(native.shape), fits=False)
        off = np.where(_same_entries(output, native), 0.0, _distance(output, native))
        allowed = CLOSE_ULPS * _ulp_of_largest(native, native.dtype, axis)
        if (off <= allowed).all():
            return _judgement(off, allowed, native)
        exact = self.exact[name]
        off = np.where(_same_entries(output, native), 0.0, _distance(output, exact))
        allowed = self._floor(name, axis)
        for run in range(runs):
            if (off <= allowed).all():
                break
            allowed = np.maximum(allowed, self._change(run, name, axis))
        wrong = ~(off <= allowed)
        if wrong.any() and runs > 1:
            count, limit = self._stray_limit(name, axis, runs)
            if np.count_nonzero(wrong) <= count and (off <= limit)[wrong].all():
                allowed = np.where(wrong, limit, allowed)
        return _judgement(off, allowed, exact)

    def allowance(self, name: str, axis: int | None, runs: int) -> tuple[Array, Array]:
        """Return output ``name`` in f64, and how far each element of any result may be from it.

        Fewer runs allow less.
        """
        allowed = self._floor(name, axis)
        for run in range(runs):
            allowed = np.maximum(allowed, self._change(run, name, axis))
        exact = self.exact[name]
        return exact, np.broadcast_to(allowed, exact.shape)

    def _stray_limit(self, name: str, axis: int | None, runs: int) -> tuple[int, Array]:
        """Return how many elements may be further off than is allowed for each, and how far each of them.

        That is what the perturbed runs show, each judged by the others, and the offline model's own run: an element
        of it strays if it is off by about as much as with errors that are sixteen times as large.
        """
        exact, native = self.exact[name], self.native[name]
        units = ROUNDING_ULPS * _ulp_of_largest(exact, native.dtype, axis)
        if not is_floating(native.dtype):
            units = np.ones(())
        largest = second = np.broadcast_to(units, exact.shape)
        floor, owner = self._floor(name, axis), np.full(exact.shape, runs)
        for run in range(runs):
            change = self._change(run, name, axis)
            owner = np.where(change > largest, run, owner)
            second = np.maximum(second, np.minimum(change, largest))
            largest = np.maximum(change, largest)
        strays = Strays()
        for run in range(runs):
            distance = _distance(self._runs[run][name], exact)
            others = np.where(owner == run, second, largest)
            strays = strays.join((distance / others)[distance > np.maximum(floor, others)])
        distance = _distance(native, exact)
        strays = strays.join((distance / largest)[(distance > units / 2) & (distance > largest / 8)])
        return SAFETY_FACTOR * strays.count, SAFETY_FACTOR * strays.share * largest

    def _factor(self, name: str) -> int:
        return SAFETY_FACTOR if is_floating(self.native[name].dtype) else 1

    def _floor(self, name: str, axis: int | None) -> Array:
        """Return the tolerance from the largest value of the channel and the offline model's own error."""
        exact, native = self.exact[name], self.native[name]
        native_distance = _typical(_distance(native, exact), native.dtype, axis)
        if not is_floating(native.dtype):
            return native_distance
        return ROUNDING_ULPS * np.maximum(_ulp_of_largest(exact, native.dtype, axis), native_distance)

    def _change(self, run: int, name: str, axis: int | None) -> Array:
        """Return the tolerance from a run with random errors, which is made at its first use."""
        if run == len(self._runs):
            seed = self._seed * PERTURBED_RUNS + run
            perturbed = PerturbedArithmetic(
                self._recording.tape, ROUNDING_ULPS, seed, self._transforms.scales
            )
            self._runs.append(self._oracle(self._feeds, perturbed))
        distance = _distance(self._runs[run][name], self.exact[name])
        return self._factor(name) * _typical(distance, self.native[name].dtype, axis)


def _judgement(off: Array, allowed: Array, expected: Array) -> Judgement:
    with np.errstate(all="ignore"):
        share = np.where(off == 0.0, 0.0, off / allowed)
    wrong = ~(off <= allowed)
    difference = float(off.max(initial=0.0))
    size = float(np.abs(_finite(expected)).max(initial=0.0))
    relative = difference / size if size else 0.0 if difference == 0.0 else float("inf")
    largest = float(share.max(initial=0.0))
    return Judgement(difference, relative, largest, allowed, wrong if wrong.any() else None)


def _ulp_of_largest(values: Array, dtype: DType, axis: int | None) -> Array:
    """Return the unit in the last place of each channel's largest value; 0 for integers.

    It is at least the smallest normal number, since kernels take smaller ones for zero. Without an axis, each value is
    a channel.
    """
    if not is_floating(dtype):
        return np.zeros(())
    size = np.abs(_finite(values)).astype(np.float64)
    largest = size.max(axis, keepdims=True) if axis is not None and size.size else size
    return np.maximum(unit_roundoff(dtype) * largest, float(np.finfo(dtype).tiny))


def _same_entries(output: Array, expected: Array) -> Array:
    """Return the mask of entries that are equal infinities or both NaN."""
    if not is_floating(output.dtype):
        return np.zeros(output.shape, np.bool_)
    return ~np.isfinite(output) & ((output == expected) | (np.isnan(output) & np.isnan(expected)))


def _distance(output: Array, exact: Array) -> Array:
    """Return the absolute difference in f64; infinite where only one is a number."""
    if not is_floating(exact.dtype):
        apart = output != exact
        return np.where(apart, np.abs(output.astype(np.float64) - exact.astype(np.float64)), 0.0)
    with np.errstate(invalid="ignore"):
        difference = np.abs(output.astype(np.float64) - exact)
    is_equal = (output == exact) | (np.isnan(output) & np.isnan(exact))
    return np.where(is_equal, 0.0, np.where(np.isnan(difference), np.inf, difference))


def _typical(errors: Array, dtype: DType, axis: int | None) -> Array:
    """Return the error of each element, or of half of its channel if that is larger; of an integer its own."""
    errors = _finite(errors)
    if not is_floating(dtype) or not errors.size:
        return errors
    return np.maximum(errors, np.median(errors, axis, keepdims=True))


def _finite(values: Array) -> Array:
    """Replace NaN and infinities by zero."""
    return np.where(np.isfinite(values), values, 0.0)
