"""Users' models in the bench: any ONNX file, offline or of chunks, with one input or several."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from bench.models.gru import gru
from tests.documents.pages import pages

contests = pytest.importorskip("bench.peers.contest", exc_type=ImportError)
main = pytest.importorskip("bench.__main__", exc_type=ImportError)


def entries(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[Any]:
    monkeypatch.setattr(sys, "argv", ["bench", *arguments])
    return main.entries(main.parse_options())


def canceller(path: Path) -> None:
    """A chunk of four samples of two signals, a weight of the second that adapts, and a constant gain."""
    sound = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in ("mic", "far")]
    state, gain = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1]) for name in ("w", "gain"))
    nodes = [
        helper.make_node("Mul", ["far", "w"], ["echo"]),
        helper.make_node("Sub", ["mic", "echo"], ["clean"]),
        helper.make_node("Mul", ["clean", "gain"], ["y"]),
        helper.make_node("ReduceMean", ["clean"], ["mean"], axes=[1], keepdims=1),
        helper.make_node("Add", ["w", "mean"], ["wn"]),
    ]
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4]),
        helper.make_tensor_value_info("wn", TensorProto.FLOAT, [1, 1]),
    ]
    graph = helper.make_graph(nodes, "canceller", [*sound, state, gain], outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def test_the_block_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = pages()["bench/README.md"].blocks("python")
    exec(compile(block, "bench/README.md", "exec"), {"my_step": lambda pulse: None})
    assert re.fullmatch(r"[\d.]+ \([\d.]+\)\n", capsys.readouterr().out)


def test_an_offline_model_runs_in_all_runtimes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "mine.onnx"
    onnx.save(gru(8, 1), path)
    (entry,) = entries(monkeypatch, "--model", str(path), "--pulse", "3")
    assert (entry.name, entry.offline) == ("mine, 3", True)
    contest = contests.contest(entry, 6, 1)
    assert set(contest.best) == {"pulse", "onnxruntime", "tract"}


def test_a_chunk_model_with_state_and_constant_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "canceller.onnx"
    canceller(path)
    (entry,) = entries(
        monkeypatch, "--model", str(path), "--constant", "gain=[[2.0]]", "--axis", "mic=1", "--axis", "far=1"
    )
    assert (entry.name, entry.offline) == ("canceller, 4", False)
    contest = contests.contest(entry, 6, 1)
    right = {(form.runtime, form.how) for form in contest.forms if form.status == "right"}
    assert {("onnxruntime", "exported"), ("onnxruntime", "its author's form")} <= right
    assert all(set(feed) == {"mic", "far"} for feed in contest.pulses)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.onnx", "no such file"),
        pytest.param("mine.tflite", "python -m bench.tflite", marks=pytest.mark.slow),
    ],
)
def test_an_unreadable_file_is_reported_in_one_line(name: str, words: str, tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "bench", "--model", str(tmp_path / name)], capture_output=True, text=True
    )
    assert process.returncode == 1
    assert words in process.stderr
    assert process.stderr.count("\n") == 1
