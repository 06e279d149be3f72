"""Models with a lookup that fails for some values."""

import functools

import numpy as np

from pulse.ops.gather import Gather
from pulse.program.program import Program
from tests.streaming.models import TypedBuilder, program

ROWS, PULSE = 8, 4


@functools.cache
def lookup(backend: str) -> Program:
    """The model i [T] -> y [T] that looks up rows of a table."""
    builder = TypedBuilder()
    i = builder.source("i", "T,i64")
    typed = builder.finish(y=builder.wire("the", Gather(0), builder.constant("rows", np.arange(ROWS)), i))
    return program(typed, PULSE, backend)
