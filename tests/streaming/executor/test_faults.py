"""Values for which a node has no result end their stream alone, after its earlier outputs."""

import numpy as np
import pytest

from pulse.errors import FaultError
from streaming.executor import Executor
from tests.streaming.executor.lookup_model import PULSE, ROWS, lookup
from tests.streaming.executor.streams import assert_balanced, join_pieces

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize("wrong", [0, 9, 21, 22])
async def test_a_stream_fails_alone(backend: str, wrong: int) -> None:
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
    output = join_pieces(before, lookup(backend)).get("y", np.zeros(0))
    np.testing.assert_array_equal(output, bad[: wrong // PULSE * PULSE])
    np.testing.assert_array_equal(join_pieces(pieces, lookup(backend))["y"], well)
