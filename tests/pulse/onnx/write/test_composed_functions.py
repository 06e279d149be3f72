"""Functions that files have as compositions of others: the digits of small results, and results at the edges."""

from collections.abc import Mapping

import numpy as np
import pytest

from pulse.facts import Array
from pulse.front.builder import FunctionBuilder
from pulse.models import TypedModel
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.ops.reduce import Reduce
from pulse.runtimes.onnx_runtimes import evaluator, open_runtime
from pulse.runtimes.tract import TractProcess, has_tract

needs_tract = pytest.mark.skipif(not has_tract(), reason="tract is not installed: pip install tract")
SIZES = (0, 1e-30, 1e-8, 1e-3, 0.3, 0.5, 0.6, 1, 2, 5, 9, 88, 3e38, np.inf)
EDGES = np.float32([*SIZES, *(-size for size in SIZES), np.nan])
PAIRS = np.repeat(EDGES, EDGES.size), np.tile(EDGES, EDGES.size)
ALMOST_EXACT = ("log1p", "expm1", "erfc", "atan2")


def function_model(kind: str) -> tuple[TypedModel, Mapping[str, Array], Array]:
    """A model of one function, its inputs, and its results in f64, rounded."""
    arrays = [EDGES] if ELEMENTWISE[kind].arity == 1 else [*PAIRS]
    builder = FunctionBuilder("edges", {name: f"T,{arrays[0].size}" for name, _ in zip("xy", arrays)})
    result = builder.apply(kind, *(builder[name] for name, _ in zip("xy", arrays)))
    with np.errstate(all="ignore"):
        expected = ELEMENTWISE[kind].run(*(array.astype(np.float64) for array in arrays)).astype(np.float32)
    return builder.model(z=result), {name: array[None] for name, array in zip("xy", arrays)}, expected


def assert_digits_agree(outputs: Array, expected: Array) -> None:
    """Denormals may be 0."""
    np.testing.assert_allclose(outputs, expected, rtol=6e-6, atol=1.2e-38)


@pytest.mark.parametrize("kind", [*ALMOST_EXACT, "mod"])
def test_compositions_of_onnx_keep_digits_and_edges(kind: str) -> None:
    model, feeds, expected = function_model(kind)
    proto = model.pulsify(pulse=1).to_onnx()
    for run in (open_runtime(proto).run, evaluator(proto)):
        assert_digits_agree(run(feeds)["z"][0], expected)


@needs_tract
@pytest.mark.parametrize("kind", [*ALMOST_EXACT, "softplus"])
def test_compositions_of_nnef_keep_digits_and_edges(kind: str) -> None:
    model, feeds, expected = function_model(kind)
    process = TractProcess(model.pulsify(pulse=1).to_nnef(), kind)
    assert_digits_agree(process.run("0", list(feeds.values()))[0][0], expected)


@needs_tract
def test_logarithms_of_sums_are_infinite_in_nnef_as_in_onnx() -> None:
    rows = np.float32([[-np.inf, -np.inf], [np.inf, 1], [-np.inf, 2], [1000, 1000]])
    builder = FunctionBuilder("edges", {"x": "T,4,2"})
    model = builder.model(y=builder.add("y", Reduce("log_sum_exp", (2,), False), builder["x"]))
    process = TractProcess(model.pulsify(pulse=1).to_nnef(), "rows")
    outputs = process.run("0", [rows[None]])[0][0]
    np.testing.assert_allclose(outputs, [-np.inf, np.inf, 2, 1000 + np.log(2)], rtol=1e-6)
