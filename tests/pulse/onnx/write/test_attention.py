"""Bands of attention in a file: a mask from the table and the position."""

import numpy as np
import pytest

from pulse.dim import SymbolScope, TDim
from pulse.facts import Array, TypedFact
from pulse.graph import Graph
from pulse.models import TypedModel
from pulse.ops.attention import BandedAttention
from pulse.ops.source import Source
from pulse.typed import TypedGraph
from pulse.wiring import wire
from tests.pulse.cases.build import floats
from tests.pulse.onnx.write.file_proof import assert_file_streams, kinds, read_metadata


def attention(bias: Array, back: int, scale: float = 0.5, empty: float = np.nan) -> TypedModel:
    """Queries, keys and values [2, T, 3] that are inputs."""
    scope = SymbolScope()
    fact = TypedFact(np.dtype(np.float32), (TDim.of(2), TDim.of(scope.symbol("T")), TDim.of(3)))
    graph: TypedGraph = Graph()
    for name in ("q", "k", "v"):
        graph.inputs += graph.add(name, Source(fact), (), [fact])
    graph.set_outputs(wire(graph, "y", BandedAttention(scale, bias, back, empty), graph.inputs), ["y"])
    return TypedModel(graph, scope, "band")


@pytest.mark.parametrize("frames", [1, 2, 4])
@pytest.mark.parametrize(("back", "ahead"), [(3, 0), (2, 2), (0, 1), (4, -2)])
def test_bands_are_written(back: int, ahead: int, frames: int) -> None:
    """Past frames, frames ahead, and a band that leaves the newest frames out."""
    source = attention(floats((back, ahead), 1, back + 1 + ahead), back)
    assert_file_streams(source, source.pulsify(pulse=frames), (5, 6, 9, 16))


def test_a_causal_band_of_single_frames_needs_no_end() -> None:
    """A causal band looks at nothing after the end."""
    source = attention(floats("causal", 1, 4), 3)
    assert read_metadata(assert_file_streams(source, source.pulsify(pulse=1))).end is None


@pytest.mark.parametrize("frames", [1, 2, 3, 6])
def test_masks_by_chunks_are_written(frames: int) -> None:
    """The table has a period of 3 frames: one bias for each place of a pulse in it."""
    bias = floats("chunks", 2, 3, 5)
    bias[:, 0, 3:] = -np.inf
    source = attention(bias, 2, scale=1.0)
    proto = assert_file_streams(source, source.pulsify(pulse=frames))
    assert ("Mod" in kinds(proto)) == (frames % 3 != 0)


@pytest.mark.parametrize("frames", [1, 2, 3, 6])
def test_windows_without_frames_of_later_pulses_are_written(frames: int) -> None:
    """Frame i sees the two frames before it, and those up to the end of its chunk of three frames."""
    bias = floats("chunks", 2, 3, 5)
    bias[:, 1, 4:] = bias[:, 2, 3:] = -np.inf
    source = attention(bias, 2, scale=1.0)
    model = source.pulsify(pulse=frames)
    assert model.outputs[0].delay == (0 if frames % 3 == 0 else 2)
    assert_file_streams(source, model, (1, 5, 6, 9, 16))


def test_fully_masked_frames_are_written_as_the_model_has_them() -> None:
    """They become what the model makes of them."""
    bias = floats("lonely", 2, 3)
    bias[1] = -np.inf
    source = attention(bias, 2, empty=0.0)
    proto = assert_file_streams(source, source.pulsify(pulse=3))
    assert "ReduceMax" in kinds(proto)


@pytest.mark.parametrize("empty", [np.nan, 0.0])
def test_a_stream_of_sequences_needs_no_state(empty: float) -> None:
    """Where the batch streams, every frame is a whole sequence and its mask a constant."""
    scope = SymbolScope()
    fact = TypedFact(np.dtype(np.float32), (TDim.of(scope.symbol("T")), TDim.of(5), TDim.of(3)))
    graph: TypedGraph = Graph()
    graph.inputs = graph.add("x", Source(fact), (), [fact])
    bias = floats("batch", 1, 3)
    bias[0, 2] = -np.inf
    op = BandedAttention(1.0, bias, 2 if empty == 0 else 1, empty)
    graph.set_outputs(wire(graph, "y", op, [graph.inputs[0]] * 3), ["y"])
    source = TypedModel(graph, scope, "sequences")
    assert (
        read_metadata(assert_file_streams(source, source.pulsify(pulse=2), backends=("numpy",))).states == ()
    )
