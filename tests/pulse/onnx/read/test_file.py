"""Files that are no models are refused at once, and the error says what they look like."""

import gzip
import io
import itertools
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import pulse
from tests.pulse.cases.build import model, node


def zip_file(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, b"\0" * 16)
    return file.getvalue()


def arrays() -> bytes:
    file = io.BytesIO()
    np.savez(file, a=np.ones(3))
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "zeros, or nothing at all; download"),
        (b"\0" * 1000, "zeros"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "a picture"),
        (b"import torch\nprint(1)\n", "text; give the .onnx file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:12\n", "Git LFS.*git lfs pull"),
        (b"<!DOCTYPE html><html></html>", "a web page"),
        (zip_file("archive/data.pkl", "archive/version"), "a PyTorch file; .*from_torch"),
        (zip_file("a.txt"), "a zip archive; unpack"),
        (arrays(), "numpy arrays"),
        (b"\x80\x02}q\0.", "pickle"),
        ((200).to_bytes(8, "little") + b'{"w":{"dtype":"F32"', "safetensors"),
        (b"\x1c\0\0\0ORTM" + b"\0" * 20, "onnxruntime"),
        (b"GGUF\3\0\0\0", "GGUF"),
        (gzip.compress(b"model"), "compressed file; unpack"),
        (b"\x89HDF\r\n\x1a\n", "Keras"),
        (b"RIFF\x24\0\0\0WAVEfmt ", "an audio file; give the model first"),
        (b"\x93NUMPY\1\0", "a numpy array"),
        (b"\xff\xfe\xfd", "not an ONNX model; give a file"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value,
)
def test_other_formats_are_named(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    for source in (path, data):
        with pytest.raises(pulse.LoadError, match=words):
            pulse.load(source)


def read_bytes() -> int:
    """How many bytes this process has read so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


def test_three_gigabytes_are_refused_at_once(tmp_path: Path) -> None:
    zeros, padded = tmp_path / "zeros.onnx", tmp_path / "padded.onnx"
    padded.write_bytes(model([node("Relu", "x")], {"x": np.zeros((1, 2), np.float32)}).SerializeToString())
    for path, words in ((zeros, "zeros"), (padded, "less than 2 GiB")):
        with path.open("ab") as file:
            file.truncate(3 << 30)
        before = read_bytes()
        with pytest.raises(pulse.LoadError, match=words):
            pulse.load(path)
        assert read_bytes() - before < 1 << 20


def test_pipes_and_folders_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(pulse.LoadError, match="is a pipe or a device"):
        pulse.load(tmp_path / "pipe.onnx")
    with pytest.raises(pulse.LoadError, match="is a pipe or a device"):
        pulse.load("/dev/zero")
    with pytest.raises(pulse.LoadError, match="is a folder"):
        pulse.load(tmp_path)
    with pytest.raises(pulse.LoadError, match="is not a path"):
        pulse.load("a\0b")


def test_names_in_invalid_utf8_are_refused() -> None:
    data = model([node("Relu", "x")], {"x": np.zeros((1, 2), np.float32)}).SerializeToString()
    with pytest.raises(pulse.LoadError, match="a name in it is not text"):
        pulse.load(data.replace(b"Relu_y", b"Relu\xff\xfe"))


def with_data(**entries: str) -> bytes:
    """A product of x [T, 2] and w [2, 3], whose data is next to the model."""
    w = TensorProto(name="w", dims=[2, 3], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        w.external_data.add(key=key, value=value)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["T", 2])
    y = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node("MatMul", "x w")], "g", [x], [y], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


def test_data_is_read_from_a_file_next_to_the_model(tmp_path: Path) -> None:
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    (tmp_path / "w.bin").write_bytes(b"1234" + weights.tobytes() + b"more")
    path = tmp_path / "model.onnx"
    path.write_bytes(with_data(location="w.bin", offset="4", length="24"))
    x = np.eye(2, dtype=np.float32)
    np.testing.assert_array_equal(pulse.load(path).analyse().run(x)["y"], weights)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"location": "../secret.bin"}, "outside the model's folder; move it"),
        ({"location": "link.bin"}, "outside the model's folder"),
        ({"location": "/dev/zero"}, "outside the model's folder"),
        ({"location": "pipe.bin"}, "not a regular file"),
        ({"location": "none.bin"}, "missing; put it into the model's folder"),
        ({"location": ""}, "not a regular file"),
        ({"location": "w.bin", "offset": "8"}, "bytes 8 to 32 of 'w.bin', which has 24"),
        ({"location": "w.bin", "length": "20"}, "20 bytes of data for shape .*, which takes 24"),
        ({"location": "w.bin", "offset": "-1"}, "the offset of its data, '-1', is not a number"),
    ],
)
def test_misplaced_or_wrongly_sized_external_data_is_refused(
    tmp_path: Path, entries: dict[str, str], words: str
) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    for path in (tmp_path / "secret.bin", folder / "w.bin"):
        path.write_bytes(np.ones(6, np.float32).tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    os.mkfifo(folder / "pipe.bin")
    (folder / "model.onnx").write_bytes(with_data(**entries))
    with pytest.raises(pulse.LoadError, match=words):
        pulse.load(folder / "model.onnx")


def test_functions_that_call_themselves_or_too_often_are_refused() -> None:
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]

    def function(name: str, calls: str, times: int) -> object:
        wires = ["a", *(f"v{k}" for k in range(times - 1)), "b"]
        body = [
            helper.make_node(calls, [before], [after], domain="" if calls == "Relu" else "own")
            for before, after in itertools.pairwise(wires)
        ]
        return helper.make_function("own", name, ["a"], ["b"], body, imports)

    def calling_model(*functions: object) -> bytes:
        proto = model(
            [helper.make_node("F0", ["x"], ["y"], domain="own")], {"x": np.zeros((1, 2), np.float32)}
        )
        proto.functions.extend(functions)
        proto.opset_import.extend(imports[1:])
        return proto.SerializeToString()

    pulse.load(calling_model(function("F0", "F1", 2), function("F1", "Relu", 3))).analyse()
    with pytest.raises(pulse.LoadError, match="function F0 calls itself"):
        pulse.load(calling_model(function("F0", "F1", 1), function("F1", "F0", 1)))
    doubling = [function(f"F{k}", f"F{k + 1}" if k < 40 else "Relu", 2) for k in range(41)]
    with pytest.raises(pulse.LoadError, match=r"unfold to .* nodes"):
        pulse.load(calling_model(*doubling))


def test_tensors_whose_data_does_not_fit_are_refused() -> None:
    proto = model([node("Add", "x w")], {"x": np.zeros(2, np.float32)}, {"w": np.ones(2, np.float32)})
    proto.graph.initializer[0].dims[0] = -2
    with pytest.raises(pulse.LoadError, match=r"its shape .* is negative"):
        pulse.load(proto)
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones(3, np.float32), "w"))
    proto.graph.initializer[0].dims[0] = 1 << 40
    with pytest.raises(pulse.LoadError, match="its data cannot be read"):
        pulse.load(proto)
