"""Operator cases whose inputs are shifted in time by nodes before them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

import pulse
from pulse.errors import FactError, LoadError, PulseError, PulsifyError
from pulse.facts import Array, dtype_name
from pulse.models import TypedModel
from pulse.pulsify.driver import pulsify
from pulse.pulsify.stream_relations import relate
from tests.invariants.operator_cases import Runners, compare_programs
from tests.invariants.shifting_nodes import Shift, insert_shifts, opset_of, source_name
from tests.pulse.cases.build import Case
from tests.pulse.cases.families import all_cases, newest_cases

MIN_OPSET = 10
"""The first opset in which a shift can be written."""


@dataclass(frozen=True)
class StreamingCase:
    """A case that streams, and the stream axis of each input that does."""

    case: Case
    axes: Mapping[str, int]
    relations: frozenset[str]

    @property
    def frames(self) -> int:
        """Number of frames of the case's own inputs."""
        name, axis = next(iter(self.axes.items()))
        return self.case[2][name].shape[axis]


@cache
def shiftable_cases() -> tuple[Case, ...]:
    """The newest cases that a shift can be written for."""
    return newest_cases(case for case in all_cases() if opset_of(case[1]) >= MIN_OPSET)


def assignments(feeds: Mapping[str, Array]) -> Iterator[dict[str, int]]:
    """Stream axes: any axis of any input, alone and together with axes of the same place and length elsewhere."""
    earlier: set[tuple[tuple[str, int], ...]] = set()
    for name, array in feeds.items():
        for axis, size in enumerate(array.shape):
            alone = {name: axis}
            from_first, from_last = dict(alone), dict(alone)
            for other, other_array in feeds.items():
                place = axis - array.ndim + other_array.ndim
                if other != name and axis < other_array.ndim and other_array.shape[axis] == size:
                    from_first[other] = axis
                if other != name and 0 <= place < other_array.ndim and other_array.shape[place] == size:
                    from_last[other] = place
            for axes in (alone, from_first, from_last):
                key = tuple(sorted(axes.items()))
                if key not in earlier:
                    earlier.add(key)
                    yield axes


def _specs(case: Case, axes: Mapping[str, int], shifts: Mapping[str, Shift]) -> dict[str, str]:
    specs: dict[str, str] = {}
    for name, array in case[2].items():
        dims = ["T" if axes.get(name) == axis else str(size) for axis, size in enumerate(array.shape)]
        specs[source_name(name) if name in shifts else name] = ",".join([*dims, dtype_name(array.dtype)])
    return specs


def load_case(case: Case, axes: Mapping[str, int], shifts: Mapping[str, Shift]) -> TypedModel:
    """The typed model of a case after these shifts. Raises LoadError, FactError."""
    proto = insert_shifts(case[1], shifts, axes, case[2])
    return pulse.load(proto, inputs=_specs(case, axes, shifts)).analyse()


def streaming_case(case: Case, axes: Mapping[str, int]) -> StreamingCase | None:
    """The case as it is, or None if it does not stream over these axes or refuses inputs of its own length."""
    try:
        typed = load_case(case, axes, {})
        model = pulsify(typed)
    except PulseError:
        return None
    relations = relate(model.typed, model.symbol).relations.values()
    streaming = StreamingCase(case, axes, frozenset(type(relation).__name__ for relation in relations))
    return streaming if compare_programs(typed, [], dict(case[2]), case[0]) else None


def attempt(
    streaming: StreamingCase,
    shifts: Mapping[str, Shift],
    times: int,
    runners: Runners,
    rng: np.random.Generator,
) -> str:
    """The outcome of a case after these shifts, at a pulse ``times`` its smallest.

    It must stream if its inputs keep their length, and its output must equal offline at each length that it takes.
    """
    name, _, feeds = streaming.case
    context = (name, dict(streaming.axes), {key: shift.name for key, shift in shifts.items()}, times)
    same = all(shift.keeps_length for shift in shifts.values())
    try:
        typed = load_case(streaming.case, streaming.axes, shifts)
        model = pulsify(typed)
        if times > 1:
            model = pulsify(typed, pulse=times * model.pulse)
    except (LoadError, FactError) as error:
        assert not same, (context, str(error))
        return "its lengths do not fit"
    except PulsifyError as error:
        assert not same, (context, str(error))
        assert error.refusals, (context, str(error))
        return "; ".join(sorted({_without_sizes(refusal.reason) for refusal in error.refusals}))
    programs = runners(model, rng)
    shift = next(iter(shifts.values()))
    suiting = [
        frames for frames in range(1, 3 * streaming.frames + 9) if shift.frames(frames) == streaming.frames
    ]
    ran = False
    other = int(rng.integers(1, 4)) if rng.random() < 0.5 else streaming.frames + int(rng.integers(3, 12))
    for frames in dict.fromkeys([*suiting[:1], other]):
        values = {key: array for key, array in feeds.items() if key not in shifts}
        for key, axis in streaming.axes.items():
            index = rng.integers(0, feeds[key].shape[axis], frames)
            values[source_name(key) if key in shifts else key] = np.take(feeds[key], index, axis)
        ran |= compare_programs(typed, programs, values, (*context, frames))
    return "equal" if ran else "no length"


def _without_sizes(reason: str) -> str:
    """A reason without its dims, which commas set apart."""
    return re.sub(r", [^,]*T[^,]*,", "", reason)
