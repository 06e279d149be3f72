"""The proof of a written file, and that it finds what is wrong."""

import numpy as np
import pytest

from pulse.errors import DivergenceError, WriteError
from pulse.onnx.write.check import check
from pulse.onnx.write.runtime import runner
from tests.pulse.onnx.write.test_model import causal


def test_equal() -> None:
    pulsed = causal()
    checked = check(pulsed.to_onnx(), pulsed)
    assert checked.runtime.startswith("onnxruntime")
    assert len(checked.lengths) > 5
    assert checked.error < 1e-5


def test_a_wrong_file_is_found() -> None:
    """A weight that is off by a little, and a state that begins elsewhere."""
    pulsed = causal()
    wrong = pulsed.to_onnx()
    (kernel,) = (tensor for tensor in wrong.graph.initializer if tensor.name == "w")
    values = np.frombuffer(kernel.raw_data, np.float32).copy()
    values[3] += 0.01
    kernel.raw_data = values.tobytes()
    with pytest.raises(DivergenceError, match=r"y, a stream of \d frames .* at \[0, 0, \d\] offline"):
        check(wrong, pulsed)


def test_a_shape_that_differs_is_found() -> None:
    pulsed = causal()
    name, run = runner(pulsed.to_onnx())
    assert name.startswith("onnxruntime")

    def cut(feeds: object) -> dict[str, np.ndarray]:
        return {key: value.astype(np.float64) for key, value in run(feeds).items()}  # type: ignore[arg-type]

    with pytest.raises(DivergenceError, match=r"expected .* float32, got .* float64"):
        check(pulsed.to_onnx(), pulsed, run=cut)


def test_no_length_that_suits() -> None:
    pulsed = causal()
    pulsed.typed.scope.assume("T >= 50")
    with pytest.raises(WriteError, match=r"none of the lengths \[2, 3\]"):
        check(pulsed.to_onnx(), pulsed, lengths=[2, 3])


def test_without_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    """The evaluator of onnx stands in."""
    import sys

    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    pulsed = causal()
    checked = check(pulsed.to_onnx(), pulsed, lengths=[1, 3])
    assert checked.runtime == "onnx.reference"
