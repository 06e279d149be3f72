"""What is imported before the first result."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest

import pulse
from pulse.jit.library import library
from pulse.onnx import proto
from tests.pulse.chunks import models

RELU = """
import sys
import numpy as np
import pulse
light = set(sys.modules)
program = pulse.stream(sys.argv[1], 4)
print(program.spawn().step(np.ones((1, 4), np.float32))["y"].sum())
print("", *[name for name in {heavy!r} if name in sys.modules], "|", "pulse.models" in light)
"""
HEAVY = ("onnx", "pulse.proof", "pulse.torch", "pulse.front", "pulse.recipes.whole")
CARRIED = ("numba", "llvmlite", "importlib.metadata")
"""What compiling imports."""


def ran(code: str, *arguments: str) -> Sequence[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.fixture
def relu(tmp_path: Path) -> str:
    path = tmp_path / "relu.onnx"
    built = models.build([models.node("Relu", "x", "y")], {"x": [1, "T"]}, {"y": [1, "T"]})
    path.write_bytes(built.SerializeToString())
    return str(path)


def test_a_model_of_a_file(relu: str):
    """Onnx is for writing and checking, numba for compiling; what a program does not need is not imported."""
    heavy = (*HEAVY, *(CARRIED if library() is not None else ()))
    result, imported = ran(RELU.format(heavy=heavy), relu)
    assert float(result) == 4
    assert imported.split("|") == [" ", " False"]


def test_the_command_line(tmp_path: Path):
    """No conversion of what is not given, nothing that is live."""
    heavy = ("onnx", "pydantic", "streaming.live", "pulse.proof")
    code = (
        "import atexit, os, sys\n"
        f"os.chdir({str(tmp_path)!r})\n"
        f"atexit.register(lambda: print('|', *[name for name in {heavy!r} if name in sys.modules]))\n"
        "sys.argv = ['pulse', 'run', '--json']\n"
        "from streaming.cli import main\n"
        "main()\n"
    )
    assert ran(code)[-1] == "|"


def test_the_messages_are_those_of_onnx():
    code = "from pulse.onnx.proto import ModelProto; import onnx; print(onnx.ModelProto is ModelProto)"
    assert ran(code) == ["True"]
    assert all(getattr(proto, name) is getattr(onnx, name) for name in proto.__all__)


def test_messages_of_a_package_without_their_file(monkeypatch: pytest.MonkeyPatch):
    """Then onnx gives them itself."""
    monkeypatch.setattr(proto, "MODULE", "onnx.nothing")
    assert proto.messages() is onnx


def test_the_names_of_the_package():
    assert set(pulse.__all__) <= set(dir(pulse))
    assert all(getattr(pulse, name) is not None for name in pulse.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pulse.nothing  # noqa: B018  # pyright: ignore
    assert callable(pulse.chain)
