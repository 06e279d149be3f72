"""Lanes: several streams of one program, stepped in one call."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.errors import FaultError, InputError
from pulse.facts import Array
from pulse.ops.clock import Clock
from pulse.program.streams.feeds import Feed, array_text, feeds_by_name, port_text
from pulse.program.streams.state import State, StreamedProgram
from pulse.support.record import record
from pulse.support.wording import count_of


@record
class LaneSelection:
    """The lanes of one call, in the order of its arrays: their numbers, as a list and as int64, and their clocks."""

    numbers: Sequence[int]
    index: NDArray[np.int64]
    clocks: Sequence[Clock]


class Lanes:
    """Several streams of one program, stepped in one call. Each joins, stalls, ends and leaves by itself.

    ``lanes[i]`` is the state of lane i, to flush, reset, snapshot and restore it; initially all have joined. A copy of
    it is an independent stream; a copy of the lanes has all of them. After any exception in ``step``, either all lanes
    are unchanged, or the selected ones refuse further calls until they are reset or restored.
    Not safe for use by two threads at once.
    """

    def __init__(self, program: StreamedProgram, states: Sequence[State]) -> None:
        self.program = program
        self._states = tuple(states)
        self._joined = set(range(len(states)))
        self._everyone: LaneSelection | None = None
        self._stepping: LaneSelection | None = None
        """The lanes that a call is changing."""
        self.alone = False
        """Whether each lane runs by itself, so that its results are bit-identical whichever lanes step with it."""
        self._interrupted = False
        """Whether an exception has interrupted some lane in a pulse."""
        self._any_failed = False
        """Whether any lane has had a fault."""
        self._streaming = {port.name: port for port in program.inputs if port.streams}
        self._pulses = np.zeros(len(self._states), np.int64)
        """The pulses that each lane has run."""
        for number, state in enumerate(self._states):
            state.clock.count_in(self._pulses[number : number + 1])

    def __len__(self) -> int:
        return len(self._states)

    def __getitem__(self, number: int) -> State:
        self._mark_states()
        return self._states[number]

    def __iter__(self) -> Iterator[State]:
        self._mark_states()
        return iter(self._states)

    def __reduce__(self) -> tuple[Any, ...]:
        snapshots = [state.snapshot() for state in self]
        return _restore, (self.program, self._states[0].constants, self.active_lanes, snapshots, self.alone)

    @property
    def active_lanes(self) -> list[int]:
        """The lanes that have joined."""
        return sorted(self._joined)

    def join(self) -> int:
        """Reset a free lane for a new stream; return its number. Raises InputError: no lane is free."""
        free = next((number for number in range(len(self)) if number not in self._joined), None)
        if free is None:
            raise InputError(f"all {len(self)} lanes are taken; let one leave, or spawn more")
        self._mark_states()
        self._states[free].reset()
        self._everyone = None
        self._joined.add(free)
        return free

    def leave(self, number: int) -> None:
        """Free a lane; flush it before if its last frames matter. Raises InputError: it is free already."""
        self._require([number])
        self._everyone = None
        self._joined.remove(number)

    def step(self, feed: Feed | Array, lanes: Sequence[int] | None = None) -> dict[str, Array]:
        """Run one pulse of some lanes; the others stall.

        feed     input name -> array [lanes, …], a pulse of the port's shape for each lane; an array if one input
                 streams
        lanes    lane numbers, in the order of the arrays; default: all that have joined
        Returns  output name -> array [lanes, …], owned by the caller
        Raises   InputError: names, shape or dtype differ, or a lane is free or has ended; nothing has changed then.
                 FaultError: the lanes that the error names had faults, and refuse pulses until reset or restored. The
                 others have stepped; their results are in the error's ``outputs``
        """
        selection = (self._everyone or self._select_all()) if lanes is None else self._select(lanes)
        inputs = self._check(feed, len(selection.numbers))
        self._check_open(selection)
        pulse = selection.clocks[0].pulse if selection.clocks else 0
        try:
            results = self._run(inputs, selection)
            self._stepping = None
            failed = self._failed_lanes(selection)
            if failed:
                self._any_failed = True
                raise self._fail_lanes(failed, results)
            return results
        except FaultError:
            raise
        except BaseException:
            if selection.clocks and selection.clocks[0].pulse != pulse:
                self._stepping = selection
            self._mark_states()
            raise

    def _select_all(self) -> LaneSelection:
        """Select all lanes that have joined."""
        self._everyone = self._selection_of(self.active_lanes)
        return self._everyone

    def _select(self, lanes: Sequence[int]) -> LaneSelection:
        """Select lanes to step. Raises InputError: one is free, or named twice."""
        numbers = [int(number) for number in lanes]
        self._require(numbers)
        return self._selection_of(numbers)

    def _mark_states(self) -> None:
        """Mark the lanes that a call was changing when an exception ended it."""
        if self._stepping is not None:
            self._interrupted = True
            for number in self._stepping.numbers:
                self._states[number].changing = True
            self._stepping = None

    def _failed_lanes(self, selection: LaneSelection) -> list[int]:
        """Return the lanes with faults."""
        states = self._states
        return [n for n in selection.numbers if states[n].has_faulted and states[n].stops_at_faults]

    def _fail_lanes(self, failed: list[int], outputs: dict[str, Array]) -> FaultError:
        for number in failed:
            self._states[number].fail()
        faults = "; ".join(
            f"lane {number}: {fault}" for number in failed for fault in self._states[number].faults
        )
        return FaultError(
            f"{faults}. There is no result for that: feed other values, or limit them before the node (Clip, "
            "Where). These lanes cannot continue: lanes[i].reset() begins a new stream, restore() goes back to a "
            "snapshot. The other lanes have stepped; the error's outputs are theirs",
            [fault for number in failed for fault in self._states[number].faults],
            failed,
            outputs,
        )

    def _selection_of(self, numbers: Sequence[int]) -> LaneSelection:
        """Select lanes by number; they must exist and have joined."""
        return LaneSelection(numbers, np.array(numbers, np.int64), [self._states[n].clock for n in numbers])

    def _run(self, feed: dict[str, Array], selection: LaneSelection) -> dict[str, Array]:
        """Run one pulse of checked inputs; sets ``_stepping`` before it changes a lane."""
        marks = [(self._states[number], self._states[number].mark()) for number in selection.numbers]
        self._stepping = selection
        try:
            return self._one_by_one(feed, selection)
        except BaseException:
            for state, mark in marks:
                state.rewind(mark)
            self._stepping = None
            raise

    def _one_by_one(self, feed: dict[str, Array], selection: LaneSelection) -> dict[str, Array]:
        results = [
            self._states[number].advance({name: array[i] for name, array in feed.items()}, raises=False)
            for i, number in enumerate(selection.numbers)
        ]
        return {
            port.name: np.stack([result[port.name] for result in results])
            if results
            else np.zeros((0, *port.shape), port.dtype)
            for port in self.program.outputs
        }

    def _check_open(self, selection: LaneSelection) -> None:
        """Raise InputError if a lane has ended, failed, was interrupted in a pulse or would become too long."""
        if self._interrupted or self._stepping is not None:
            self._mark_states()
            self._interrupted = any(state.changing for state in self._states)
        elif (
            self.program.limit is None
            and not self._any_failed
            and not [clock for clock in selection.clocks if clock.end is not None]
        ):
            return
        for number in selection.numbers:
            try:
                self._states[number].check_open()
            except InputError as error:
                raise InputError(f"lane {number}: {error}") from None

    def _require(self, lanes: Sequence[int]) -> None:
        for number in lanes:
            if number not in self._joined:
                reason = (
                    "is free; join it first" if 0 <= number < len(self) else f"does not exist of {len(self)}"
                )
                raise InputError(f"lane {number} {reason}")
        if len(set(lanes)) != len(lanes):
            raise InputError(f"lanes {list(lanes)} name one lane twice; step it twice")

    def _check(self, feed: Feed | Array, count: int) -> dict[str, Array]:
        arrays = feeds_by_name(tuple(self._streaming.values()), feed)
        if arrays.keys() != self._streaming.keys():
            raise InputError(f"feed {'; '.join(port_text(port, count) for port in self._streaming.values())}")
        for name, array in arrays.items():
            port = self._streaming[name]
            if array.shape != (count, *port.shape) or array.dtype != port.dtype:
                raise InputError(f"expected {port_text(port, count)}, got {array_text(array)}")
        return arrays


def _restore(
    program: Any, constants: Feed, numbers: Sequence[int], snapshots: Sequence[bytes], alone: bool
) -> Lanes:
    """Restore copied or unpickled lanes."""
    lanes: Lanes = program.spawn_many(len(snapshots), constants)
    lanes.alone = alone
    for number, snapshot in enumerate(snapshots):
        lanes[number].restore(snapshot)
        if number not in numbers:
            lanes.leave(number)
    return lanes


def require_lane_count(count: int) -> int:
    """Return a number of lanes. Raises InputError: it is not positive."""
    if count < 1:
        raise InputError(f"{count_of(count, 'lane')}: at least one is needed")
    return count
