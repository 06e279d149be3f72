"""``keep_frame``: only frames of the stream replace a state, as plain Python and compiled."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse.dim import SymbolScope, TDim
from pulse.ops.clock import Clock
from pulse.program.kernels.scan import KeepFrameRow
from pulse.support.bounds import UNBOUNDED
from tests.pulse.program.kernels.rows import run_both

SYMBOL = SymbolScope().symbol("S")


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 5),
    st.integers(0, 6),
    st.integers(-7, 9),
    st.none() | st.integers(0, 30),
    st.sampled_from([(), (3,), (2, 9)]),
    st.sampled_from([np.float32, np.int64, np.bool_]),
)
def test_only_frames_of_the_stream_replace_the_state(
    pulse: int, pulses: int, offset: int, end: int | None, shape: tuple[int, ...], dtype: type[np.generic]
) -> None:
    old, new = np.zeros(shape, dtype), np.ones(shape, dtype)
    start, stop = Clock(SYMBOL, pulses, end).span(pulse, offset, TDim.of(SYMBOL))
    for i in range(pulse):
        row = KeepFrameRow(
            new=new,
            state=old,
            clock=np.array([pulses, 7]),
            end=np.array([UNBOUNDED if end is None else end]),
            P=pulse,
            i=i,
            offset=offset,
            bytes=new.nbytes,
        )
        for results in run_both(row):
            np.testing.assert_array_equal(results["state"], new if start <= i < stop else old)
