"""Modules that are imported before the first result."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import pulse
from pulse.jit.storage.package_library import library
from tests.pulse.cases.build import node
from tests.pulse.chunks import models

STREAM_MODEL = """
import sys
import numpy as np
import pulse
light = set(sys.modules)
program = pulse.stream(sys.argv[1], 4)
print(program.spawn().step(np.ones((1, 4), np.float32))["y"].sum())
print("", *[name for name in {heavy!r} if name in sys.modules], "|", "pulse.models" in light)
"""
STREAM_STORED_PROGRAM = """
import sys
import numpy as np
import pulse
program = pulse.Program.load(sys.argv[1])
print(program.spawn().step(np.ones((1, 4), np.float32))["y"].sum())
print("", *[name for name in {heavy!r} if name in sys.modules])
"""
OPTIONAL_MODULES = ("onnx", "pulse.proof", "pulse.torch", "pulse.front", "pulse.recipes.recipe_model")
LIBRARY_MODULES = ("onnx", "pydantic", "streaming.live", "pulse.proof")
"""Modules of conversions and live runs."""
COMPILER_MODULES = ("numba", "llvmlite", "importlib.metadata")
"""Modules that compiling imports."""
CACHE_MODULES = ("pulse.jit.storage.cache", "pulse.jit.storage.kernel_file", "pulse.jit.storage.fingerprint")
"""Modules that look for compiled kernels on the disk."""
MODEL_MODULES = (
    "pulse.api",
    "pulse.formats",
    "pulse.graph",
    "pulse.models",
    "pulse.typed",
    "pulse.program.lowering",
)
"""Modules that read and analyse models."""
SLOW_MODULES = (
    "pathlib",
    "_hashlib",
    "pulse.ops.op",
    "pulse.program.streams.lanes",
    "pulse.program.table.cost",
)
"""Modules that take milliseconds to import and that no stored program needs: OpenSSL, ops, lanes, reports."""
UNUSED_MODULES = ("pulse.program.kernels.recurrent", "pulse.program.native.profile")
"""Modules of kernels that a Relu does not run, and of reports that a step does not make."""


def unless_compiled(*names: str) -> tuple[str, ...]:
    """Return the names if the package carries machine code, else none."""
    return names if library() is not None else ()


def run_python(*arguments: str) -> Sequence[str]:
    """Run a new interpreter and return the lines that it prints."""
    process = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)
    return process.stdout.splitlines()


@pytest.fixture
def relu(tmp_path: Path) -> str:
    path = tmp_path / "relu.onnx"
    proto = models.build([node("Relu", "x", "y")], {"x": [1, "T"]}, {"y": [1, "T"]})
    path.write_bytes(proto.SerializeToString())
    return str(path)


def test_a_model_imports_only_needed_modules(relu: str) -> None:
    """A stream imports neither onnx, which writes and checks, nor numba, which compiles."""
    heavy = (*OPTIONAL_MODULES, *unless_compiled(*COMPILER_MODULES, *CACHE_MODULES))
    result, imported = run_python("-c", STREAM_MODEL.format(heavy=heavy), relu)
    assert float(result) == 4
    assert imported.split("|") == [" ", " False"]


def test_a_program_imports_only_its_kernels(relu: str, tmp_path: Path) -> None:
    """A stored program imports no module that knows of models."""
    path = tmp_path / "relu.pulse"
    pulse.stream(relu, 4).save(path)
    heavy = (
        *OPTIONAL_MODULES,
        *MODEL_MODULES,
        *UNUSED_MODULES,
        *unless_compiled(*COMPILER_MODULES, *CACHE_MODULES),
    )
    assert run_python("-c", STREAM_STORED_PROGRAM.format(heavy=heavy), str(path)) == ["4.0", ""]


def test_a_program_imports_no_slow_module(relu: str, tmp_path: Path) -> None:
    """The site module is off: it imports more if packages are installed in place."""
    path = tmp_path / "relu.pulse"
    pulse.stream(relu, 4).save(path)
    folders = [str(Path(package.__path__[0]).parent) for package in (pulse, np)]
    code = STREAM_STORED_PROGRAM.format(heavy=unless_compiled(*SLOW_MODULES))
    assert run_python("-S", "-c", f"import sys; sys.path[:0] = {folders!r}\n{code}", str(path)) == ["4.0", ""]


def modules_of_command(folder: Path, heavy: Sequence[str], *arguments: str) -> str:
    """The modules of ``heavy`` that a command imports, as a line."""
    code = (
        "import atexit, os, sys\n"
        f"os.chdir({str(folder)!r})\n"
        f"atexit.register(lambda: print('|', *[name for name in {heavy!r} if name in sys.modules]))\n"
        f"sys.argv = ['pulse', *{arguments!r}]\n"
        "from streaming.cli import main\n"
        "main()\n"
    )
    return run_python("-c", code)[-1]


def test_the_command_line_imports_only_needed_modules(tmp_path: Path) -> None:
    """Neither conversions of formats nor modules of live runs are imported."""
    heavy = (*LIBRARY_MODULES, *unless_compiled(*COMPILER_MODULES, *CACHE_MODULES))
    assert modules_of_command(tmp_path, heavy, "run", "--json") == "|"


def test_the_command_line_runs_a_program_without_compiler(relu: str, tmp_path: Path) -> None:
    pulse.stream(relu, 4).save(tmp_path / "relu.pulse")
    np.save(tmp_path / "x.npy", np.ones((1, 8), np.float32))
    heavy = (*LIBRARY_MODULES, *MODEL_MODULES, *unless_compiled(*COMPILER_MODULES, *CACHE_MODULES))
    assert modules_of_command(tmp_path, heavy, "run", "relu.pulse", "x.npy", "y.npy", "--json") == "|"
    assert np.array_equal(np.load(tmp_path / "y.npy"), np.ones((1, 8)))
