"""``pulse convert --triton``: a repository, parsed with Triton's own schema and run as its sequence batcher does."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import pulse
from pulse.support.bounds import FAR_END
from streaming.builtin import model_path
from streaming.reports import triton
from streaming.session import Session
from tests.noise import normal_noise
from tests.streaming.command import pulse as command
from tests.streaming.command import refusal, report, save

PULSE = 160


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("triton")
    text = command("convert", model_path(), "--pulse", str(PULSE), "--triton", folder / "models").stdout
    assert "equal: every frame" in text
    (model,) = (folder / "models").iterdir()
    assert sorted(path.name for path in model.rglob("*")) == ["1", "config.pbtxt", "model.onnx"]
    return model


def parse_config(model: Path) -> Any:
    """Triton's own schema, and the config parsed with it."""
    schema = pytest.importorskip("tritonclient.grpc.model_config_pb2", reason="needs tritonclient[grpc]")
    from google.protobuf import text_format

    return schema, text_format.Parse((model / "config.pbtxt").read_text("utf-8"), schema.ModelConfig())


def test_the_config_names_the_model_and_its_platform(repository: Path) -> None:
    _, config = parse_config(repository)
    assert (config.name, config.platform, config.max_batch_size) == (repository.name, "onnxruntime_onnx", 0)


def test_the_config_batches_sequences_with_a_start_flag(repository: Path) -> None:
    schema, config = parse_config(repository)
    assert config.sequence_batching.WhichOneof("strategy_choice") == "oldest"
    (control,) = config.sequence_batching.control_input
    assert control.control[0].kind == schema.ModelSequenceBatching.Control.CONTROL_SEQUENCE_START
    assert list(control.control[0].bool_false_true) == [False, True]


def test_the_config_lists_all_inputs_and_outputs(repository: Path) -> None:
    _, config = parse_config(repository)
    proto = onnx.load(repository / "1" / "model.onnx")
    onnx.checker.check_model(proto, full_check=True)
    batching = config.sequence_batching
    (control,) = batching.control_input
    inputs = [*(port.name for port in config.input), control.name, *(s.input_name for s in batching.state)]
    outputs = [*(port.name for port in config.output), *(s.output_name for s in batching.state)]
    assert sorted(inputs) == sorted(value.name for value in proto.graph.input)
    assert sorted(outputs) == sorted(value.name for value in proto.graph.output)


def test_the_config_states_shapes_and_types_as_onnxruntime(repository: Path) -> None:
    schema, config = parse_config(repository)
    session = onnxruntime.InferenceSession(str(repository / "1" / "model.onnx"))
    ports = {value.name: value for value in (*session.get_inputs(), *session.get_outputs())}
    types = {"tensor(float)": schema.TYPE_FP32, "tensor(int64)": schema.TYPE_INT64}
    for state in config.sequence_batching.state:
        for name in (state.input_name, state.output_name):
            assert ports[name].shape == list(state.dims)
            assert types[ports[name].type] == state.data_type
    for port in (*config.input, *config.output):
        assert ports[port.name].shape == ([] if port.HasField("reshape") else list(port.dims))
        assert types[ports[port.name].type] == port.data_type


class Batcher:
    """The states of one sequence, as the batcher keeps them: garbage at first, then the model's outputs."""

    def __init__(self, model: Path, states: list[tuple[str, str]]) -> None:
        self.session = onnxruntime.InferenceSession(str(model / "1" / "model.onnx"))
        shapes = {value.name: value for value in self.session.get_inputs()}
        kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
        self.states = {read: np.full(shapes[read].shape, -77, kinds[shapes[read].type]) for read, _ in states}
        self.pairs = states

    def request(self, start: bool, **inputs):
        """Run a request and return its outputs."""
        names = [value.name for value in self.session.get_outputs()]
        results = dict(
            zip(names, self.session.run(None, {**inputs, **self.states, "START": np.array([start])}))
        )
        self.states = {read: results[state_out] for read, state_out in self.pairs}
        return results


def test_sequences_one_after_the_other_agree_with_the_model(repository: Path) -> None:
    _, config = parse_config(repository)
    states = [(state.input_name, state.output_name) for state in config.sequence_batching.state]
    batcher = Batcher(repository, states)
    program = pulse.stream(model_path(), pulse=PULSE)
    delay = program.outputs[0].delay
    for seed, pulses in [(0, 9), (1, 5)]:
        x = normal_noise(pulses * PULSE - 33, seed=seed, scale=0.1)
        padded = np.concatenate([x, np.full(33 + 3 * PULSE, np.nan, np.float32)])
        pieces = []
        for number in range(padded.size // PULSE):
            block = padded[None, number * PULSE : (number + 1) * PULSE]
            end = x.size if (number + 1) * PULSE >= x.size else FAR_END
            response = batcher.request(number == 0, audio=block, end=np.array(end, np.int64))
            pieces.append(response["denoised"])
        session = Session(program)
        expected = np.concatenate([session.push(x[None])["denoised"], session.flush()["denoised"]], 1)
        output = np.concatenate(pieces, 1)[:, delay : delay + x.size]
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)


def test_export_keeps_existing_files(repository: Path) -> None:
    message = refusal("convert", model_path(), "--triton", repository.parent)
    assert "already exists" in message
    assert "give one of them" in refusal("convert", "--triton", "x", "-o", "y.onnx")


@pytest.mark.parametrize(
    "nodes",
    [
        [helper.make_node("CumSum", ["x", "axis"], ["y"])],
        [helper.make_node("Slice", ["x", "before", "far", "axis"], ["y"])],
        [helper.make_node("Pad", ["x", "ahead"], ["y"], mode="edge")],
    ],
    ids=["sums", "last frames", "edges"],
)
@pytest.mark.usefixtures("working_folder")
def test_the_written_file_is_proved_in_sequences(nodes: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof feeds START and garbage states; a file that ignores START differs."""
    constants = {
        "axis": np.array([1]),
        "far": np.array([1 << 40]),
        "before": np.array([-3]),
        "ahead": np.array([0, 3, 0, 0]),
    }
    path = save("small.onnx", nodes, {"x": [1, "T"]}, {"y": [1, "Y"]}, constants)
    arguments = ("convert", path, "--pulse", 4, "--rate", 100)
    assert report(*arguments, "--triton", "right")["written"]["proof"]["outcome"] == "equal"
    proto = onnx.load("right/small/1/model.onnx")
    assert {entry.key: entry.value for entry in proto.metadata_props} == {"sample_rate": "100"}
    sequence_of = triton.sequence_model

    def ignore_start(model):
        sequence = sequence_of(model)
        for one in sequence.proto.graph.node:
            if "START" in one.input:
                one.input[1] = one.input[2]
        return sequence

    monkeypatch.setattr(triton, "sequence_model", ignore_start)
    text = command(*arguments, "--triton", "wrong", code=1).stdout
    assert "its outputs differ from the offline model" in text
    assert not Path("wrong").exists()
