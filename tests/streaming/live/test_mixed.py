"""Programs of several backends in live runs: they run in Python; where they cannot, an error says so."""

from typing import Any

import numpy as np
import pytest

import pulse
from pulse.build import Conv1D, GraphView, ReLU, Sequential, Tanh
from pulse.errors import InputError, PulseError
from tests.noise import normal_noise
from tests.streaming.live.runs import BLOCK, late_by, play_with_changes, played_by, runs
from tests.streaming.models import cached_program, copy_model


def mixed_program(backend: str) -> Any:
    """A program with two convolutions in numba and a part on another backend between them."""
    middle = ReLU("middle")
    view = Sequential([Conv1D(1, 4, 3, padding_dims=[2, 0]), middle, Conv1D(4, 1, 3, padding_dims=[2, 0])])
    GraphView([middle]).set_backend(backend)
    return pulse.stream(pulse.load(view, inputs={"x": "1,1,T"}), pulse=BLOCK)


@pytest.mark.parametrize("backend", ["numpy", "onnxruntime"])
def test_a_mixed_program_is_played(backend: str) -> None:
    pytest.importorskip(backend, reason=f"pip install {backend}")
    compiled, x = mixed_program(backend), normal_noise(20 * BLOCK, 1)
    name = compiled.outputs[0].name
    with runs(compiled, records=True) as (host, live):
        assert (live.setup.backend, live.setup.engine) == (f"numba + {backend}", "python")
        snapshot: list[bytes] = []
        control, again = live.control, np.concatenate([x, x[10 * BLOCK :]])
        played = np.concatenate(
            play_with_changes(
                host, again, lambda: snapshot.extend(control.snapshot()), lambda: control.restore(snapshot)
            )
        )
        delay = live.delay.frames
    expected = played_by(compiled, x, name)
    input_expected = np.concatenate([expected, expected[10 * BLOCK :]])
    np.testing.assert_array_equal(played, late_by(input_expected, delay, len(again)))


def test_unsupported_uses_of_a_mixed_program_are_refused() -> None:
    compiled = mixed_program("numpy")
    with pytest.raises(InputError, match=r"engine.*callback.*runs on numba \+ numpy, in Python.*worker"):
        runs(compiled, engine="callback").__enter__()
    with (
        runs(compiled) as (_, live),
        pytest.raises(PulseError, match=r"swap: .*runs on numba \+ numpy, in Python"),
    ):
        live.control.swap(cached_program(copy_model))
    with (
        runs(cached_program(copy_model)) as (_, live),
        pytest.raises(InputError, match=r"numba \+ numpy, in Python; compile"),
    ):
        live.control.swap(plain_mixed())


def plain_mixed() -> Any:
    """The ports of ``copy_model``, on two backends."""
    view = Sequential([Tanh("first"), second := ReLU("y")])
    GraphView([second]).set_backend("numpy")
    return pulse.stream(pulse.load(view, inputs={"x": "1,T"}), pulse=BLOCK)
