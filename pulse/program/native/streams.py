"""The streams of a program of native kernels, single or in lanes."""

from typing import TYPE_CHECKING, Self

from pulse.errors import InputError
from pulse.program.native.executable import NativeExecutable, NativeState
from pulse.program.program import SPECIAL_MEGABYTES, SPECIAL_SECONDS, Program
from pulse.program.streams.feeds import Feed
from pulse.program.table.memory import aligned_bytes

if TYPE_CHECKING:
    from pulse.program.native.special_rows import Specialisation
    from pulse.program.streams.lanes import Lanes


class NativeStreams(NativeExecutable, Program):
    """Spawns the streams of a program of native kernels."""

    def spawn(self, constants: Feed | None = None) -> NativeState:
        return NativeState(
            self, constants, aligned_bytes(self.initial.size), aligned_bytes(self.scratch_bytes)
        )

    def with_threads(self, threads: int) -> Self:
        from pulse.program.machine.team import require_threads

        require_threads(threads)
        copy = object.__new__(type(self))
        for name, value in vars(self).items():
            if name not in ("thread_cuts", "_parallel"):
                setattr(copy, name, value)
        copy.threads = threads
        return copy

    def specialise(
        self, seconds: float = SPECIAL_SECONDS, megabytes: float = SPECIAL_MEGABYTES
    ) -> "Specialisation":
        from pulse.program.native.special_rows import specialise

        return specialise(self, seconds, megabytes)

    def spawn_many(self, count: int, constants: Feed | None = None) -> "Lanes":
        if self.threads > 1:
            raise InputError(
                f"{self.model.title}: streams in lanes step on one thread; call "
                f"with_threads(1).spawn_many({count}), or spawn streams one by one"
            )
        from pulse.program.native.lanes import NativeLanes

        return NativeLanes(self, count, constants)
