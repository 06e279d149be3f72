"""The signals of proofs: several scales, silence and jumps; integers over the range that the model takes."""

import numpy as np
import pytest

import pulse
from pulse.models import PulsedModel, TypedModel
from pulse.ops.cumulative import CumSum
from pulse.ops.gather import Gather
from pulse.proof.oracle import pulsed_oracle
from pulse.proof.trial_signals import PURE, SIGNALS, draw_feeds, integer_ranges
from pulse.pulsify.driver import pulsify
from tests.pulse.model_builder import ModelBuilder

pytestmark = pytest.mark.full_proofs


def negation(shape: str = "1,2,T") -> PulsedModel:
    builder = ModelBuilder(x=shape)
    return pulsify(builder.model(builder.apply("neg", builder["x"])), pulse=4)


@pytest.mark.parametrize("frames", [0, 1, 2, 5, 4000])
@pytest.mark.parametrize("signal", SIGNALS)
def test_signals_have_the_shape_of_the_input(signal: str, frames: int) -> None:
    """Signals of any length have the shape of the input; a seed gives the same values again, another seed others."""
    model = negation()
    x = draw_feeds(model, frames, signal, 3)["x"]
    assert x.shape == (1, 2, frames)
    assert x.dtype == np.float32
    assert np.isfinite(x).all()
    np.testing.assert_array_equal(x, draw_feeds(model, frames, signal, 3)["x"])
    if frames == 4000 and signal != "silence":
        assert not np.array_equal(x, draw_feeds(model, frames, signal, 4)["x"])


def test_signals_cover_all_scales() -> None:
    """Noise has ordinary, small and large values; levels are held, and gaps are long."""
    signals = {signal: draw_feeds(negation(), 4000, signal)["x"][0] for signal in SIGNALS}
    assert np.std(signals["noise"]) == pytest.approx(1, rel=0.1)
    assert np.std(signals["quiet"]) == pytest.approx(1e-3, rel=0.1)
    assert np.abs(signals["loud"]).max() > 60
    assert not signals["silence"].any()
    jumps = np.any(np.diff(signals["steps"], axis=1), axis=0)
    assert 50 < jumps.sum() < 500
    zero = ~signals["gaps"].any(0)
    assert zero[0]
    assert 0.1 < zero.mean() < 0.9
    runs = np.diff(np.flatnonzero(np.diff(np.concatenate([[0], zero, [0]]).astype(int))))[::2]
    assert runs.max() > 100


def test_the_mixed_signal_has_all_others() -> None:
    mixed = draw_feeds(negation(), 4000, "mixed")["x"][0]
    assert (~mixed.any(0)).sum() > 500
    assert np.abs(mixed).max() > 60
    assert ((mixed != 0) & (np.abs(mixed) < 1e-2)).sum() > 500
    assert len(PURE) == len(SIGNALS) - 1


def table_lookup_model(rows: int) -> TypedModel:
    builder = ModelBuilder(x="1,T,i64")
    return builder.model(
        builder.add("rows", Gather(0), builder.constant(np.ones((rows, 4), np.float32)), builder["x"])
    )


@pytest.mark.parametrize("rows", [1, 2, 37, 1000])
def test_an_index_has_as_many_values_as_its_table_has_rows(rows: int) -> None:
    """Negative ones count from the end; every row is read."""
    model = pulsify(table_lookup_model(rows), pulse=4)
    ranges = integer_ranges(model, pulsed_oracle(model), 5)
    assert ranges == {"x": (-rows, rows - 1)}
    x = draw_feeds(model, 9000, ranges=ranges)["x"]
    assert (x.min(), x.max()) == (-rows, rows - 1)
    assert len(np.unique(x)) > 0.9 * 2 * min(rows, 900)


def test_the_values_of_an_integer_may_begin_above_one() -> None:
    """A pitch lag that is longer than what it reads."""
    builder = ModelBuilder(x="1,T,i64")
    index = builder.apply("sub", builder["x"], builder.constant(np.array(15)))
    table = builder.constant(np.ones((10, 4), np.float32))
    model = pulsify(builder.model(builder.add("rows", Gather(0), table, index)), pulse=4)
    assert integer_ranges(model, pulsed_oracle(model), 5) == {"x": (5, 24)}


def test_integers_that_are_computed_with_have_all_values() -> None:
    """Random frames have the whole range of i16, and silence is zero."""
    builder = ModelBuilder(x="1,T,i16")
    model = pulsify(builder.model(builder.add("total", CumSum(1, False, False), builder["x"])), pulse=4)
    ranges = integer_ranges(model, pulsed_oracle(model), 5)
    assert ranges == {"x": (-32768, 32767)}
    x = draw_feeds(model, 5000, ranges=ranges)["x"]
    assert x.min() < -32000
    assert x.max() > 32000
    assert abs(x.mean()) < 1000
    assert not draw_feeds(model, 50, "silence", ranges=ranges)["x"].any()
    steps = draw_feeds(model, 500, "steps", ranges=ranges)["x"][0]
    assert 5 < np.count_nonzero(np.diff(steps)) < 60


def test_a_row_that_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrong row is the last of 1,000: integers of 0 and 1 never reach it."""
    plain_eval = Gather.eval

    builder = ModelBuilder(x="1,T,i64")
    table = np.arange(4000, dtype=np.float32).reshape(1000, 4)
    typed = builder.model(builder.add("rows", Gather(0), builder.constant(table), builder["x"]))
    assert pulse.verify(typed, pulse=4, backend="numpy").require().equal
    from pulse.program.backends.reference import ReferenceState

    evaluated = ReferenceState.evaluate

    def wrong(self, node_id, inputs):
        if isinstance(self.program.model.graph.nodes[node_id].op, Gather):
            changed = inputs[0].copy()
            changed[999] += 1
            inputs = [changed, inputs[1]]
        return evaluated(self, node_id, inputs)

    monkeypatch.setattr(ReferenceState, "evaluate", wrong)
    assert pulse.verify(typed, pulse=4, backend="numpy").outcome == "diverged"
    assert Gather.eval is plain_eval
