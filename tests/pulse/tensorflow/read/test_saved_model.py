"""SavedModels: variables of a checkpoint, and states that a call assigns become those of the stream."""

from pathlib import Path

import numpy as np
import pytest

import pulse
from pulse import Chunking
from pulse.errors import InputError, LoadError, PulsifyError
from pulse.facts import Array
from pulse.tensorflow.messages import SavedModel, TrackableObjectGraph
from pulse.tensorflow.read.checkpoint import CheckpointTensors
from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import F32, GraphDefBuilder, Shape, write_checkpoint
from tests.pulse.tensorflow.saved import FIRST, W, stateful

CALLED = Chunking(axes={"x": 0, "y": 0})


def expected_frames(x: Array) -> Array:
    state, frames = FIRST, list[Array]()
    for frame in x:
        state = np.tanh(frame[None] @ W + state)
        frames.append(state[0])
    return np.stack(frames)


def test_the_state_is_an_input_and_an_output(tmp_path: Path) -> None:
    model = pulse.load(stateful(tmp_path / "model")).model
    (variable,) = model.variables
    assert (variable.input, variable.output) == ("state", "state.next")
    assert variable.initial is not None
    assert np.array_equal(variable.initial, FIRST)
    assert list(model.inputs) == ["x", "state"]


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_folder_streams(tmp_path: Path, backend: str) -> None:
    folder, x = stateful(tmp_path / "model"), normal_noise(6, 4, seed=2)
    state = pulse.stream(pulse.load(folder, chunking=CALLED), backend=backend).spawn()
    output = np.concatenate([state.step(frame[None])["y"] for frame in x])
    np.testing.assert_allclose(output, expected_frames(x), rtol=1e-5, atol=1e-6)


def test_a_session_calls_the_signature(tmp_path: Path) -> None:
    session, x = pulse.tensorflow.load(stateful(tmp_path / "model")).session(), normal_noise(3, 4, seed=2)
    output = np.concatenate([session.call({"x": frame[None]})["y"] for frame in x])
    np.testing.assert_allclose(output, expected_frames(x), rtol=1e-5, atol=1e-6)
    session.reset()
    np.testing.assert_allclose(session.call({"x": x[:1]})["y"], output[:1])


def test_a_call_names_missing_and_unknown_inputs(tmp_path: Path) -> None:
    session, x = pulse.tensorflow.load(stateful(tmp_path / "model")).session(), normal_noise(1, 4)
    with pytest.raises(InputError, match=r"its inputs are x; missing: x; unknown: y, z$"):
        session.call({"z": x, "y": x})
    with pytest.raises(InputError, match=r"its inputs are x; unknown: y$"):
        session.call({"x": x, "y": x})


def with_objects(folder: Path, key: str = "layer/kernel") -> Path:
    """The same, its weights in an object that the graph for restoring does not know."""
    stateful(folder)
    saved = SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    meta = saved.meta_graphs[0]
    for node in meta.graph_def.node:
        if node.name == "save/Assign0":
            node.input[0] = "outer"
    outer = meta.graph_def.node.add(name="outer", op="VarHandleOp")
    outer.attr["dtype"].type = 1
    objects = meta.object_graph_def
    objects.nodes.add().children.add(node_id=1, local_name="layer")
    objects.nodes.add().children.add(node_id=2, local_name="kernel")
    objects.nodes.add().variable.name = "weights"
    objects.concrete_functions["step"].bound_inputs.extend([2, 3])
    (folder / "saved_model.pb").write_bytes(saved.SerializeToString(deterministic=True))
    stored = TrackableObjectGraph()
    stored.nodes.add().children.add(node_id=2, local_name="layer")
    stored.nodes.add().attributes.add(name="VARIABLE_VALUE", checkpoint_key=key)
    stored.nodes.add().children.add(node_id=1, local_name="kernel")
    write_checkpoint(
        folder / "variables" / "variables",
        {"layer/kernel": W, "b/value": np.zeros_like(W), "a/value": FIRST},
        {"_CHECKPOINTABLE_OBJECT_GRAPH": stored.SerializeToString()},
    )
    return folder


def test_captured_variables_are_found_by_their_objects(tmp_path: Path) -> None:
    folder, x = with_objects(tmp_path / "model"), normal_noise(6, 4, seed=2)
    state = pulse.stream(pulse.load(folder, chunking=CALLED), backend="numpy").spawn()
    output = np.concatenate([state.step(frame[None])["y"] for frame in x])
    np.testing.assert_allclose(output, expected_frames(x), rtol=1e-5, atol=1e-6)


def test_an_object_of_another_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="has no tensor 'elsewhere'; the checkpoint belongs to another"):
        pulse.load(with_objects(tmp_path / "model", "elsewhere"))


def test_objects_that_are_damaged_are_refused(tmp_path: Path) -> None:
    folder = with_objects(tmp_path / "model")
    data = folder / "variables" / "variables.data-00000-of-00001"
    data.write_bytes(b"\xff" * data.stat().st_size)
    with pytest.raises(LoadError, match="damaged"):
        pulse.load(folder)


def test_a_saved_model_is_exported_with_its_state(tmp_path: Path) -> None:
    program = pulse.load(stateful(tmp_path / "model"), chunking=CALLED).pulsify()
    again = (
        pulse.load(program.to_onnx().SerializeToString())
        .model.analyse()
        .pulsify()
        .compile(backend="numpy")
        .spawn()
    )
    x = normal_noise(3, 4, seed=2)
    output = np.concatenate([again.step(frame[None])["y"] for frame in x])
    np.testing.assert_allclose(output, expected_frames(x), rtol=1e-5, atol=1e-6)


def test_a_variable_without_a_first_value_is_asked_for() -> None:
    builder = GraphDefBuilder()
    builder.place("x", 1, 4)
    builder.node("v", "VariableV2", dtype=F32, shape=Shape((1, 4)))
    builder.node("y", "AddV2", "x", "v", T=F32)
    builder.node("store", "Assign", "v", "y", T=F32)
    builder.node("out", "Identity", "y", "^store", T=F32)
    axes = {"x": 0, "out": 0}
    with pytest.raises(
        PulsifyError,
        match=r'no first value for its state v; give one, as in chunking=Chunking\(initial=\{"v": 0\}\)',
    ):
        pulse.stream(pulse.load(builder.data, chunking=Chunking(axes=axes)))
    state = pulse.stream(
        pulse.load(builder.data, chunking=Chunking(axes=axes, initial={"v": 0})), backend="numpy"
    ).spawn()
    unit = np.ones((1, 4), np.float32)
    assert [float(state.step(unit)["out"][0, 0]) for _ in range(3)] == [1, 2, 3]


def test_signatures_are_named(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="unknown signature 'train'; choose one of serving_default"):
        pulse.load(stateful(tmp_path / "model"), signature="train")
    assert list(pulse.load(tmp_path / "model", signature="serving_default").model.inputs) == ["x", "state"]


def test_the_default_signature_is_that_of_a_model(tmp_path: Path) -> None:
    folder = stateful(tmp_path / "model")
    saved = SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    signatures = saved.meta_graphs[0].signature_def
    signatures["train"].CopyFrom(signatures.pop("serving_default"))
    signatures["__saved_model_init_op"].outputs["init"].name = "save/all"
    signatures["no_outputs"].inputs["x"].name = "x:0"
    (folder / "saved_model.pb").write_bytes(saved.SerializeToString(deterministic=True))
    model, x = pulse.tensorflow.load(folder), normal_noise(1, 4, seed=2)
    assert list(model.inputs) == ["x", "state"]
    np.testing.assert_allclose(model.session().call({"x": x})["y"], expected_frames(x), rtol=1e-5, atol=1e-6)


def test_files_without_signatures_refuse_the_option(tmp_path: Path) -> None:
    model = pulse.load(stateful(tmp_path / "model"), chunking=CALLED)
    with pytest.raises(
        LoadError, match="signature= is an option for reading a file, but model has already been read"
    ):
        pulse.load(model, signature="serving_default")
    exported = model.pulsify().to_onnx().SerializeToString()
    with pytest.raises(LoadError, match="an ONNX file has no signatures; omit signature="):
        pulse.load(exported, signature="serving_default")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[[stage]]\nmodel = "model"\nsignature = "train"\naxes = { x = 0, y = 0 }\n')
    with pytest.raises(LoadError, match="write signature in the stage that it is for"):
        pulse.load(recipe, signature="train")
    with pytest.raises(LoadError, match="unknown signature 'train'"):
        pulse.load(recipe)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="folder"):
        pulse.tensorflow.load(tmp_path)


@pytest.mark.parametrize("cut", [0, 20, 60, 100])
def test_a_damaged_index_is_refused(tmp_path: Path, cut: int) -> None:
    folder = stateful(tmp_path / "model")
    index = folder / "variables" / "variables.index"
    index.write_bytes(index.read_bytes()[cut + 1 :])
    with pytest.raises(LoadError, match="damaged"):
        pulse.load(folder)


def test_data_that_is_missing_or_elsewhere_is_refused(tmp_path: Path) -> None:
    folder = stateful(tmp_path / "model")
    data = folder / "variables" / "variables.data-00000-of-00001"
    content = data.read_bytes()
    data.write_bytes(content[:10])
    with pytest.raises(LoadError, match="damaged"):
        pulse.load(folder)
    data.unlink()
    with pytest.raises(LoadError, match="cannot be read"):
        pulse.load(folder)
    (tmp_path / "elsewhere").write_bytes(content)
    data.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LoadError, match="outside the model's folder"):
        pulse.load(folder)


def test_keys_share_their_beginnings(tmp_path: Path) -> None:
    tensors = {f"layer/{number}/w": normal_noise(number + 1, 2, seed=number) for number in range(5)}
    write_checkpoint(tmp_path / "model", tensors)
    checkpoint = CheckpointTensors(tmp_path / "model")
    assert checkpoint.keys() == sorted(tensors)
    for key, value in tensors.items():
        assert np.array_equal(checkpoint.tensor(key), value)
    with pytest.raises(LoadError, match="has no tensor 'w'"):
        checkpoint.tensor("w")
