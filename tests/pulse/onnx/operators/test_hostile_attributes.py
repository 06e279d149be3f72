"""Attributes that contradict the weights are refused by name, before anything is made of them."""

from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import LoadError
from tests.invariants.hostile_models import model
from tests.pulse.cases.build import node

HUGE = 1 << 40
ONES = {"w": np.ones((1, 8, 2), np.float32), "r": np.ones((1, 8, 2), np.float32)}
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@pytest.mark.parametrize("value", [HUGE, -HUGE, 0, 3])
@pytest.mark.parametrize("op", GATES)
def test_wrong_hidden_sizes_are_refused(op: str, value: int) -> None:
    weights = {name: np.ones((1, 2 * GATES[op], 2), np.float32) for name in "wr"}
    proto = model([node(op, "x w r", hidden_size=value)], weights, ("T", 1, 2))
    with pytest.raises(
        LoadError, match=rf"y \({op}\): attribute hidden_size is {value}, but its R .* is for 2"
    ):
        pulse.load(proto).analyse()
    proto.graph.node[0].attribute[0].i = 2
    assert pulse.load(proto).analyse()


def test_a_huge_state_that_is_not_stored_is_refused() -> None:
    """The size comes from a tensor that takes no memory, and whose bias would."""
    filled = [node("ConstantOfShape", "s", "r"), node("LSTM", "x w r")]
    proto = model(
        filled, {"s": np.array([1, 4 * HUGE, HUGE]), "w": np.ones((1, 8, 2), np.float32)}, ("T", 1, 2)
    )
    with pytest.raises(LoadError, match=r"y \(LSTM\): its hidden_size is 1099511627776: .* budget"):
        pulse.load(proto).analyse()


CASES: list[tuple[str, str, str, dict[str, Any], dict[str, Any], tuple[int | str, ...]]] = [
    ("Conv", "x w", "group", {}, {"w": np.ones((4, 1, 3), np.float32)}, (1, 4, "T")),
    ("ConvTranspose", "x w", "group", {}, {"w": np.ones((4, 1, 3), np.float32)}, (1, 4, "T")),
    ("Attention", "x x x", "q_num_heads", {"kv_num_heads": 2}, {}, (1, "T", 8)),
    ("Attention", "x x x", "kv_num_heads", {"q_num_heads": 2}, {}, (1, "T", 8)),
    ("RotaryEmbedding", "x c c", "num_heads", {}, {"c": np.ones((1, 5, 2), np.float32)}, (1, 5, 8)),
    ("GroupNormalization", "x g g", "num_groups", {}, {"g": np.ones(4, np.float32)}, (1, 4, "T")),
]


@pytest.mark.parametrize("value", [HUGE, -HUGE, 0, 3])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}_{case[2]}")
def test_wrong_numbers_of_parts_are_refused(case: Any, value: int) -> None:
    op, inputs, name, others, constants, shape = case
    attributes: dict[str, Any] = {name: value, **others}
    proto = model([node(op, inputs, "y", **attributes)], constants, shape, opset=23)
    with pytest.raises(
        LoadError, match=rf"y \({op}\): attribute {name} is {value}, which does not divide the \d"
    ):
        pulse.load(proto).analyse()


@pytest.mark.parametrize("value", [HUGE, 1, 7])
def test_wrong_block_sizes_are_refused(value: int) -> None:
    scales = {"s": np.ones((1, 3), np.float32)}
    proto = model([node("QuantizeLinear", "x s", axis=1, block_size=value)], scales, (1, 7), opset=21)
    with pytest.raises(
        LoadError, match=rf"attribute block_size is {value}, but its scale has 3 blocks for the 7"
    ):
        pulse.load(proto).analyse()


def test_a_normalisation_over_too_many_neighbours_is_refused() -> None:
    with pytest.raises(LoadError, match=r"y \(LRN\), size 1099511627776: .* unfold to more than 65536 nodes"):
        pulse.load(model([node("LRN", "x", size=HUGE)])).analyse()


@pytest.mark.parametrize("op", ["Softmax", "Concat", "LayerNormalization", "Gather", "Flatten"])
def test_axes_out_of_range_are_refused(op: str) -> None:
    constants = {"w": np.ones(2, np.float32), "i": np.array([0])}
    inputs = {"LayerNormalization": "x w", "Gather": "x i"}.get(op, "x")
    with pytest.raises(pulse.PulseError, match=rf"y \({op}\): .*1099511627776"):
        pulse.load(model([node(op, inputs, axis=HUGE)], constants)).analyse()
