"""What a stream of a server must give: the outputs of the offline model."""

import numpy as np

from pulse.facts import Array
from pulse.interface import Port
from pulse.program.program import Program
from streaming.session import Session
from tests.streaming.executor.streams import join_pieces


def fixed_inputs(program: Program) -> list[Port]:
    return [port for port in program.inputs if not port.streams]


def expected_outputs(program: Program, inputs: dict[str, Array]) -> dict[str, Array]:
    session = Session(
        program, {port.name: np.full(port.shape, 1.5, port.dtype) for port in fixed_inputs(program)}
    )
    first = session.push(inputs)
    return join_pieces([first, session.flush()], program)
