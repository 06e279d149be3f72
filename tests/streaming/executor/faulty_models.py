"""Models with a lookup that fails for some values."""

import functools

import numpy as np

from pulse.ops.gather import Gather
from tests.streaming.models import Sketch, program

ROWS, PULSE = 8, 4


@functools.cache
def lookup(backend):
    """Of i [T]: y [T], the row of a table."""
    sketch = Sketch()
    i = sketch.source("i", "T,i64")
    typed = sketch.finish(y=sketch.wire("the", Gather(0), sketch.constant("rows", np.arange(ROWS)), i))
    return program(typed, PULSE, backend)
