"""Operators of ONNX files: which values are faults, and which have a result."""

from typing import Any

import numpy as np
import pytest
from onnx import NodeProto

import pulse
from pulse.errors import FaultError
from pulse.ops.gather_elements import GatherBatches
from pulse.ops.scatter import ScatterND
from pulse.program.whole_stream import stream_whole
from tests.pulse.cases.build import model, node
from tests.pulse.model_builder import ModelBuilder
from tests.pulse.program.faulty_models import F32, I64, U8, Feeds, programs, table


@pytest.mark.parametrize("kind", ["shift_left", "shift_right"])
@pytest.mark.parametrize("name", ["u8", "i8", "i32", "i64"])
def test_shifts_by_any_number_have_results(kind: str, name: str) -> None:
    """ONNX's test cases define shifts by any number of places: only the sign is left, for negative numbers, too."""
    builder = ModelBuilder(x=f"T,{name}", n=f"T,{name}")
    typed = builder.model(builder.apply(kind, builder["x"], builder["n"], name="y"))
    dtype = typed.inputs["x"].dtype
    places = [0, 1, 7, 8, 9, 31, 32, 33, 40, 63, 64, 100] + ([] if name[0] == "u" else [-1, -8, -100])
    x = np.array(
        [1, 5, 100] + ([] if name[0] == "u" else [-1, -6]) + ([1 << 45] if name == "i64" else []), dtype
    )
    feeds = {"x": np.repeat(x, len(places)), "n": np.tile(np.array(places, dtype), len(x))}
    for program in programs(typed, 4):
        np.testing.assert_array_equal(stream_whole(program, feeds)["y"], typed.run(feeds)["y"])


@pytest.mark.parametrize("name", ["i8", "i32"])
def test_the_smallest_integer_divided_by_minus_one_is_itself(name: str) -> None:
    builder = ModelBuilder(x=f"T,{name}", n=f"T,{name}")
    typed = builder.model(builder.apply("div", builder["x"], builder["n"], name="y"))
    dtype = typed.inputs["x"].dtype
    smallest = np.iinfo(dtype).min
    feeds = {"x": np.array([smallest, smallest, -7, 7], dtype), "n": np.array([-1, 1, 2, -2], dtype)}
    assert typed.run(feeds)["y"].tolist() == [smallest, smallest, -3, -3]
    for program in programs(typed, 4):
        assert stream_whole(program, feeds)["y"].tolist() == [smallest, smallest, -3, -3]


OPERATORS: dict[str, tuple[list[NodeProto], Feeds, Feeds, list[Any]]] = {
    "GatherND": (
        [node("GatherND", "table i", "y")],
        {"i": np.array([[0, 2], [1, -3], [-2, 0]] * 3)},
        {"table": table(2, 3)},
        [[0, 3], [1, -4], [2, 0], [-3, 1]],
    ),
    "Pow": ([node("Pow", "i half", "y")], {"i": np.arange(9)}, {"half": np.array(0.5, F32)}, [-2]),
    "Mod": ([node("Mod", "c i", "y")], {"i": np.arange(1, 10)}, {"c": np.array(7)}, [0]),
    "Cast": ([node("Cast", "i", "y", to=6)], {"i": np.arange(9, dtype=F32)}, {}, [np.nan, np.inf, 3e9]),
    "QuantizeLinear": (
        [node("QuantizeLinear", "i scale zero", "y")],
        {"i": np.array([-1e30, np.inf, 0, 1, 2, 3, 4, 5, 6], F32)},
        {"scale": np.array(0.5, F32), "zero": np.array(3, U8)},
        [np.nan],
    ),
}
"""Nodes, inputs that are well, constants, and entries of the input for which there is no result."""


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_count_their_faults(name: str) -> None:
    """Values that are clipped to a range are no faults."""
    nodes, feeds, constants, wrong = OPERATORS[name]
    typed = pulse.load(model(nodes, feeds, constants, 17, {"i": 0})).analyse()
    expected = typed.run(feeds)["y"]
    for program in programs(typed, 1, 4):
        np.testing.assert_array_equal(stream_whole(program, feeds)["y"], expected)
    for entry in wrong:
        for frame in (0, 5, 8):
            bad = feeds["i"].copy()
            bad[frame] = entry
            with pytest.raises(FaultError, match=r": 1 value"):
                typed.run({"i": bad})
            for program in programs(typed, 1, 4):
                with pytest.raises(FaultError, match=r": 1 value"):
                    stream_whole(program, {"i": bad})


@pytest.mark.parametrize("length", [6, -1])
def test_reversed_sequences_longer_than_the_frames_are_faults(length: int) -> None:
    x, right = table(5, 3), np.array([1, 5, 0])
    turned = node("ReverseSequence", "x i", "y", time_axis=0, batch_axis=1)
    typed = pulse.load(model([turned], {"x": x, "i": right}, {}, 17)).analyse()
    assert typed.run({"x": x, "i": right})["y"][0].tolist() == [0, 13, 2]
    with pytest.raises(FaultError, match=r"1 value .* outside 0 … 5"):
        typed.run({"x": x, "i": np.array([1, length, 0])})


def test_each_part_of_an_index_is_checked_against_its_own_axis() -> None:
    shapes = [(2, 3, 4), (5, 2), (5, 4)]
    assert [check.high for check in ScatterND().checks(shapes, [F32, I64, F32])] == [1, 2]
    assert [check.column for check in GatherBatches(1).checks([(9, 3, 4), (9, 2)], [F32, I64])] == [0, 1]
