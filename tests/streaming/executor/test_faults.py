"""Values for which a node has no result end their stream, and no other; what came before is given."""

import functools

import numpy as np
import pytest

from pulse.errors import FaultError
from pulse.ops.gather import Gather
from streaming.executor import Executor
from tests.streaming.executor.streams import assert_balanced, joined
from tests.streaming.models import Sketch, program

ROWS, PULSE = 8, 4
pytestmark = pytest.mark.anyio


@functools.cache
def lookup(backend):
    """Of i [T]: y [T], the row of a table."""
    sketch = Sketch()
    i = sketch.source("i", "T,i64")
    typed = sketch.finish(y=sketch.wire("the", Gather(0), sketch.constant("rows", np.arange(ROWS)), i))
    return program(typed, PULSE, backend)


@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize("wrong", [0, 9, 21, 22])
async def test_a_stream_fails_alone(backend, wrong):
    well = np.arange(23) % ROWS
    bad = well.copy()
    bad[wrong] = ROWS
    async with Executor(lookup(backend)) as executor:
        before = []
        with pytest.raises(FaultError, match=rf"the \(Gather\): 1 value .* in pulse {wrong // PULSE}"):
            async for outputs in executor.stream([bad]):
                before.append(outputs)
        pieces = [outputs async for outputs in executor.stream([well])]
        assert_balanced(executor.statistics())
    found = joined(before, lookup(backend)).get("y", np.zeros(0))
    np.testing.assert_array_equal(found, bad[: wrong // PULSE * PULSE])
    np.testing.assert_array_equal(joined(pieces, lookup(backend))["y"], well)
