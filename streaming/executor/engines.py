"""The choice of the engine that runs a program."""

from pulse.program.program import Program
from streaming.executor.engine import Engine
from streaming.executor.thread_engine import ThreadEngine
from streaming.realtime import Realtime


def engine_for(program: Program, realtime: Realtime | None) -> Engine:
    """Create the engine for a program's backend."""
    if program.backend == "numba":
        from streaming.executor.native_engine import NativeEngine

        return NativeEngine(realtime)
    return ThreadEngine(realtime)
