"""The longest stream that a model takes: a limit where one is proved, never a guess."""

import numpy as np
import pytest

from pulse.dim import SymbolScope
from pulse.ops.reduce import Reduce
from pulse.ops.shape import Reshape
from pulse.pulsify.stream_lengths import allows_length, longest_stream
from streaming import Session
from tests.noise import normal_noise
from tests.pulse.model_builder import ModelBuilder


def limit_of(*assumptions: str) -> int | None:
    scope = SymbolScope()
    symbol = scope.symbol("T")
    for assumption in ("T >= 0", *assumptions):
        scope.assume(assumption)
    longest = longest_stream(symbol, scope.assumptions)
    assert longest is None or allows_length(longest, symbol, scope.assumptions)
    return longest


@pytest.mark.parametrize("multiple", [*range(1, 50), 75, 160, 320, 441, 480, 548, 1000, 1072, 5000])
def test_a_multiple_is_not_a_limit(multiple: int) -> None:
    assert limit_of(f"T/{multiple}*{multiple} == T") is None


def test_limits_are_the_longest_that_the_assumptions_allow() -> None:
    assert limit_of("T <= 100") == 100
    assert limit_of("T/160*160 == T", "T <= 16100") == 16000
    assert limit_of("T/480*480 == T", "T/160 <= 1000") == 159840
    assert limit_of("(T+3)/2 == min(T+2, 70)") == 138
    assert limit_of("T/7 <= 2", "T/5*5 == T") == 20
    assert limit_of("T <= 1000000", "T-T/3*3 == 1") == 1000000


@pytest.mark.parametrize("size", [320, 480, 548])
def test_frames_of_any_size_stream_without_end(size: int) -> None:
    """A reshape to frames needs whole ones, of which there may be any number."""
    builder = ModelBuilder(x="1,T")
    rows = builder.add(
        "rows", Reshape((builder.dim("1"), builder.dim(f"T/{size}"), builder.dim(str(size)))), builder["x"]
    )
    model = builder.model(builder.add("y", Reduce("mean", (2,), False), rows))
    program = model.pulsify().compile("numpy")
    assert program.limit is None
    x = normal_noise(1, 7 * size)
    session = Session(program)
    pieces = [
        *(session.push(x[:, start : start + 333]) for start in range(0, 7 * size, 333)),
        session.flush(),
    ]
    (name,) = pieces[0]
    y = np.concatenate([piece[name] for piece in pieces], 1)
    np.testing.assert_allclose(y, model.run({"x": x})[name], 1e-5, 1e-6)
