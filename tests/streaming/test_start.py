"""Modules that are imported before the first result."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

import pulse
from pulse.jit.storage.library import library
from pulse.onnx import proto
from streaming.reports.opened_model import OpenedModel
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
STORED = """
import sys
import numpy as np
import pulse
program = pulse.Program.load(sys.argv[1])
print(program.spawn().step(np.ones((1, 4), np.float32))["y"].sum())
print("", *[name for name in {heavy!r} if name in sys.modules])
"""
HEAVY = ("onnx", "pulse.proof", "pulse.torch", "pulse.front", "pulse.recipes.recipe_model")
CARRIED = ("numba", "llvmlite", "importlib.metadata")
"""What compiling imports."""
KEPT = ("pulse.jit.storage.cache", "pulse.jit.storage.kernel_file", "pulse.jit.storage.fingerprint")
"""What looks for compiled kernels on the disk."""
MODELS = (
    "pulse.api",
    "pulse.loading.formats",
    "pulse.graph",
    "pulse.models",
    "pulse.typed",
    "pulse.program.lowering",
)
"""What reads and analyses models."""
SLOW = ("pathlib", "_hashlib", "pulse.ops.op", "pulse.program.streams.lanes", "pulse.program.table.cost")
"""What takes milliseconds and a program of a file runs without: OpenSSL, ops, lanes, reports."""
UNUSED = ("pulse.program.kernels.recurrent", "pulse.program.native.profile")
"""Kernels that a Relu has none of, and what a step does not need."""


def unless_compiled(*names: str) -> tuple[str, ...]:
    """Names, where the package carries machine code."""
    return names if library() is not None else ()


def ran(code: str, *arguments: str) -> Sequence[str]:
    """The output of a process, line by line."""
    process = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return process.stdout.splitlines()


@pytest.fixture
def relu(tmp_path: Path) -> str:
    path = tmp_path / "relu.onnx"
    proto = models.build([models.node("Relu", "x", "y")], {"x": [1, "T"]}, {"y": [1, "T"]})
    path.write_bytes(proto.SerializeToString())
    return str(path)


def test_a_model_imports_only_needed_modules(relu: str) -> None:
    """Onnx is for writing and checking, numba for compiling; what a program does not need is not imported."""
    heavy = (*HEAVY, *unless_compiled(*CARRIED, *KEPT))
    result, imported = ran(RELU.format(heavy=heavy), relu)
    assert float(result) == 4
    assert imported.split("|") == [" ", " False"]


def test_a_program_imports_only_its_kernels(relu: str, tmp_path: Path) -> None:
    """The program imports the kernels that it runs, and nothing that knows of models."""
    path = tmp_path / "relu.pulse"
    pulse.stream(relu, 4).save(path)
    heavy = (*HEAVY, *MODELS, *UNUSED, *unless_compiled(*CARRIED, *KEPT))
    assert ran(STORED.format(heavy=heavy), str(path)) == ["4.0", ""]


def test_a_program_imports_no_slow_module(relu: str, tmp_path: Path) -> None:
    """Beside what numpy imports; without the site module, which imports more where packages are edited in place."""
    path = tmp_path / "relu.pulse"
    pulse.stream(relu, 4).save(path)
    folders = [str(Path(package.__path__[0]).parent) for package in (pulse, np)]
    code = f"import sys; sys.path[:0] = {folders!r}\n{STORED.format(heavy=unless_compiled(*SLOW))}"
    process = subprocess.run(
        [sys.executable, "-S", "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert process.stdout.splitlines() == ["4.0", ""]


def modules_of_command(folder: Path, heavy: Sequence[str], *arguments: str) -> str:
    """Which of the modules a command imports."""
    code = (
        "import atexit, os, sys\n"
        f"os.chdir({str(folder)!r})\n"
        f"atexit.register(lambda: print('|', *[name for name in {heavy!r} if name in sys.modules]))\n"
        f"sys.argv = ['pulse', *{arguments!r}]\n"
        "from streaming.cli import main\n"
        "main()\n"
    )
    return ran(code)[-1]


def test_the_command_line_imports_only_needed_modules(tmp_path: Path) -> None:
    """The conversions of other formats and all that is live are not imported."""
    heavy = ("onnx", "pydantic", "streaming.live", "pulse.proof", *unless_compiled(*CARRIED, *KEPT))
    assert modules_of_command(tmp_path, heavy, "run", "--json") == "|"


def test_the_command_line_runs_a_program_without_compiler(relu: str, tmp_path: Path) -> None:
    pulse.stream(relu, 4).save(tmp_path / "relu.pulse")
    np.save(tmp_path / "x.npy", np.ones((1, 8), np.float32))
    heavy = ("onnx", "pydantic", "streaming.live", "pulse.proof", *MODELS, *unless_compiled(*CARRIED, *KEPT))
    assert modules_of_command(tmp_path, heavy, "run", "relu.pulse", "x.npy", "y.npy", "--json") == "|"
    assert np.array_equal(np.load(tmp_path / "y.npy"), np.ones((1, 8)))


def test_options_of_a_model_are_refused_for_a_program(relu: str, tmp_path: Path) -> None:
    """The command refuses them as pulse.load does."""
    path = tmp_path / "relu.pulse"
    pulse.stream(relu, 4).save(path)
    code = "from streaming.cli import main; main()"
    command = [sys.executable, "-c", code, "run", str(path), "x.npy", "--symbol", "T"]
    with pytest.raises(pulse.LoadError, match="is a program; the options for reading its model are fixed"):
        pulse.load(path, symbol="T")
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (
        process.returncode,
        "is a program; the options for reading its model are fixed" in process.stderr,
    ) == (
        2,
        True,
    )


def open_pooling(folder: Path, factor: int) -> OpenedModel:
    """A model at 400 Hz whose pulses are multiples of the factor."""
    nodes = [models.node("MaxPool", "x", "y", kernel_shape=[factor], strides=[factor])]
    path = folder / f"{factor}.onnx"
    path.write_bytes(models.build(nodes, {"x": [1, 1, "T"]}, {"y": [1, 1, None]}).SerializeToString())
    return OpenedModel(pulse.load(path), 400, "option")


@pytest.mark.parametrize(("factor", "pulse_frames"), [(1, 4), (3, 6), (8, 8)])
def test_the_pulse_of_a_model_has_about_ten_milliseconds(
    tmp_path: Path, factor: int, pulse_frames: int
) -> None:
    """The smallest pulse that has as many frames, or the smallest one where that is longer."""
    assert open_pooling(tmp_path, factor).pulsify(None).pulse == pulse_frames


def test_a_pulse_that_a_model_does_not_take_is_refused(tmp_path: Path) -> None:
    with pytest.raises(pulse.PulsifyError, match="multiple of 8: use 8"):
        open_pooling(tmp_path, 8).pulsify(4)


def test_the_messages_are_those_of_onnx() -> None:
    code = "from pulse.onnx.proto import ModelProto; import onnx; print(onnx.ModelProto is ModelProto)"
    assert ran(code) == ["True"]
    assert all(getattr(proto, name) is getattr(onnx, name) for name in proto.__all__)


def test_messages_are_those_of_onnx_without_their_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed onnx gives the messages itself."""
    monkeypatch.setattr(proto, "MODULE", "onnx.nothing")
    assert proto.messages() is onnx


def test_names_of_the_package_are_listed_and_exist() -> None:
    assert set(pulse.__all__) <= set(dir(pulse))
    assert all(getattr(pulse, name) is not None for name in pulse.__all__)
    assert callable(pulse.chain)


def test_a_name_that_the_package_lacks_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pulse.nothing  # noqa: B018  # pyright: ignore
