"""Program: a pulsed model made ready to run, and its streams."""

from abc import abstractmethod

from pulse.errors import PulseError
from pulse.program.executable import Executable
from pulse.program.feeds import Feed
from pulse.program.lanes import Lanes, lane_count
from pulse.program.state import State


class Program(Executable):
    """A pulsed model made ready to run: immutable, shared by all of its streams."""

    @abstractmethod
    def spawn(self, constants: Feed | None = None) -> State:
        """A new stream. ``constants`` gives the inputs that do not stream. Raises InputError."""

    def spawn_many(self, count: int, constants: Feed | None = None) -> Lanes:
        """``count`` streams that step in one call; ``constants`` are those of all. Raises InputError."""
        return Lanes(self, [self.spawn(constants) for _ in range(lane_count(count))])


def require_program(program: object) -> Program:
    """The program, or an error that says how to get one."""
    if isinstance(program, Program):
        return program
    raise PulseError(f"expected a Program, got {type(program).__name__}; use model.pulsify(…).compile()")
