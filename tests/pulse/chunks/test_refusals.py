"""Models of chunks that are refused: the message names what is wrong and a way out that works."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

import pulse
from pulse.chunks.chunk_scan import scan_over_chunks
from pulse.chunks.chunking import DETECT_ALL
from pulse.errors import PulsifyError
from tests.pulse.cases.build import node
from tests.pulse.chunks import models


@pytest.mark.parametrize(
    ("options", "states"),
    [
        ({"constants": {"gain": 2}}, ["h=hn"]),
        ({"states": {"h": "hn"}}, ["h=hn"]),
        ({"states": {"h": "hn", "gain": "level"}}, ["h=hn", "gain=level"]),
    ],
    ids=["a constant", "no others", "all states"],
)
def test_each_way_out_of_a_doubt_works(options: dict[str, Any], states: list[str]) -> None:
    """A gain beside a state that is found by name: one of its outputs has its form."""
    nodes = [
        node("ReduceSum", "gain", "sum", keepdims=0),
        node("Mul", "x sum", "louder"),
        node("Add", "louder h", "y"),
        node("Identity", "y", "hn"),
        node("Add", "gain gain", "level"),
    ]
    inputs, outputs = {"x": [1, 1, 5], "h": [1, 1, 5]}, {"y": [1, 1, 5], "hn": [1, 1, 5]}
    model = models.build(nodes, {**inputs, "gain": [2, 3]}, {**outputs, "level": [2, 3]})
    message = 'gain: may be a state or a constant.*"gain": "level".*"gain": "VALUE".*states={"h": "hn"}'
    with pytest.raises(PulsifyError, match=message):
        pulse.load(model).pulsify()
    chunks = models.stream(model, backend="numpy", **options).model.chunks
    assert chunks is not None
    assert list(map(str, chunks.states)) == states


CACHED, GRU = models.cache_of_sound(), models.gru()


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        pytest.param(
            CACHED,
            {"pulse": 4},
            "pulse 4: one call of the model takes 8 new frames; use a multiple of that",
            id="pulse that is no multiple",
        ),
        pytest.param(
            CACHED,
            {"pulse": 6, "context": {"x": 4}},
            "takes 4 new frames, after 4 of context of x",
            id="pulse and context",
        ),
        pytest.param(
            CACHED,
            {"context": {"x": 8}},
            "a chunk has 8 frames on axis 1, and some of them must be new; give at most 7",
            id="context of the whole chunk",
        ),
        pytest.param(
            CACHED,
            {"context": {"cache": 1}},
            "a context is given for cache, which is not a streaming input; choose one of x",
            id="context of a state",
        ),
        pytest.param(
            CACHED,
            {"states": {"cash": "cache_out"}},
            "unknown input 'cash' .*; choose one of x, cache",
            id="unknown input of a state",
        ),
        pytest.param(
            CACHED,
            {"states": {"cache": "cash"}},
            "unknown output 'cash'; choose one of y, cache_out",
            id="unknown output of a state",
        ),
        pytest.param(
            CACHED,
            {"states": {"cache": "y"}},
            "state cache=y: cache is 1,4,f32 and y is 1,8,f32; a state keeps",
            id="state of another shape",
        ),
        pytest.param(
            CACHED,
            {"states": {"x": "y", "cache": "y"}},
            "two states have the same output as their next value",
            id="states of one output",
        ),
        pytest.param(
            CACHED, {"states": {"x": "y", "cache": "cache_out"}}, "no input streams", id="no input left"
        ),
        pytest.param(
            CACHED,
            {"initial": {"cache": np.zeros((1, 5))}},
            "initial value of cache: its shape is 1,5, the state's is 1,4; give that, or one number",
            id="initial value of another shape",
        ),
        pytest.param(
            CACHED,
            {"initial": {"c": np.zeros((1, 4))}},
            "an initial value is given for c, which is not a state",
            id="initial value of no state",
        ),
        pytest.param(
            CACHED, {"axes": {"x": 2}}, "x has the shape 1,8; give one of its axes", id="no such axis"
        ),
        pytest.param(
            models.build(
                [node("Add", "x h", "sum"), node("Add", "sum offset", "y"), node("Identity", "h", "hn")],
                {"x": [1, 1, 4], "h": [1, 1, 4], "offset": []},
                {"y": [1, 1, 4], "hn": [1, 1, 4]},
            ),
            {"axes": {"offset": 0}},
            "offset is a scalar, which has no axis; omit it",
            id="axis of a scalar",
        ),
        pytest.param(
            CACHED,
            {"axes": {"z": 0}},
            "an axis is given for z, which is not an input or output",
            id="axis of an unknown name",
        ),
        pytest.param(
            CACHED,
            {"delay": {"x": 3}},
            "a delay is given for x, which is not a streaming output; choose one of y",
            id="delay of an input",
        ),
        pytest.param(
            models.gru("time"),
            {},
            r"takes chunks of any length and states \(h=hn\).*with pulse=; .*states={}\)$",
            id="chunks of any length",
        ),
        pytest.param(
            models.gru(3),
            {},
            r'no input streams: x: 1,3,4,f32; give .*axes={"x": 1}\), or the states with .*states=\) if one',
            id="no streaming input",
        ),
    ],
)
def test_refused_chunk_models_say_why(model: ModelProto, options: Mapping[str, object], message: str) -> None:
    """The message names a way out."""
    with pytest.raises(PulsifyError, match=message):
        models.stream(model, backend="numpy", **options)  # pyright: ignore


def test_a_symbolic_shape_is_not_a_chunk() -> None:
    with pytest.raises(
        PulsifyError, match=r'x: 1,time,4,f32 is not the shape of one chunk.*inputs=\{"x": "1,1,4"\}'
    ):
        scan_over_chunks(pulse.load(models.gru("time")).model.analyse(), DETECT_ALL, None, None, {})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"context": {"x": 0.5}},
            r'context={"x": 0.5}.*: 0.5 is not a number of frames; give a whole number, 0',
        ),
        ({"context": {"x": -1}}, r'context={"x": -1}.*: -1 is not a number of frames'),
        ({"context": {"x": True}}, "True is not a number of frames"),
        ({"delay": {"y": 2.0}}, r'delay={"y": 2.0}.*: 2.0 is not a number of frames'),
        ({"axes": {"x": "1"}}, r"axes=.*: '1' is not a number of axes before the time axis"),
        ({"axes": {"x": -1}}, r"axes=.*: -1 is not a number of axes"),
        ({"pulse": 0}, "pulse=0 is not a positive number of frames; give a whole number, 1 or more"),
        ({"pulse": -3}, "pulse=-3 is not a positive"),
        ({"pulse": 4.0}, "pulse=4.0 is not a positive"),
    ],
    ids=str,
)
def test_numbers_of_frames_are_whole_and_not_negative(options: dict[str, Any], message: str) -> None:
    """Integers of numpy are whole numbers too."""
    with pytest.raises(PulsifyError, match=message):
        pulse.Chunking(**options)
    pulse.Chunking(context={"x": np.int64(4)}, axes={"x": np.int32(0)}, pulse=np.int64(1))  # pyright: ignore


@pytest.mark.parametrize("frames", [0, -3, 1.5], ids=str)
@pytest.mark.parametrize(
    "model", [GRU, models.gru("time"), CACHED], ids=["a frame", "any length", "eight frames"]
)
def test_the_pulse_of_a_stream_is_positive_and_whole(model: ModelProto, frames: float) -> None:
    with pytest.raises(PulsifyError, match=r"is not a (positive|whole)|1.5: one call"):
        pulse.stream(model, pulse=frames)  # pyright: ignore


@pytest.mark.parametrize("frames", [3, 4, 12])
def test_the_pulse_of_a_description_fits_the_chunk(frames: int) -> None:
    """The pulse is a multiple of a fixed chunk, also if it is given with the description alone."""
    with pytest.raises(PulsifyError, match=f"pulse {frames}: one call of the model takes 8 new frames"):
        pulse.load(CACHED, chunking=pulse.Chunking(pulse=frames)).pulsify()
    assert pulse.load(CACHED, chunking=pulse.Chunking(pulse=16)).pulsify().pulse == 8


def growing_cache(past: int | str) -> ModelProto:
    """One step y [1, 1, 4] of x and its past [1, past, 4], which becomes one frame longer."""
    nodes = [
        node("Concat", "past_k x", "present_k", axis=1),
        node("ReduceMean", "present_k", "y", axes=[1], keepdims=1),
    ]
    after = past + 1 if isinstance(past, int) else "more"
    return models.build(
        nodes, {"x": [1, 1, 4], "past_k": [1, past, 4]}, {"y": [1, 1, 4], "present_k": [1, after, 4]}
    )


@pytest.mark.parametrize("past", [0, 1, 7, "past"], ids=str)
@pytest.mark.parametrize("options", [{}, {"states": {"past_k": "present_k"}}], ids=["by name", "given"])
def test_caches_that_grow_are_refused(past: int | str, options: dict[str, Any]) -> None:
    """The message says what to export instead."""
    message = (
        "grows with each call is not supported; export the model with a cache of constant length: a window"
    )
    with pytest.raises(PulsifyError, match=f"past_k.*{message}"):
        models.stream(growing_cache(past), **options)


def test_a_cache_of_constant_length_streams() -> None:
    """The way out: a window of the last frames."""
    model = growing_cache(3)
    nodes = [*model.graph.node, node("Slice", "present_k one four one", "next_k")]
    shapes = {"x": [1, 1, 4], "past_k": [1, 3, 4]}, {"y": [1, 1, 4], "next_k": [1, 3, 4]}
    window = models.build(nodes, *shapes, {"one": np.array([1]), "four": np.array([4])})
    assert models.stream(window, backend="numpy").model.chunks is not None
