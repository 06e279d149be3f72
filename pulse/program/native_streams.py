"""The streams of a program of native kernels, one by one or in lanes."""

from pulse.program.feeds import Feed
from pulse.program.lanes import Lanes
from pulse.program.memory import aligned_bytes
from pulse.program.native import NativeExecutable, NativeState
from pulse.program.program import Program


class NativeStreams(NativeExecutable, Program):
    """A program of native kernels."""

    def spawn(self, constants: Feed | None = None) -> NativeState:
        return NativeState(self, constants, aligned_bytes(self.initial.size), aligned_bytes(self.arena_bytes))

    def spawn_many(self, count: int, constants: Feed | None = None) -> Lanes:
        from pulse.program.native_lanes import NativeLanes

        return NativeLanes(self, count, constants)
