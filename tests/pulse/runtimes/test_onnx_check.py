"""The proof of a written file, and that it finds what is wrong."""

from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto
from onnx.helper import set_model_props

import pulse
from pulse.errors import PulsifyError
from pulse.metadata import StateMetadata, StreamMetadata
from pulse.ops.elementwise import Elementwise
from pulse.program.whole_stream import stream_whole
from pulse.proof import ProofChoice
from pulse.runtimes.onnx_check import check_onnx
from pulse.runtimes.onnx_runtimes import open_runtime
from tests.pulse.cases.build import floats, model, node
from tests.pulse.onnx.write.small_models import causal, chain


def test_a_written_file_is_proved() -> None:
    pulsed = causal()
    report = check_onnx(pulsed.to_onnx(), pulsed).require()
    (backend,) = report.backends
    assert backend.startswith("onnxruntime")
    assert len(report.tried) > 10
    assert report.error < 1e-4


def test_a_file_that_looks_up_computed_indices_is_proved() -> None:
    """Runtimes refuse the index that a NaN becomes, so its last pulse is padded with zeros; so is one read back."""
    nodes = [
        node("Clip", "x low high", "z"),
        node("Cast", "z", "i", to=TensorProto.INT64),
        node("Gather", "table i", "y"),
    ]
    constants = {"low": np.float32(0), "high": np.float32(4), "table": floats("table", 5, 2)}
    pulsed = pulse.load(model(nodes, {"x": floats("x", 1, 9)}, constants, stream={"x": 1})).pulsify(4)
    written = pulsed.to_onnx()
    check_onnx(written, pulsed, choice=ProofChoice(lengths=[9])).require()
    feeds = {"x": 4 * floats("x", 1, 9)}
    read_back = pulse.load(written).compile(backend="numpy")
    np.testing.assert_array_equal(
        stream_whole(read_back, feeds)["y"], stream_whole(pulsed.compile("numpy"), feeds)["y"]
    )


def test_a_wrong_onnx_file_is_found() -> None:
    """A weight is off by a little."""
    pulsed = causal()
    wrong = pulsed.to_onnx()
    (kernel,) = (tensor for tensor in wrong.graph.initializer if tensor.name == "w")
    values = np.frombuffer(kernel.raw_data, np.float32).copy()
    values[3] += 0.01
    kernel.raw_data = values.tobytes()
    divergence = check_onnx(wrong, pulsed).divergence
    assert divergence is not None
    assert divergence.wire == "y"
    assert divergence.backend.startswith("onnxruntime")
    assert abs(divergence.offline - divergence.streamed) > divergence.allowed


def test_a_state_that_begins_elsewhere_is_found() -> None:
    pulsed = causal()
    wrong = pulsed.to_onnx()
    metadata = StreamMetadata.parse({entry.key: entry.value for entry in wrong.metadata_props})
    assert metadata is not None
    (state,) = metadata.states
    begins_at_ones = StateMetadata.of(state.input, state.output, np.ones((1, 2, 2), np.float32))
    set_model_props(wrong, replace(metadata, states=(begins_at_ones,)).dump())
    divergence = check_onnx(wrong, pulsed).divergence
    assert divergence is not None
    assert (divergence.wire, divergence.frame) == ("y", 0)


def test_a_type_that_differs_is_found() -> None:
    pulsed = causal()
    opened = open_runtime(pulsed.to_onnx())
    assert opened.name.startswith("onnxruntime")

    def cut(feeds: object) -> dict[str, np.ndarray]:
        return {key: value.astype(np.float64) for key, value in opened.run(feeds).items()}  # type: ignore[arg-type]

    divergence = check_onnx(pulsed.to_onnx(), pulsed, run=cut).divergence
    assert divergence is not None
    assert "float64, offline" in divergence.reason


def test_a_check_at_no_length_that_suits_is_refused() -> None:
    pulsed = causal()
    pulsed.typed.scope.assume("T >= 50")
    with pytest.raises(PulsifyError, match=r"none of the lengths \[2, 3\]"):
        check_onnx(pulsed.to_onnx(), pulsed, choice=ProofChoice([2, 3]))


def test_without_onnxruntime_the_evaluator_of_onnx_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    pulsed = causal()
    report = check_onnx(pulsed.to_onnx(), pulsed, choice=ProofChoice([1, 3]))
    assert report.backends == ("onnx.reference",)
    assert report.equal


def test_the_report_says_that_onnxruntime_lacks_a_kernel() -> None:
    """A convolution of f64 has none, and no wider type."""
    weight = {"w": np.ones((2, 2, 3))}
    conv = node("Conv", "x w", pads=[2, 0])
    source = model([conv], {"x": np.ones((1, 2, 9))}, weight, 17, {"x": 2})
    pulsed = pulse.load(source).pulsify(2)
    report = check_onnx(pulsed.to_onnx(), pulsed, choice=ProofChoice([1, 3])).require()
    assert report.backends == ("onnx.reference",)
    assert report.verdict == "equal: every frame of every stream, in onnx.reference only"
    (text,) = (text for name, text in report.pairs() if name == "onnxruntime")
    assert text.startswith("not compared: onnxruntime 1.")
    assert "cannot load the file (Could not find an implementation for Conv" in text
    assert report.as_dict()["load_error"] in text


def test_a_runtime_that_is_less_exact_than_the_file_is_rejected() -> None:
    """The Sigmoid of onnxruntime is wrong by more than its value at -18: the file is right, and the report says so."""
    shift = chain((Elementwise("add"), [np.full((4, 2), -18, np.float32)]), (Elementwise("sigmoid"), []))
    pulsed = shift.pulsify(pulse=2)
    report = check_onnx(pulsed.to_onnx(), pulsed).require()
    assert report.backends == ("onnx.reference",)
    assert report.rejected is not None
    assert report.rejected.backend.startswith("onnxruntime")
    assert any(name.startswith("onnxruntime") for name, _ in report.pairs())
