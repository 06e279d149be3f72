"""Programs of native kernels, compiled or from a file."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from pulse.errors import InputError
from pulse.program.native.native_executable import NativeExecutable
from pulse.program.native.native_state import NativeState
from pulse.program.program import MAX_SPECIALISE_MEGABYTES, MAX_SPECIALISE_SECONDS
from pulse.program.streams.feeds import Feed
from pulse.support.mapping import aligned_bytes

if TYPE_CHECKING:
    from pulse.program.native.interleaved_table import InterleavedTable
    from pulse.program.specialise.outcome import Specialisation
    from pulse.program.streams.lanes import Lanes


class KernelProgram(NativeExecutable):
    """A program of native kernels, compiled or from a file: it makes streams, single or in lanes."""

    NOT_PICKLED = (*NativeExecutable.NOT_PICKLED, "_lanes_table")

    def spawn(self, constants: Feed | None = None) -> NativeState:
        state = NativeState(
            self, constants, aligned_bytes(self.initial.size), aligned_bytes(self.stream_arena_bytes)
        )
        state.prepare_step()
        return state

    def specialise(
        self,
        seconds: float = MAX_SPECIALISE_SECONDS,
        megabytes: float = MAX_SPECIALISE_MEGABYTES,
        min_gain: float | None = None,
    ) -> "Specialisation":
        from pulse.program.specialise.specialised_kernels import specialise

        return specialise(self, seconds, megabytes, min_gain)

    def use_specialised_kernels(self, kernels: Sequence[str]) -> None:
        """Make all streams run the specialised kernels of kernels that are in the folder of compiled kernels.

        Streams that run take each row at its next call. Raises CompileError: the code cannot be linked
        """
        from pulse.program.specialise.kernel_rows import put_kept_rows

        put_kept_rows(self.unlinked, kernels, self.table)
        self.specialised_kernels = tuple(kernels)

    def spawn_many(self, count: int, constants: Feed | None = None) -> "Lanes":
        if self.threads > 1:
            raise InputError(
                f"{self.model.title}: streams in lanes step on one thread; call "
                f"with_threads(1).spawn_many({count}), or spawn streams one by one"
            )
        from pulse.program.native.lane_blocks import fills_blocks
        from pulse.program.native.native_lanes import NativeLanes

        interleaved = self.interleaved_table if fills_blocks(self, count) else None
        return NativeLanes(self, count, constants, interleaved)

    @property
    def interleaved_table(self) -> "InterleavedTable | None":
        """The instructions and weights of sixteen lanes in one memory, for all lanes; None if there are none."""
        return None if isinstance(self._lanes_table, str) else self._lanes_table

    @property
    def separate_lanes_reason(self) -> str | None:
        """Why sixteen lanes do not share one memory: node and reason; None if they do."""
        return self._lanes_table if isinstance(self._lanes_table, str) else None

    @cached_property
    def _lanes_table(self) -> "InterleavedTable | str":
        from pulse.program.lower.interleaved.lowering import NotInterleavedError
        from pulse.program.native.interleaved_table import interleave

        try:
            return interleave(self)
        except NotInterleavedError as error:
            return str(error)
