"""The lengths, other than the example's, at which a model is tried."""

from collections.abc import Iterator, Mapping, Sequence
from math import gcd
from typing import Any, TypeAlias, cast

from pulse.errors import InputError
from pulse.support.naming import unknown_name
from pulse.support.wording import count_of

Lengths: TypeAlias = dict[str, int]
"""Frames of each symbol."""

MIN_LENGTH = 2
"""PyTorch's exporter takes lengths of 0 and 1 for constants."""
CONSECUTIVE_LENGTHS = 4
"""The number of consecutive lengths that are tried: one of them suits a small stride."""


def split_multiple(symbol: str) -> tuple[int, str]:
    """Return 32 and T for ``32*T``; 1 and the symbol for others."""
    factor, _, name = symbol.rpartition("*")
    return int(factor or 1), name


def multiples_by_name(lengths: Lengths) -> dict[str, list[str]]:
    """Return the symbols by the name that they are multiples of: they change together."""
    families: dict[str, list[str]] = {}
    for symbol in lengths:
        families.setdefault(split_multiple(symbol)[1], []).append(symbol)
    return families


def base_frames(lengths: Lengths, name: str) -> int:
    """Return the length of a name, which may be that of multiples alone."""
    symbol = multiples_by_name(lengths)[name][0]
    return lengths[symbol] // split_multiple(symbol)[0]


def variations(lengths: Lengths, symbols: Sequence[str]) -> tuple[list[Lengths], list[Lengths]]:
    """Return shorter and longer lengths than the example's, the best first.

    lengths  the example's
    symbols  those that change, in proportion; the others keep the example's length
    """
    parts = gcd(*(lengths[symbol] // split_multiple(symbol)[0] for symbol in symbols))
    units = {symbol: lengths[symbol] // parts for symbol in symbols}
    min_parts = max(-(-MIN_LENGTH // unit) for unit in units.values())

    def scale(count: int) -> Lengths:
        return {**lengths, **{symbol: count * unit for symbol, unit in units.items()}}

    return (
        [scale(count) for count in _shorter_lengths(parts) if min_parts <= count < parts],
        [scale(count) for count in _longer_lengths(parts)],
    )


def _shorter_lengths(frames: int) -> list[int]:
    """Return about a third; half; then shorter ones that strides divide."""
    third = [frames // 3 + step_up for step_up in range(1, CONSECUTIVE_LENGTHS + 1)]
    return list(dict.fromkeys([*third, frames // 2, *(frames - step for step in _steps(frames))]))


def _longer_lengths(frames: int) -> list[int]:
    """Return lengths above twice the frames, as they may be rounded up to powers of two, and twice the frames.

    Then longer ones that strides divide.
    """
    twice = [2 * frames + step_up for step_up in range(1, CONSECUTIVE_LENGTHS + 1)]
    return list(dict.fromkeys([*twice, 2 * frames, *(frames + step for step in _steps(frames))]))


def _steps(frames: int) -> list[int]:
    """Return the usual strides up to ``frames``, in decreasing order: powers of two, and 15 times powers of four."""
    powers = [4**power for power in range(frames.bit_length())]
    steps = {step for power in powers for step in (1, 2 * power, 15 * power) if step <= frames}
    return sorted(steps, reverse=True)


def even_length(lengths: Lengths, name: str) -> list[Lengths]:
    """Return a shorter length divisible by powers of two, so that strides leave no remainder, if there is one."""
    power = 2 ** max(base_frames(lengths, name).bit_length() - 2, 0)
    return [_fill_in({name: power}, lengths)] if power >= MIN_LENGTH else []


def read_lengths(lengths: Any, traced: Lengths) -> list[Lengths] | None:
    """Return the lengths of every symbol at which the caller compares, or None if not given.

    Raises InputError: one is not a length of a symbol, or multiples do not fit together.
    """
    if lengths is None:
        return None
    if isinstance(lengths, str) or not isinstance(lengths, Sequence):
        raise InputError(f'lengths must be a list such as [{{"T": 4000}}, {{"T": 9000}}], not {lengths!r}')
    return [_fill_in(dict(_read_lengths(entry, traced)), traced) for entry in cast("Sequence[Any]", lengths)]


def _fill_in(chosen: Lengths, traced: Lengths) -> Lengths:
    """Return the lengths of all symbols: a name and its multiples follow a given one, others are the example's.

    Raises InputError: a multiple is not as long as its name says
    """
    filled = dict(traced)
    for name, symbols in multiples_by_name(traced).items():
        chosen_symbols = [symbol for symbol in (name, *symbols) if symbol in chosen]
        if not chosen_symbols:
            continue
        base = max(chosen[chosen_symbols[0]] // split_multiple(chosen_symbols[0])[0], 1)
        filled |= {symbol: split_multiple(symbol)[0] * base for symbol in symbols}
        for symbol in chosen_symbols:
            frames = split_multiple(symbol)[0] * base
            if chosen[symbol] != frames:
                raise InputError(
                    f"lengths: {symbol} has {count_of(chosen[symbol], 'frame')}, but {frames} if {name} has {base}; "
                    f"give {name} alone: its multiples follow"
                )
    return filled


def _read_lengths(entry: Any, traced: Lengths) -> Iterator[tuple[str, int]]:
    if not isinstance(entry, Mapping):
        raise InputError(f'lengths: {entry!r} names no symbol; give one such as {{"T": 4000}}')
    for symbol, frames in cast("Mapping[Any, Any]", entry).items():
        if symbol not in traced and symbol not in multiples_by_name(traced):
            raise InputError(f"lengths: {unknown_name('symbol', symbol, traced)}")
        if isinstance(frames, bool) or not isinstance(frames, int) or frames < 1:
            raise InputError(f"lengths: {frames!r} frames of {symbol}; give a positive integer")
        yield symbol, frames


def format_lengths(lengths: Lengths) -> str:
    """Return ``T = 41, S = 3``."""
    return ", ".join(f"{symbol} = {frames}" for symbol, frames in lengths.items())
