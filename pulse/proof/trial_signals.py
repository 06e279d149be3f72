"""Test signals of several kinds, to find differences that only some of them show."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.interface import Interface, Port
from pulse.ops.arithmetic import NATIVE, is_floating
from pulse.proof.oracle import Oracle
from pulse.pulsify.network import PulsedNetwork

Signal: TypeAlias = Literal["noise", "quiet", "loud", "steps", "gaps", "silence", "mixed"]
"""Noise of standard deviation 1; of ``QUIET``; of ``LOUD``; levels that are held and jump; noise between long zeros;
zeros; all of these one after the other."""

SIGNALS: tuple[Signal, ...] = get_args(Signal)
PURE: tuple[Signal, ...] = tuple(signal for signal in SIGNALS if signal != "mixed")
QUIET, LOUD = 1e-3, 30.0
"""The standard deviations of two signals; others have 1."""
HELD_FRAMES = 24
"""How long a level of ``steps`` lasts, on average."""
GAP_FRAMES = 200
"""How long a burst or a gap of ``gaps`` lasts, on average, if the stream is long."""
MAX_INTEGER = 1 << 20
"""Random integers stay below it, even if the model takes larger ones."""

InputDomain: TypeAlias = Literal["any number", "-1 to 1", "0 or more", "0 to 1"]
"""What floats of the signals are mapped to: a root or a logarithm returns NaN for others."""

DOMAINS: tuple[InputDomain, ...] = get_args(InputDomain)

IntegerRange: TypeAlias = tuple[int, int]
"""The smallest and the largest value of an integer input."""


def draw_feeds(
    model: Interface,
    length: int,
    signal: Signal = "noise",
    seed: int | Sequence[int] = 0,
    ranges: Mapping[str, IntegerRange] | None = None,
    domain: InputDomain = "any number",
) -> dict[str, Array]:
    """Draw every input of a stream of ``length`` frames of the symbol.

    ranges  input -> range of its integers; 0 to 1 by default
    domain  what the floats are mapped to
    """
    rng = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    for port in model.inputs:
        shape = list(port.shape)
        if port.axis is not None:
            shape[port.axis] = max(0, port.length.eval({model.symbol: length}))
        values = _shape(signal if port.axis is not None else "noise", shape, port.axis or 0, rng)
        low, high = (ranges or {}).get(port.name, (0, 1))
        feeds[port.name] = (
            _INTO_DOMAIN[domain](values).astype(port.dtype)
            if is_floating(port.dtype)
            else _integers(values, low, high, port)
        )
    return feeds


def _shape(signal: Signal, shape: Sequence[int], axis: int, rng: np.random.Generator) -> Array:
    """Return f64 values of a signal whose frames lie along ``axis``."""
    if not shape:
        return np.asarray(rng.standard_normal())
    frames = shape[axis]
    other_sizes = [size for other, size in enumerate(shape) if other != axis]
    return np.moveaxis(_MAKERS[signal](frames, other_sizes, rng), 0, axis)


def _noise(frames: int, other_sizes: Sequence[int], rng: np.random.Generator) -> Array:
    return rng.standard_normal((frames, *other_sizes))


def _quiet_noise(frames: int, other_sizes: Sequence[int], rng: np.random.Generator) -> Array:
    return QUIET * _noise(frames, other_sizes, rng)


def _loud_noise(frames: int, other_sizes: Sequence[int], rng: np.random.Generator) -> Array:
    return LOUD * _noise(frames, other_sizes, rng)


def _silence(frames: int, other_sizes: Sequence[int], rng: np.random.Generator) -> Array:
    return np.zeros((frames, *other_sizes))


def _steps(frames: int, other_sizes: Sequence[int], rng: np.random.Generator) -> Array:
    """Return a signal whose elements all jump at the same moments, each to a level of its own."""
    step = np.cumsum(rng.random(frames) < 1 / HELD_FRAMES)
    levels = 3 * rng.standard_normal((int(step[-1]) + 1 if frames else 0, *other_sizes))
    return levels[step]


def _gaps(frames: int, other_sizes: Sequence[int], rng: np.random.Generator) -> Array:
    """Return a signal of noise between long zeros, which begins with zeros."""
    section = np.cumsum(rng.random(frames) < 1 / min(GAP_FRAMES, max(2, frames // 4)))
    sounding = (section % 2 == 1).reshape(frames, *(1 for _ in other_sizes))
    return _noise(frames, other_sizes, rng) * sounding


def _mix(frames: int, other_sizes: Sequence[int], rng: np.random.Generator) -> Array:
    edges = np.linspace(0, frames, len(PURE) + 1).astype(int)
    order = rng.permutation(len(PURE))
    parts = [
        _MAKERS[PURE[maker]](stop - start, other_sizes, rng)
        for maker, start, stop in zip(order, edges, edges[1:])
    ]
    return np.concatenate(parts)


_MAKERS: Mapping[Signal, Callable[[int, Sequence[int], np.random.Generator], Array]] = {
    "noise": _noise,
    "quiet": _quiet_noise,
    "loud": _loud_noise,
    "steps": _steps,
    "gaps": _gaps,
    "silence": _silence,
    "mixed": _mix,
}


_INTO_DOMAIN: Mapping[InputDomain, Callable[[Array], Array]] = {
    "any number": lambda values: values,
    "-1 to 1": lambda values: values / (1 + np.abs(values)),
    "0 or more": np.abs,
    "0 to 1": lambda values: np.abs(values) / (1 + np.abs(values)),
}


def _integers(values: Array, low: int, high: int, port: Port) -> Array:
    """Return normal values spread evenly over a range; 0, or the value next to it, does not move."""
    rest_value = min(max(0, low), high)
    spread = low + np.floor((high - low + 1) * np.modf(np.abs(values) * 4099.0)[0]).astype(np.int64)
    return np.where(values == 0, rest_value, np.clip(spread, low, high)).astype(port.dtype)


def find_domain(
    model: PulsedNetwork, oracle: Oracle, length: int, ranges: Mapping[str, IntegerRange]
) -> InputDomain:
    """Return the domain for which the offline model returns no NaN and no infinity for noise, or the fewest.

    It is the first domain, unless a later one leaves at most half as many of them.

    length  frames of the noise
    ranges  the ranges of the integer inputs
    """

    def count_others(domain: InputDomain) -> int:
        feeds = draw_feeds(model, length, "noise", 0, ranges, domain)
        with np.errstate(all="ignore"):
            outputs = oracle(feeds, NATIVE)
        floats = [values for values in outputs.values() if is_floating(values.dtype)]
        return sum(values.size - int(np.count_nonzero(np.isfinite(values))) for values in floats)

    best, fewest = DOMAINS[0], 0
    try:
        fewest = count_others(best)
        for domain in DOMAINS[1:]:
            if fewest and 2 * (others := count_others(domain)) <= fewest:
                best, fewest = domain, others
    except InputError:
        return DOMAINS[0]
    return best


def integer_ranges(model: PulsedNetwork, oracle: Oracle, length: int) -> dict[str, IntegerRange]:
    """Return the range of each integer input that the offline model accepts at ``length`` frames, at most 2^20.

    An index has as many values as its table has rows; an input that is only computed with has all.
    """
    return {
        port.name: _range(model, oracle, length, port)
        for port in model.inputs
        if not is_floating(port.dtype) and port.dtype != np.bool_
    }


def _range(model: PulsedNetwork, oracle: Oracle, length: int, port: Port) -> IntegerRange:
    feeds = draw_feeds(model, length)

    def is_accepted(value: int) -> bool:
        try:
            oracle({**feeds, port.name: np.full_like(feeds[port.name], value)}, NATIVE)
        except InputError:
            return False
        return True

    info = np.iinfo(port.dtype)
    highest, largest_negative = min(int(info.max), MAX_INTEGER), min(-int(info.min), MAX_INTEGER)
    starts = 1, 0, *(1 << power for power in range(1, highest.bit_length()))
    start = next(filter(is_accepted, starts), None)
    if start is None:
        return 0, 1
    return (
        -_furthest(lambda value: is_accepted(-value), -start, largest_negative),
        _furthest(is_accepted, start, highest),
    )


def _furthest(is_accepted: Callable[[int], bool], low: int, high: int) -> int:
    """Return the largest value that is taken, where all up to it are; ``low`` is."""
    if is_accepted(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_accepted(middle) else (low, middle)
    return low
