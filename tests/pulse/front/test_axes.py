"""Axes added, taken away and in another order, against numpy."""

import numpy as np
import pytest

from pulse.errors import InputError
from pulse.front import squeeze, transpose, unsqueeze
from tests.noise import normal_noise
from tests.pulse.front.stream_checks import assert_near, assert_streams_agree, offline

X = normal_noise(1, 6, 21)


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -4])
def test_squeeze_undoes_unsqueeze(axis: int) -> None:
    model = unsqueeze(axis, "1,6,frames")
    expected = np.expand_dims(X, axis)
    assert_near(offline(model, X), expected)
    assert assert_streams_agree(model, X) == {"y": 0}
    shape = ",".join("frames" if size == 21 else str(size) for size in expected.shape)
    back = squeeze(axis, shape)
    assert_near(offline(back, expected), X)
    assert assert_streams_agree(back, expected) == {"y": 0}


@pytest.mark.parametrize("perm", [[0, 1, 2], [0, 2, 1], [2, 0, 1], [-1, 0, 1]])
def test_transpose_moves_the_axes(perm: list[int]) -> None:
    model = transpose(perm, "1,6,frames")
    assert_near(offline(model, X), X.transpose(perm))
    assert assert_streams_agree(model, X) == {"y": 0}


def test_invalid_axes_are_refused() -> None:
    with pytest.raises(InputError, match=r"unsqueeze: axis=4 must be from -4 to 3"):
        unsqueeze(4, "1,6,frames")
    with pytest.raises(InputError, match=r"squeeze: axis 1 of '1,6,frames' must have the size 1"):
        squeeze(1, "1,6,frames")
    with pytest.raises(InputError, match=r"squeeze: axis 2 of '1,6,frames' must have the size 1"):
        squeeze(2, "1,6,frames")
    with pytest.raises(
        InputError, match=r"transpose: perm=\[0, 1, 1\] must have each axis of '1,6,frames' once"
    ):
        transpose([0, 1, 1], "1,6,frames")
    with pytest.raises(InputError, match="axis=3 is out of range for"):
        transpose([0, 1, 3], "1,6,frames")
