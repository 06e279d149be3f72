"""Codes of quantised models, and back."""

from collections.abc import Callable

import numpy as np
import pytest

from pulse import front
from pulse.errors import InputError
from tests.pulse.tflite.builder import SubgraphBuilder, file_bytes
from tests.pulse.tflite.litert import calls

SCALE, ZERO = 0.10196078568696976, -128


def values() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Features on, between and beyond the codes."""
    rng = np.random.default_rng(0)
    steps = np.concatenate([np.arange(0, 128, 0.5), rng.uniform(-50, 400, 144)])
    return (steps * np.float32(SCALE)).astype(np.float32).reshape(1, 10, 40)


def test_codes_are_those_of_litert() -> None:
    graph = SubgraphBuilder()
    x = graph.input((1, 10, 40))
    graph.outputs = [graph.result("QUANTIZE", [x], (1, 10, 40), "", 2, "int8", (SCALE, ZERO))]
    (expected,) = calls(file_bytes(graph), [[values()]])[0]
    (codes,) = front.quantize(SCALE, ZERO).run({"x": values()}).values()
    assert codes.dtype == np.int8
    assert np.array_equal(codes, expected)


def test_dequantized_codes_are_within_half_a_step() -> None:
    codes = front.quantize(SCALE, ZERO).run({"x": values()})["codes"]
    back = front.dequantize(SCALE, ZERO, "int8").run({"x": codes})["values"]
    expected = np.clip(values(), 0, 255 * SCALE)
    assert np.abs(back - expected).max() <= SCALE * 0.501


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0.0}, "scale=0.0 must be a finite number above 0"),
        ({"scale": 1.0, "type": "int4"}, "type='int4' must be one of"),
        ({"scale": 1.0, "zero": 1.5}, "zero=1.5 must be an integer"),
        ({"scale": 1.0, "zero": 128, "type": "int8"}, "zero=128 must be an integer from -128 to 127"),
        ({"scale": 1.0, "zero": -1, "type": "uint8"}, "zero=-1 must be an integer from 0 to 255"),
    ],
)
@pytest.mark.parametrize("function", [front.quantize, front.dequantize])
def test_bad_parameters_are_refused(
    options: dict[str, object], message: str, function: Callable[..., object]
) -> None:
    with pytest.raises(InputError, match=message):
        function(**options)  # pyright: ignore[reportArgumentType]
