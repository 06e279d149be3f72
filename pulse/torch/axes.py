"""The time axis of a module, found by trying other lengths."""

from collections.abc import Iterator, Mapping
from itertools import chain, islice, product, zip_longest
from typing import Any, TypeAlias

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.support.wording import spell
from pulse.torch.comparison import RunWhole
from pulse.torch.inputs import SampledInputs, draw_inputs, lengths_of
from pulse.torch.lengths import MIN_LENGTH, variations

SYMBOL = "T"
MAX_TRIALS = 16
"""Maximum number of lengths of an axis that are tried."""

InputAxes: TypeAlias = dict[str, dict[int, str]]


def find_time(title: str, module: RunWhole, examples: Mapping[str, Array]) -> InputAxes:
    """Return the one axis, or one axis of each of several inputs, along which the module runs at another length.

    Axes of several inputs have one length, or multiples of the shortest one (``32*T``).

    examples  the examples of all inputs that are tensors
    Returns   nothing if the module takes the example's lengths only
    Raises    InputError: the module runs at other lengths along several axes, or not on the example
    """
    try:
        example = module(dict(examples))
    except InputError as error:
        raise InputError(f"{title} does not run on the example: {error}") from error
    shapes = [value.shape for value in example.values()]
    axes = [
        (name, axis)
        for name, value in examples.items()
        for axis in range(value.ndim)
        if value.shape[axis] >= MIN_LENGTH
    ]
    alone: list[InputAxes] = [{name: {axis: SYMBOL}} for name, axis in axes]
    for choices in (
        alone,
        list(_axes_of_equal_length(examples, axes)),
        list(_axes_in_proportion(examples, axes)),
    ):
        fitting = [choice for choice in choices if _runs(module, examples, choice, shapes)]
        if len(fitting) > 1:
            listed = "; ".join(spell("dynamic", choice) for choice in fitting)
            raise InputError(
                f"{title} takes other lengths along several axes; say which one is time, as in {listed}, or that none "
                f"is: {spell('dynamic', {})}"
            )
        if fitting:
            time_axes = fitting[0]
            if choices is not alone:
                return time_axes
            extended = _extend(examples, axes, time_axes)
            return extended if extended and _runs(module, examples, extended, shapes) else time_axes
    return {}


def _extend(
    examples: Mapping[str, Array], axes: list[tuple[str, int]], time_axes: InputAxes
) -> InputAxes | None:
    """Return the axis that was found, with the axes of its length in other inputs; None without one, or if one has two.

    A module that reads only a part of an input, such as a loop over the frames of another one, takes either alone.
    """
    ((name, axis),) = ((name, axis) for name, named_axes in time_axes.items() for axis in named_axes)
    size = examples[name].shape[axis]
    others = [
        (other, place) for other, place in axes if other != name and examples[other].shape[place] == size
    ]
    if not others or len(dict(others)) < len(others):
        return None
    return time_axes | {other: {place: SYMBOL} for other, place in others}


def _axes_of_equal_length(examples: Mapping[str, Array], axes: list[tuple[str, int]]) -> Iterator[InputAxes]:
    """Yield sets of axes of equal length, one axis of each input that has this length once."""
    for size in sorted({examples[name].shape[axis] for name, axis in axes}):
        axes_of_size = [(name, axis) for name, axis in axes if examples[name].shape[axis] == size]
        names = [name for name, _ in axes_of_size]
        if len(names) == len(set(names)) > 1:
            yield {name: {axis: SYMBOL} for name, axis in axes_of_size}


def _axes_in_proportion(examples: Mapping[str, Array], axes: list[tuple[str, int]]) -> Iterator[InputAxes]:
    """Yield sets of one axis of each input, all multiples of the shortest: features, and the samples of each frame."""
    for size in sorted({examples[name].shape[axis] for name, axis in axes}):
        options: dict[str, list[tuple[int, int]]] = {}
        for name, axis in axes:
            times, rest = divmod(examples[name].shape[axis], size)
            if not rest:
                options.setdefault(name, []).append((axis, times))
        if len(options) > 1:
            for chosen in islice(product(*options.values()), MAX_TRIALS):
                factors = [times for _, times in chosen]
                if min(factors) == 1 < max(factors):
                    yield {
                        name: {axis: f"{times}*{SYMBOL}" if times > 1 else SYMBOL}
                        for name, (axis, times) in zip(options, chosen)
                    }


def _runs(
    module: RunWhole, examples: Mapping[str, Array], axes: InputAxes, shapes: list[tuple[int, ...]]
) -> bool:
    """Return whether the module runs at another length and its outputs change their shapes."""
    samples = {name: SampledInputs(value, axes.get(name, {})) for name, value in examples.items()}
    sample_lengths = lengths_of(samples)
    shorter, longer = variations(sample_lengths, list(sample_lengths))
    trials = [length for length in chain(*zip_longest(longer, shorter)) if length is not None]
    for lengths in trials[:MAX_TRIALS]:
        try:
            outputs = module(draw_inputs(samples, lengths, np.random.default_rng(0)))
        except InputError:
            continue
        return [value.shape for value in outputs.values()] != shapes
    return False


def describe_time(axes: Mapping[str, Mapping[int, str]]) -> str:
    """Return the text that tells the user which axes were found."""
    listed: Any = " and ".join(
        f"axis {axis} of {name}" for name, named_axes in axes.items() for axis in named_axes
    )
    return f"time ({SYMBOL}) is {listed}: the module runs at other lengths; {spell('dynamic', axes)} says so"


def describe_no_time() -> str:
    """Return the text for a module without frames."""
    return (
        "no axis is assumed to be time: along none does the module run at other lengths and return outputs that become "
        f"longer; {spell('dynamic', {'x': {2: SYMBOL}})} names one, {spell('dynamic', {})} says that there is none"
    )
