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
    """A whole stream; and which process ran it."""
    session = Session(program, constants)
    ready, rest = session.push(x), session.flush()
    return os.getpid(), join_calls(program, [ready, rest])


def go_on(session: Session, x: Array) -> tuple[dict[str, Array], Session]:
    """More of a stream that has begun elsewhere, and the session as it is then."""
    return session.push(x), session


def join_calls(program: Program, pieces: list[dict[str, Array]]) -> dict[str, Array]:
    """The streaming outputs of several calls."""
    ports = [port for port in program.outputs if port.streams]
    return {port.name: np.concatenate([piece[port.name] for piece in pieces], port.axis) for port in ports}


def attributes(item: Any) -> dict[str, Any]:
    """The result of a program or model that has arrived."""
    return {"process": os.getpid(), "name": type(item).__name__}
