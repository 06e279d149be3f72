"""Models are networks with the next step as a method; whatever gives users a model gives one that has its steps."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import pulse
from pulse import front
from pulse.infer.network import FileNetwork
from pulse.models import Model, PulsedModel, TypedModel, model_of
from pulse.pulsify.network import PulsedNetwork
from pulse.typed import TypedNetwork
from tests.pulse.cases.build import node
from tests.pulse.chunks.models import build
from tests.pulse.model_builder import ModelBuilder

STEPS = {"analyse", "declutter", "pulsify", "chunked", "compile", "to_onnx", "save"}


def sketch_model() -> TypedModel:
    builder = ModelBuilder(x="1,2,T")
    return builder.model(builder.conv(builder.apply("relu", builder["x"]), 3, name="y"))


def test_networks_know_no_later_step() -> None:
    """Models of files know ``analyse`` alone, which files' own bodies need."""
    assert {step for step in STEPS if hasattr(FileNetwork, step)} == {"analyse"}
    assert not any(hasattr(kind, step) for kind in (TypedNetwork, PulsedNetwork) for step in STEPS)


def test_each_step_gives_a_model() -> None:
    read = pulse.load(build([node("Relu", "x", "y")], {"x": [1, 2, "T"]}, {"y": [1, 2, "T"]})).model
    typed = read.analyse()
    pulsed = typed.with_sizes({}).declutter().pulsify(pulse=4)
    assert [type(model) for model in (read, typed, pulsed)] == [Model, TypedModel, PulsedModel]
    assert type(typed.with_outputs(["y"]).copy()) is TypedModel
    assert pulsed.compile("numpy").spawn().step(np.ones((1, 2, 4), np.float32))["y"].shape == (1, 2, 4)
    assert type(pulse.load(pulsed.to_onnx()).analyse().pulsify()) is PulsedModel


def test_all_functions_give_a_typed_model() -> None:
    typed_models = [
        front.gain(2.0),
        pulse.chain(sketch_model(), sketch_model()),
        pulse.load(sketch_model()).decluttered_model,
    ]
    assert {type(model) for model in typed_models} == {TypedModel}
    assert type(pulse.load(sketch_model()).pulsify(4)) is PulsedModel


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(copy.copy, id="copy"),
        pytest.param(copy.deepcopy, id="deepcopy"),
        pytest.param(lambda model: pickle.loads(pickle.dumps(model)), id="pickle"),
    ],
)
def test_copies_keep_their_steps(again: Callable[[Any], Any]) -> None:
    typed = sketch_model()
    for model in (typed, typed.pulsify(pulse=4)):
        assert type(again(model)) is type(model)


def test_a_network_gets_its_steps() -> None:
    """All of its fields are those of the network; a model stays itself."""
    typed = sketch_model()
    network = TypedNetwork(**{field.name: getattr(typed, field.name) for field in fields(typed)})
    model = model_of(network)
    assert type(model) is TypedModel
    assert model_of(model) is model
    assert all(getattr(model, field.name) is getattr(network, field.name) for field in fields(network))
    assert pulse.verify(network, pulse=4).equal
