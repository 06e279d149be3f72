"""The axis that a message proposes: the way out works, and proposals are made for any model."""

import numpy as np
import pytest
from onnx import ModelProto

import pulse
from pulse.chunks.axis_proposals import propose_axis
from pulse.errors import PulsifyError
from tests.failed_cases import in_one_test
from tests.noise import normal_noise
from tests.pulse.cases.build import Case, node
from tests.pulse.cases.families import all_cases
from tests.pulse.chunks import models

ADD_STATE = [
    node("ReduceMax", "h", "peak", keepdims=0),
    node("Add", "made peak", "y"),
    node("Identity", "h", "hn"),
]


def channels_first() -> ModelProto:
    """Bands [1, 80, 32], the channels of a convolution, as NeMo's."""
    nodes = [node("Conv", "x w", "made", strides=[8]), *ADD_STATE]
    shapes = {"x": [1, 80, 32], "h": [1, 3]}, {"y": [1, 5, 4], "hn": [1, 3]}
    return models.build(nodes, *shapes, {"w": normal_noise(5, 80, 8, seed=1)})


def features_last() -> ModelProto:
    """Frames [1, 30, 40] of features that a product reduces."""
    nodes = [node("MatMul", "x w", "made"), *ADD_STATE]
    shapes = {"x": [1, 30, 40], "h": [1, 3]}, {"y": [1, 30, 5], "hn": [1, 3]}
    return models.build(nodes, *shapes, {"w": normal_noise(40, 5, seed=1)})


def codebooks() -> ModelProto:
    """Codes [1, 8, 4] of 8 books, each taken by itself."""
    nodes = [
        node("Gather", "x one", "first", axis=1),
        node("Gather", "x two", "second", axis=1),
        node("Add", "first second", "made"),
        *ADD_STATE,
    ]
    shapes = {"x": [1, 8, 4], "h": [1, 3]}, {"y": [1, 4], "hn": [1, 3]}
    return models.build(nodes, *shapes, {"one": np.array(1), "two": np.array(2)})


def cached_bands() -> ModelProto:
    """One frame [1, 1, 1, 32] after a cache [1, 1, 2, 32], convolved over 3 frames."""
    nodes = [node("Concat", "cache x", "joined", axis=2), node("Conv", "joined w", "made"), *ADD_STATE]
    nodes.append(node("Slice", "joined one three two", "cache_next"))
    shapes = (
        {"x": [1, 1, 1, 32], "cache": [1, 1, 2, 32], "h": [1, 3]},
        {"y": [1, 6, 1, 32], "cache_next": [1, 1, 2, 32], "hn": [1, 3]},
    )
    constants = {
        "w": normal_noise(6, 1, 3, 1, seed=1),
        "one": np.array([1]),
        "two": np.array([2]),
        "three": np.array([3]),
    }
    return models.build(nodes, *shapes, constants)


@pytest.mark.parametrize(
    ("model", "axis"),
    [(channels_first(), 2), (features_last(), 1), (codebooks(), 2), (cached_bands(), 2)],
    ids=["channels first", "features last", "codebooks", "a frame after a cache"],
)
def test_the_proposed_axis_streams(model: ModelProto, axis: int) -> None:
    """The message lists the inputs that may stream, without the states."""
    with pytest.raises(PulsifyError, match=rf'no input streams: x: [0-9,]+,f32; give.*axes={{"x": {axis}}}'):
        pulse.load(model).pulsify()
    assert models.stream(model, axes={"x": axis}, backend="numpy").inputs[0].axis == axis


def test_an_input_taken_for_a_state_can_be_named() -> None:
    """If all inputs are states, the message names the others."""
    model = models.gru()
    with pytest.raises(PulsifyError, match=r'the others are states \(x=y, h=hn\).*states={"h": "hn"}'):
        models.stream(
            models.build(
                [node("Add", "x h", "y"), node("Identity", "y", "hn")],
                {"x": [1, 4], "h": [1, 4]},
                {"y": [1, 4], "hn": [1, 4]},
            ),
            states={"x": "y", "h": "hn"},
        )
    assert models.stream(model, states={"h": "hn"}, backend="numpy").inputs[0].axis == 1


@in_one_test("case", [case for case in all_cases() if case[0].endswith("-fixed")])
def test_any_model_has_a_proposal(case: Case) -> None:
    """Each input with several elements has one, along one of its axes."""
    typed = pulse.load(case[1]).model.analyse()
    for name, fact in typed.inputs.items():
        axis = propose_axis(typed, name)
        assert axis in (None, *range(fact.rank))
        assert axis is not None or np.prod(fact.sizes) <= 1
