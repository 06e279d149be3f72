"""The coverage that a proof reports: an output that shows nothing is not proved by being equal."""

import json

import numpy as np
import pytest

import pulse
from pulse.errors import NotProvedError
from pulse.models import TypedModel
from pulse.ops.slice import Slice
from pulse.ops.time_position import Range
from pulse.proof.report import FINITE_ADVICE, Coverage, Divergence
from tests.pulse.model_builder import ModelBuilder

pytestmark = pytest.mark.full_proofs

F = np.float32


def empty_model(kind: str) -> TypedModel:
    """A model with an output that shows nothing, and how."""
    builder = ModelBuilder(x="1,2,T")
    x = builder["x"]
    if kind == "nan":
        y = builder.apply(
            "log", builder.apply("sub", builder.apply("neg", builder.apply("abs", x)), builder.constant(F(1)))
        )
    elif kind == "infinite":
        y = builder.apply("exp", builder.apply("add", builder.apply("abs", x), builder.constant(F(1000))))
    elif kind == "constant":
        y = builder.apply("relu", builder.apply("sub", builder.apply("tanh", x), builder.constant(F(2))))
    elif kind == "unmoved":
        steps = builder.add("steps", Range(0.0, 1.0, builder.length(x), np.dtype(F)))
        y = builder.apply("add", steps, builder.apply("mul", x, builder.constant(F(0))))
    else:
        y = builder.add("none", Slice(2, builder.dim("T"), builder.dim("T"), 1), x)
    return builder.model(builder.apply("neg", x), y, names=["good", "y"])


NOT_FINITE = f"no value is a finite number, because the model itself returns NaN or infinity; {FINITE_ADVICE}"
REASONS = {
    "nan": NOT_FINITE,
    "infinite": NOT_FINITE,
    "constant": "it is always 0, whatever the input",
    "unmoved": "it is always the same, whatever the input",
}


@pytest.mark.filterwarnings("ignore:(invalid|divide by zero|overflow):RuntimeWarning")
@pytest.mark.parametrize("kind", REASONS)
def test_an_output_that_shows_nothing_is_not_proved(kind: str) -> None:
    """The output is equal but not proved; the other output is proved."""
    report = pulse.verify(empty_model(kind), pulse=4)
    good, y = report.outputs
    assert report.equal
    assert report.outcome == "not proved"
    assert not good.reason_not_proved
    assert good.moved
    assert good.finite == good.values > 1000
    assert y.reason_not_proved == REASONS[kind]
    assert report.verdict == f"nothing was proved about y: {REASONS[kind]}"
    with pytest.raises(NotProvedError, match="nothing was proved about y"):
        report.require()
    document = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert [output["proved"] for output in document["outputs"]] == [True, False]
    assert document["outcome"] == "not proved"


def test_an_output_that_reads_no_input_is_proved_as_it_is() -> None:
    """Positions depend on no input: equal frames prove them."""
    builder = ModelBuilder(x="1,2,T")
    steps = builder.add("steps", Range(0.0, 1.0, builder.length(builder["x"]), np.dtype(F)))
    report = pulse.verify(builder.model(builder.apply("neg", builder["x"]), steps), pulse=4).require()
    assert not report.outputs[1].reads
    assert not report.outputs[1].moved


def test_one_input_does_not_show_that_an_output_depends_on_it() -> None:
    """Nothing was compared with it, so it is not called constant."""
    once = Coverage("y").add(np.arange(4, dtype=F), 4)
    assert once.reason_not_proved.startswith("only one input of each length was tried")
    assert str(once).endswith("of one input of each length")


def root(square: bool) -> TypedModel:
    """Return sqrt(x), or sqrt(1/10 - x * x)."""
    builder = ModelBuilder(x="1,2,T")
    x = builder["x"]
    rest = builder.apply("sub", builder.constant(F(0.1)), builder.apply("mul", x, x)) if square else x
    return builder.model(builder.apply("sqrt", rest))


def test_the_report_describes_the_values_of_each_output() -> None:
    """Frames, values, their range, how many are finite, whether the input moved them."""
    report = pulse.verify(root(square=True), pulse=4, lengths=[8, 50], backend="numpy")
    (y,) = report.outputs
    assert (y.frames, y.values) == (2 * (8 + 50), 4 * (8 + 50))
    assert 0.1 < y.finite / y.values < 0.9
    assert y.minimum >= 0
    assert y.maximum > 0.2
    assert "% finite (the model itself returns NaN or infinity for the others), depends on the input" in str(
        y
    )
    assert report.outcome == "equal"


def test_inputs_are_drawn_where_the_model_returns_numbers() -> None:
    report = pulse.verify(root(square=False), pulse=4)
    assert report.domain == "0 or more"
    assert report.outputs[0].finite == report.outputs[0].values
    inputs = "0 or more, because the model itself returns NaN or infinity for others"
    assert dict(report.pairs())["inputs"] == inputs
    assert report.as_dict()["input_domain"] == "0 or more"


def test_a_model_that_is_nan_itself_is_not_called_a_divergence() -> None:
    """A weight of zero makes more frames NaN offline than the stream, which does not multiply them."""
    divergence = Divergence("y", "Conv", 50, "noise", "numba", 7, float("nan"), 0.25, 1e-6)
    assert str(divergence).startswith(
        "the model itself returns nan in y (Conv) at frame 7 of a stream of 50 frames of noise (numba), so a stream "
        "cannot be compared with it: the stream has 0.25, "
    )
    assert str(divergence).endswith(FINITE_ADVICE)


def test_the_report_lists_its_streams() -> None:
    """Terminal and JSON list the same streams; another seed makes other numbers."""
    builder = ModelBuilder(x="1,2,T")
    typed = builder.model(builder.conv(builder["x"], 3))
    report, other = pulse.verify(typed, pulse=4), pulse.verify(typed, pulse=4, seed=7)
    lines, document = dict(report.pairs()), report.as_dict()
    assert lines["streams"].startswith(f"{len(report.tried)} of 3 to ")
    assert "seed 0" in lines["streams"]
    assert "noise, quiet, loud, steps, gaps, silence, mixed" in lines["streams"]
    longest = f"an output depends on 3 frames; the longest stream has {report.lengths[-1]:,}"
    buffers = f"; the longest buffer holds {document['buffer_frames']}, and overflows"
    assert lines["long enough"] == longest + buffers
    assert document["buffer_frames"] > 0
    assert document["overflowed"]
    assert [stream["length"] for stream in document["streams"]] == [trial.length for trial in report.tried]
    assert (document["receptive_frames"], document["seed"], other.seed) == (3, 0, 7)
    assert report.outputs[0].maximum != other.outputs[0].maximum
