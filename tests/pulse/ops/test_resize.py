"""Resizing over time: exact at every ratio, with the delay that looking ahead costs, or refused."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse.api import verify
from pulse.dim import SymbolScope, TDim
from pulse.errors import PulsifyError
from pulse.facts import TypedFact
from pulse.graph import Graph
from pulse.models import TypedModel
from pulse.ops.op import Window
from pulse.ops.resize import Interpolate, Polyphase
from pulse.ops.resize_sampling import ROUNDING, Coordinates, NearestMode, Sampling
from pulse.ops.source import Source
from pulse.typed import TypedGraph
from pulse.wiring import wire

STEADY: tuple[Coordinates, ...] = ("asymmetric", "half_pixel", "pytorch_half_pixel", "tf_half_pixel_for_nn")


def resize_model(ratio: Fraction | None, sampling: Sampling, length: str | None = None) -> TypedModel:
    """Resize x [T, 2] to another number of frames."""
    scope = SymbolScope()
    frames = TDim.of(scope.symbol("T"))
    scope.assume("T >= 0")
    graph: TypedGraph = Graph()
    fact = TypedFact(np.dtype(np.float32), (frames, TDim.of(2)))
    graph.inputs = graph.add("x", Source(fact), (), [fact])
    if length is not None:
        goal = scope.parse(length)
    else:
        assert ratio is not None
        goal = frames * ratio.numerator // ratio.denominator
    graph.set_outputs(wire(graph, "y", Interpolate(0, goal, ratio, sampling), graph.inputs), ["y"])
    return TypedModel(graph, scope)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 7),
    st.integers(1, 7),
    st.sampled_from(STEADY),
    st.sampled_from([None, *ROUNDING]),
    st.sampled_from([None, -0.75, -0.5]),
    st.booleans(),
    st.integers(1, 3),
)
def test_streams_exactly(
    p: int,
    q: int,
    coordinates: Coordinates,
    rounding: NearestMode | None,
    cubic: float | None,
    antialias: bool,
    times: int,
) -> None:
    ratio = Fraction(p, q)
    model = resize_model(ratio, Sampling(coordinates, rounding, cubic, antialias))
    frames = ratio.denominator * times
    report = verify(model, frames, lengths=[*range(1, 9), *(frames * pulses for pulses in (3, 5, 8))])
    assert report.equal, report.divergence
    assert len(report.lengths) >= 3


@pytest.mark.parametrize(
    ("ratio", "coordinates", "rounding", "delay"),
    [
        pytest.param(Fraction(2), "asymmetric", "floor", 0, id="2 asymmetric floor 0"),
        pytest.param(
            Fraction(2), "half_pixel", "round_prefer_floor", 0, id="2 half_pixel round_prefer_floor 0"
        ),
        pytest.param(Fraction(1, 2), "asymmetric", "floor", 0, id="1/2 asymmetric floor 0"),
        pytest.param(Fraction(1, 2), "half_pixel", None, 0, id="1/2 half_pixel None 0"),
        pytest.param(Fraction(3, 2), "asymmetric", "floor", 0, id="3/2 asymmetric floor 0"),
        pytest.param(Fraction(2, 3), "half_pixel", None, 0, id="2/3 half_pixel None 0"),
        pytest.param(Fraction(160, 441), "half_pixel", None, 0, id="160/441 half_pixel None 0"),
        pytest.param(Fraction(2), "asymmetric", None, 2, id="2 asymmetric None 2"),
        pytest.param(Fraction(2), "half_pixel", None, 1, id="2 half_pixel None 1"),
        pytest.param(Fraction(3), "half_pixel", None, 1, id="3 half_pixel None 1"),
    ],
)
def test_a_resize_has_the_delay_of_its_sampling(
    ratio: Fraction, coordinates: Coordinates, rounding: NearestMode | None, delay: int
) -> None:
    pulsed = resize_model(ratio, Sampling(coordinates, rounding)).pulsify()
    assert pulsed.pulse == ratio.denominator
    assert pulsed.outputs[0].delay == delay
    assert pulsed.outputs[0].rate == ratio


@pytest.mark.parametrize("ratio", [Fraction(2), Fraction(3, 2), Fraction(4, 3)], ids=str)
def test_a_window_reads_no_frame_of_weight_zero(ratio: Fraction) -> None:
    """Frames beyond the end may be anything: what is not needed is not read."""
    model = resize_model(ratio, Sampling("asymmetric", None))
    relation = model.graph.nodes[-1].op.relation([model.graph.fact(model.graph.inputs[0])], [0])
    assert isinstance(relation, Window)
    assert isinstance(relation.op, Polyphase)
    assert all(weight != 0 for taps in relation.op.taps for _, weight in taps)
    assert len(relation.op.taps) == ratio.numerator == relation.up


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        pytest.param(
            resize_model(Fraction(2), Sampling("align_corners", None)),
            "with align_corners the position",
            id="align_corners",
        ),
        pytest.param(
            resize_model(Fraction(3, 2), Sampling("half_pixel_symmetric", None)),
            "with half_pixel_symmetric",
            id="half_pixel_symmetric",
        ),
        pytest.param(
            resize_model(Fraction(2), Sampling("half_pixel", None, exclude_outside=True)),
            "with exclude_outside the",
            id="exclude_outside",
        ),
        pytest.param(
            resize_model(None, Sampling("half_pixel", None), "100"),
            "its factor, 100 frames of T, depends on",
            id="fixed length",
        ),
        pytest.param(
            resize_model(Fraction(1237, 1000), Sampling("half_pixel", None)),
            "not a ratio of small numbers",
            id="ratio of large numbers",
        ),
    ],
)
def test_resizes_that_cannot_stream_are_refused(model: TypedModel, reason: str) -> None:
    with pytest.raises(
        PulsifyError, match=rf"y \(Interpolate\).*{reason}.*; .*(factor|use one|coordinate|without)"
    ):
        model.pulsify()


def test_models_that_cannot_stream_run_offline() -> None:
    model = resize_model(Fraction(2), Sampling("align_corners", None))
    x = np.array([[0.0, 1.0], [3.0, 4.0]], np.float32)
    np.testing.assert_allclose(model.run(x)["y"][:, 0], [0, 1, 2, 3])


def test_a_single_frame_of_a_slower_stream_is_excluded() -> None:
    """pytorch_half_pixel places a lone frame elsewhere, which no rhythm can: it becomes a condition."""
    model = resize_model(Fraction(1, 2), Sampling("pytorch_half_pixel", None))
    assert [str(assumption) for assumption in model.scope.assumptions if "4" in str(assumption)]
    assert len(resize_model(Fraction(2), Sampling("pytorch_half_pixel", None)).scope.assumptions) == 1
