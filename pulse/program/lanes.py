"""Lanes: several streams of one program, stepped in one call."""

from collections.abc import Iterator, Sequence

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array, dtype_name, shape_text
from pulse.program.program import Feed, Program, State
from pulse.pulsify.model import Port


class Lanes:
    """Several streams of one program, stepped in one call. Each joins, stalls, ends and leaves by itself.

    ``lanes[i]`` is the state of lane i, to flush, reset, snapshot and restore it; at first all have joined.
    Not safe for use by two threads at once.
    """

    def __init__(self, program: Program, states: Sequence[State]) -> None:
        self.program = program
        self._states = tuple(states)
        self._joined = set(range(len(states)))
        self._streaming = [port for port in program.inputs if port.streams]

    def __len__(self) -> int:
        return len(self._states)

    def __getitem__(self, number: int) -> State:
        return self._states[number]

    def __iter__(self) -> Iterator[State]:
        return iter(self._states)

    @property
    def joined(self) -> list[int]:
        """The lanes that take part."""
        return sorted(self._joined)

    def join(self) -> int:
        """A free lane for a new stream, at its beginning. Raises InputError where none is free."""
        free = next((number for number in range(len(self)) if number not in self._joined), None)
        if free is None:
            raise InputError(f"all {len(self)} lanes are taken; let one leave, or spawn more")
        self._states[free].reset()
        self._joined.add(free)
        return free

    def leave(self, number: int) -> None:
        """Give a lane back; flush it before, if its last frames matter. Raises InputError where it is free."""
        self._require([number])
        self._joined.remove(number)

    def step(self, feed: Feed | Array, lanes: Sequence[int] | None = None) -> dict[str, Array]:
        """Run one pulse of some lanes; the others stall.

        feed     input name -> array [lanes, …], a pulse of the port's shape for each lane; an array where one input
                 streams
        lanes    their numbers, in the order of the arrays; all that have joined by default
        returns  output name -> array [lanes, …], the caller's to keep
        Raises   InputError: names, shape or dtype differ, or a lane is free or has ended; nothing has changed then
        """
        chosen = self.joined if lanes is None else [int(number) for number in lanes]
        checked = self._checked(feed, len(chosen))
        self._require(chosen)
        for number in chosen:
            try:
                self._states[number].check_open()
            except InputError as error:
                raise InputError(f"lane {number}: {error}") from None
        return self._run(checked, chosen)

    def _run(self, feed: dict[str, Array], lanes: Sequence[int]) -> dict[str, Array]:
        """One pulse of checked inputs."""
        results = [
            self._states[number].step({name: array[i] for name, array in feed.items()})
            for i, number in enumerate(lanes)
        ]
        return {
            port.name: np.stack([result[port.name] for result in results])
            if results
            else np.zeros((0, *port.shape), port.dtype)
            for port in self.program.outputs
        }

    def _require(self, lanes: Sequence[int]) -> None:
        for number in lanes:
            if number not in self._joined:
                known = (
                    "is free; join it first" if 0 <= number < len(self) else f"does not exist of {len(self)}"
                )
                raise InputError(f"lane {number} {known}")
        if len(set(lanes)) != len(lanes):
            raise InputError(f"lanes {list(lanes)} name one twice; step it twice")

    def _checked(self, feed: Feed | Array, count: int) -> dict[str, Array]:
        named = self._named(feed)
        wanted = {port.name: port for port in self._streaming}
        if named.keys() != wanted.keys():
            raise InputError(f"feed {'; '.join(_form(port, count) for port in self._streaming)}")
        for name, array in named.items():
            if array.shape != (count, *wanted[name].shape) or array.dtype != wanted[name].dtype:
                found = f"{shape_text(array.shape)},{dtype_name(array.dtype)}"
                raise InputError(f"expected {_form(wanted[name], count)}, got {found}")
        return named

    def _named(self, feed: Feed | Array) -> dict[str, Array]:
        if isinstance(feed, np.ndarray):
            if len(self._streaming) != 1:
                names = ", ".join(port.name for port in self._streaming)
                raise InputError(f"{len(self._streaming)} inputs stream: feed them by name, {names}")
            return {self._streaming[0].name: feed}
        return {name: np.asarray(array) for name, array in feed.items()}


def _form(port: Port, count: int) -> str:
    return f"{port.name}: {shape_text((count, *port.shape))},{dtype_name(port.dtype)}"


def lane_count(count: int) -> int:
    """A number of lanes. Raises InputError where it is not positive."""
    if count < 1:
        raise InputError(f"{count} lanes: at least one is needed")
    return count
