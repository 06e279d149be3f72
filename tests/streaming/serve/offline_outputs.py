"""What a stream of a server must give: the outputs of the offline model."""

import numpy as np

from streaming.session import Session
from tests.streaming.executor.streams import joined


def fixed(program):
    return [port for port in program.inputs if not port.streams]


def expected(program, inputs):
    session = Session(program, {port.name: np.full(port.shape, 1.5, port.dtype) for port in fixed(program)})
    first = session.push(inputs)
    return joined([first, session.flush()], program)
