"""Functions that the processes of ``test_copies`` run: they are imported there."""

import os
from typing import Any

import numpy as np

from pulse.facts import Array
from pulse.program.program import Program
from streaming import Session


def stream_in_this_process(
    program: Program, constants: dict[str, Array], x: Array
) -> tuple[int, dict[str, Array]]:
    """Run a whole stream; return the process id and its outputs."""
    session = Session(program, constants)
    ready, rest = session.push(x), session.flush()
    return os.getpid(), join_calls(program, [ready, rest])


def continue_stream(session: Session, x: Array) -> tuple[dict[str, Array], Session]:
    """Push more frames into a session of another process; return the outputs and the session."""
    return session.push(x), session


def join_calls(program: Program, pieces: list[dict[str, Array]]) -> dict[str, Array]:
    """The joined streaming outputs of several calls."""
    ports = [port for port in program.outputs if port.streams]
    return {port.name: np.concatenate([piece[port.name] for piece in pieces], port.axis) for port in ports}


def attributes(item: Any) -> dict[str, Any]:
    """The process id and the type of an object that another process sent."""
    return {"process": os.getpid(), "name": type(item).__name__}
