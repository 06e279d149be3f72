"""``keep_frame``: only frames of the stream replace a state, as plain Python and compiled."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse.dim import SymbolScope, TDim
from pulse.ops.clock import Clock
from pulse.program.kernels.scan import keep_frame
from pulse.support.bounds import FAR
from tests.pulse.program.kernels.positional_rows import At, run_both

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
def test_frames_of_the_stream_only(
    pulse: int, pulses: int, offset: int, end: int | None, shape: tuple[int, ...], dtype: type[np.generic]
) -> None:
    old, new = np.zeros(shape, dtype), np.ones(shape, dtype)
    start, stop = Clock(SYMBOL, pulses, end).span(pulse, offset, TDim.of(SYMBOL))
    arrays = [new, old, np.array([pulses, 7]), np.array([FAR if end is None else end])]
    for i in range(pulse):
        args = (At(0), At(1), At(2), At(3), pulse, i, offset, new.nbytes)
        for results in run_both(keep_frame, arrays, *args):
            np.testing.assert_array_equal(results[1], new if start <= i < stop else old)
