"""Supported operators compute what LiteRT computes."""

import numpy as np
import pytest

import pulse
from tests.pulse.tflite.builder import SubgraphBuilder, file_bytes
from tests.pulse.tflite.cases.case import TfliteCase
from tests.pulse.tflite.cases.families import all_cases
from tests.pulse.tflite.litert import assert_agrees_with_litert, calls

CALLS = 4
SHARE = 0.01
"""Share of codes that may differ by a step: int16 codes, and 8-bit codes of quotients. Other 8-bit codes are equal."""


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name.replace(" ", "_"))
def test_agrees_with_litert(case: TfliteCase) -> None:
    rng = np.random.default_rng(1)
    data, feeds = file_bytes(case.graph), [case.feeds(rng) for _ in range(CALLS)]
    model = pulse.load(data).analyse()
    differ = total = 0
    for call, expected in zip(feeds, calls(data, feeds)):
        outputs = model.run(dict(zip(model.inputs, call)))
        for output, other in zip(outputs.values(), expected, strict=True):
            steps = case.steps if other.dtype.itemsize == 1 else 1
            differ += assert_agrees_with_litert(output, other, case.name, steps)
            total += other.size
    assert differ <= SHARE * total


def test_quotients_of_floats_are_rounded_down_as_in_litert() -> None:
    """The first two quotients are whole numbers in f32."""
    graph = SubgraphBuilder()
    a, b = graph.input((4,), name="a"), graph.input((4,), name="b")
    graph.outputs = [graph.result("FLOOR_DIV", [a, b], (4,), "FloorDivOptions")]
    data, feeds = file_bytes(graph), [np.float32([1.5, 88.8, -7, 1e-30]), np.float32([0.3, 0.3, 2, -3e38])]
    outputs = pulse.load(data).analyse().run(dict(zip("ab", feeds)))
    np.testing.assert_array_equal([*outputs.values()], [[4, 295, -4, -1]])
    np.testing.assert_array_equal(calls(data, [feeds])[0], [[4, 295, -4, -1]])


def test_shifts_to_the_right_are_those_of_litert() -> None:
    """A negative number is no shift; of a large one the sign remains."""
    graph = SubgraphBuilder()
    a, b = (graph.input((4,), "int32", name=name) for name in "ab")
    graph.outputs = [graph.result("RIGHT_SHIFT", [a, b], (4,), "RightShiftOptions", dtype="int32")]
    data, feeds = file_bytes(graph), [np.int32([7, -7, 7, -7]), np.int32([-2, -2, 1, 31])]
    outputs = pulse.load(data).analyse().run(dict(zip("ab", feeds)))
    np.testing.assert_array_equal([*outputs.values()], calls(data, [feeds])[0])
