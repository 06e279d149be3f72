"""Prepare the kernels of a program before its first step; compilers are imported only if kernels are missing."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pulse.jit.registry import KERNELS
from pulse.program.machine.array_step import STEPPING

if TYPE_CHECKING:
    from pulse.program.backends.registry import Prepare


def kernel_preparation(live: bool = False) -> "Prepare":
    """Return a preparation that compiles in several processes, with a progress bar; of a live run's functions too."""

    def prepare(kernels: Sequence[str]) -> None:
        if not live and all(entry.is_cached for entry in (*STEPPING, *(KERNELS[name] for name in kernels))):
            return
        from streaming.compilation.warming import LIVE_ENTRIES, compile_in_parallel

        compile_in_parallel(*LIVE_ENTRIES if live else ())(kernels)

    return prepare
