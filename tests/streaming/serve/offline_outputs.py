"""The outputs of the offline model, which a stream of a server must give."""

import numpy as np

from pulse.facts import Array
from pulse.interface import Port
from pulse.program.program import Program
from streaming.session import Session
from tests.streaming.executor.streams import join_pieces


def block_shape(port: Port, frames: int) -> tuple[int, ...]:
    """The shape of a block of frames of a port; -1 where their number follows from the samples."""
    return tuple(frames if axis == port.axis else size for axis, size in enumerate(port.shape))


def fixed_inputs(program: Program) -> list[Port]:
    return [port for port in program.inputs if not port.streams]


def expected_outputs(program: Program, inputs: dict[str, Array]) -> dict[str, Array]:
    session = Session(
        program, {port.name: np.full(port.shape, 1.5, port.dtype) for port in fixed_inputs(program)}
    )
    first = session.push(inputs)
    return join_pieces([first, session.flush()], program)
