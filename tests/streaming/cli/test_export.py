"""``pulse convert -o`` writes a file for any runtime and checks it before it gets its name."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import soundfile
from onnx import helper, numpy_helper

from pulse.errors import NotProvedError
from pulse.runtimes.onnx_runtimes import RuntimeProgram
from pulse.runtimes.tract import has_tract
from streaming.builtin import model_path, noisy_path
from streaming.reports import exporting_offline
from tests.streaming.command import features, pulse, refusal, report

pytestmark = pytest.mark.usefixtures("working_folder")


def test_the_builtin_model_is_exported_and_proved(tmp_path: Path) -> None:
    """The exported file is proved, and runs as the same stream."""
    result = pulse("convert", "--pulse", "320", "-o", "out.onnx")
    assert "out.onnx: opset 17" in result.stdout
    assert "onnxruntime" in result.stdout
    assert "equal: every frame" in result.stdout
    entries = {entry.key: entry.value for entry in onnx.load("out.onnx").metadata_props}
    assert entries["sample_rate"] == "16000"
    assert entries["pulse_frames"] == "320"
    assert [path.name for path in tmp_path.iterdir()] == ["out.onnx"]
    pulse("run", model_path(), noisy_path(), "first.wav", "--pulse", "320")
    pulse("run", "out.onnx", noisy_path(), "second.wav")
    first, second = (soundfile.read(name)[0] for name in ("first.wav", "second.wav"))
    np.testing.assert_allclose(first, second, atol=2 / (1 << 15))


def test_the_report_of_an_export_has_its_proof() -> None:
    written = report("convert", "-o", "out.onnx", "--opset", "18")["written"]
    assert written["path"] == "out.onnx"
    assert written["opset"] == 18
    assert written["states"] == 8
    assert written["proof"]["outcome"] == "equal"
    assert written["proof"]["share"] <= 1
    assert len(written["proof"]["lengths"]) > 5
    assert report("convert", "-o", "out.onnx", "--no-check")["written"]["proof"] is None
    assert "written" not in report("convert")


def test_a_wrong_export_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is 1 and the earlier file stays."""
    (tmp_path / "out.onnx").write_text("older")

    plain = RuntimeProgram.__init__

    def init_with_changed_state(self, *arguments):
        plain(self, *arguments)
        self.initial = {
            n: array + 1 if array.dtype.kind == "f" else array for n, array in self.initial.items()
        }

    monkeypatch.setattr(RuntimeProgram, "__init__", init_with_changed_state)
    result = pulse("convert", "-o", "out.onnx", "--length", 500, code=1)
    assert "denoised (output) diverges at frame 0 of a stream of 500" in result.stderr
    assert "; out.onnx is not written (--no-check writes it unproved)" in result.stderr
    written = json.loads(pulse("convert", "-o", "out.onnx", "--length", 500, "--json", code=1).stdout)[
        "written"
    ]
    assert written["path"] is None
    assert written["proof"]["outcome"] == "diverged"
    assert (tmp_path / "out.onnx").read_text() == "older"
    assert [path.name for path in tmp_path.iterdir()] == ["out.onnx"]


def test_targets_that_cannot_be_written_are_refused() -> None:
    assert "opset 3 cannot be written" in refusal("convert", "-o", "out.onnx", "--opset", "3")
    assert "check the folder" in refusal("convert", "-o", "nowhere/out.onnx")
    assert "a model is written as .onnx, .nnef or .nnef.tgz, not .wav" in refusal("convert", "-o", "out.wav")
    os.mkfifo("pipe.onnx")
    assert "pipe.onnx: is not a file that can be replaced" in refusal("convert", "-o", "pipe.onnx")
    assert Path("pipe.onnx").is_fifo()


def test_export_reports_a_full_disk() -> None:
    """The error has the name that the user gave, and no partial file stays."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        message = refusal("convert", "-o", "out.onnx")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert message.startswith("error: out.onnx: cannot be written (File too large)")
    assert not list(Path().iterdir())


def test_a_written_file_knows_its_pulse() -> None:
    """The pulse of a written file is shown and checked, and other pulses are refused."""
    pulse("convert", "-o", "out.onnx", "--no-check")
    details = report("convert", "out.onnx")
    assert details["pulse_frames"] == 160
    assert {"pulses", "spectrum.window.state"} <= {buffer["name"] for buffer in details["buffers"]}
    proof = json.loads(pulse("check", "out.onnx", "--length", "500", "--json").stdout)
    assert proof["proof"]["outcome"] == "equal"
    assert "written for pulses of 160 frames" in refusal("convert", "out.onnx", "--pulse", "80")


def test_nnef_is_written_in_pulses(tmp_path: Path) -> None:
    """A folder and an archive are written and proved in tract, if installed; a folder is not overwritten."""
    written = report("convert", "--pulse", "320", "-o", "out.nnef", "--length", "700")["written"]
    assert written["path"] == "out.nnef"
    assert written["opset"] is None
    assert written["states"] == 8
    if has_tract():
        assert written["proof"]["outcome"] == "equal"
        assert written["proof"]["backends"] == ["tract"]
    assert "tract_core_scan" in (tmp_path / "out.nnef" / "graph.nnef").read_text()
    assert "out.nnef: already exists; remove it" in refusal(
        "convert", "--pulse", "320", "-o", "out.nnef", "--no-check"
    )
    pulse("convert", "--pulse", "320", "-o", "out.nnef.tgz", "--no-check")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.nnef", "out.nnef.tgz"]


def test_nnef_is_written_offline(tmp_path: Path) -> None:
    """An export without a pulse is the decluttered model, which runs like any other model."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[2, 0])]
    shapes = [helper.make_tensor_value_info(name, 1, [1, 1, "T"]) for name in ("x", "y")]
    stored = numpy_helper.from_array(np.ones((1, 1, 3), np.float32), "w")
    graph = helper.make_graph(nodes, "conv", shapes[:1], shapes[1:], [stored])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "conv.onnx"
    )
    result = pulse("convert", "conv.onnx", "-o", "conv.nnef.tgz")
    assert "NNEF of the offline model, 3 nodes" in result.stdout
    assert ("equal in tract, at 9 lengths" in result.stdout) == has_tract()
    assert report("check", "conv.nnef.tgz", "--pulse", "4", "--length", "9")["proof"]["outcome"] == "equal"
    unproved = json.loads(pulse("convert", "conv.onnx", "-o", "conv.nnef", "--no-check", "--json").stdout)
    assert unproved["nodes"] == 3
    assert unproved["outcome"] == "not proved"


def test_an_offline_model_whose_proof_fails_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_):
        raise NotProvedError("tract refuses every length")

    monkeypatch.setattr(exporting_offline, "has_tract", lambda: True)
    monkeypatch.setattr(exporting_offline, "check_offline", fail)
    result = pulse("convert", "-o", "whole.nnef.tgz", code=3)
    assert "not written  NNEF of the offline model" in result.stdout
    assert result.stderr == "error: tract refuses every length\n"
    assert not (tmp_path / "whole.nnef.tgz").exists()


def test_a_model_is_not_replaced_by_its_export() -> None:
    """Neither the model that is given, nor the one that a given recipe names."""
    model = Path(model_path()).read_bytes()
    Path("in.onnx").write_bytes(model)
    Path("recipe.toml").write_text('[[stage]]\nmodel = "in.onnx"\n')
    for source in ("in.onnx", "recipe.toml"):
        assert "in.onnx: is the input; write to another file" in refusal("convert", source, "-o", "in.onnx")
    assert Path("in.onnx").read_bytes() == model


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes on Linux alone")
@pytest.mark.parametrize("name", ["m\udcff.onnx", "two\nlines.onnx"], ids=["not-utf-8", "line-break"])
@pytest.mark.parametrize("options", [["-o", "out.onnx"], ["--triton", "folder"]], ids=["onnx", "triton"])
def test_a_model_of_any_file_name_is_exported(name: str, options: list[str]) -> None:
    """ONNX stores the name of the model as UTF-8."""
    features(name)
    assert "equal: every frame" in pulse("convert", name, *options).stdout
    (path,) = [*Path("folder").rglob("*.onnx"), *Path().glob("out.onnx")]
    assert onnx.load(path).graph.name == name.removesuffix(".onnx").encode("unicode_escape").decode()
