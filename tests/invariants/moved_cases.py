"""Operator cases whose inputs are shifted in time by the fronts before them."""

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
from tests.invariants.fronts import Front, join_fronts, opset_of, raw
from tests.invariants.operator_cases import Runners, compare_programs
from tests.pulse.cases.build import Case
from tests.pulse.cases.families import all_cases, newest_cases

OLDEST = 10
"""The opset from which on a front can be written."""


@dataclass(frozen=True)
class StreamingCase:
    """A case that streams, and the stream axis of each input that does."""

    case: Case
    axes: Mapping[str, int]
    relations: frozenset[str]

    @property
    def frames(self) -> int:
        """How many there are of the case's own inputs."""
        name, axis = next(iter(self.axes.items()))
        return self.case[2][name].shape[axis]


@cache
def movable_cases() -> tuple[Case, ...]:
    """The newest cases that a front can be written for."""
    return newest_cases(case for case in all_cases() if opset_of(case[1]) >= OLDEST)


def assignments(feeds: Mapping[str, Array]) -> Iterator[dict[str, int]]:
    """Stream axes: any axis of any input, alone and together with axes of the same place and length elsewhere."""
    earlier: set[tuple[tuple[str, int], ...]] = set()
    for name, array in feeds.items():
        for axis, size in enumerate(array.shape):
            alone = {name: axis}
            front, back = dict(alone), dict(alone)
            for other, beside in feeds.items():
                place = axis - array.ndim + beside.ndim
                if other != name and axis < beside.ndim and beside.shape[axis] == size:
                    front[other] = axis
                if other != name and 0 <= place < beside.ndim and beside.shape[place] == size:
                    back[other] = place
            for axes in (alone, front, back):
                key = tuple(sorted(axes.items()))
                if key not in earlier:
                    earlier.add(key)
                    yield axes


def _specs(case: Case, axes: Mapping[str, int], fronts: Mapping[str, Front]) -> dict[str, str]:
    specs: dict[str, str] = {}
    for name, array in case[2].items():
        dims = ["T" if axes.get(name) == axis else str(size) for axis, size in enumerate(array.shape)]
        specs[raw(name) if name in fronts else name] = ",".join([*dims, dtype_name(array.dtype)])
    return specs


def load_case(case: Case, axes: Mapping[str, int], fronts: Mapping[str, Front]) -> TypedModel:
    """The typed model of a case after these fronts. Raises LoadError, FactError."""
    proto = join_fronts(case[1], fronts, axes, case[2])
    return pulse.load(proto, inputs=_specs(case, axes, fronts)).analyse()


def streaming_case(case: Case, axes: Mapping[str, int]) -> StreamingCase | None:
    """The case as it is, where it streams over these axes and takes inputs of its own length."""
    try:
        typed = load_case(case, axes, {})
        model = pulsify(typed)
    except PulseError:
        return None
    relations = relate(model.typed, model.symbol).relations.values()
    streaming = StreamingCase(case, axes, frozenset(type(relation).__name__ for relation in relations))
    return streaming if compare_programs(typed, [], dict(case[2]), case[0]) else None


def attempt(
    moved: StreamingCase, fronts: Mapping[str, Front], times: int, runners: Runners, rng: np.random.Generator
) -> str:
    """The outcome of a case after these fronts, at a pulse ``times`` its smallest.

    It must stream where its inputs keep their length, and give the offline output of each length that it takes.
    """
    name, _, feeds = moved.case
    context = (name, dict(moved.axes), {key: front.name for key, front in fronts.items()}, times)
    same = all(front.keeps_length for front in fronts.values())
    try:
        typed = load_case(moved.case, moved.axes, fronts)
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
    front = next(iter(fronts.values()))
    suiting = [frames for frames in range(1, 3 * moved.frames + 9) if front.frames(frames) == moved.frames]
    ran = False
    other = int(rng.integers(1, 4)) if rng.random() < 0.5 else moved.frames + int(rng.integers(3, 12))
    for frames in dict.fromkeys([*suiting[:1], other]):
        values = {key: array for key, array in feeds.items() if key not in fronts}
        for key, axis in moved.axes.items():
            index = rng.integers(0, feeds[key].shape[axis], frames)
            values[raw(key) if key in fronts else key] = np.take(feeds[key], index, axis)
        ran |= compare_programs(typed, programs, values, (*context, frames))
    return "equal" if ran else "no length"


def _without_sizes(reason: str) -> str:
    """A reason without its dims, which commas set apart."""
    return re.sub(r", [^,]*T[^,]*,", "", reason)
