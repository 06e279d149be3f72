"""Machine code built ahead: which libraries are loaded or skipped, and that they compute the same bits."""

import ctypes
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pulse.errors import CompileError, PulseWarning
from pulse.jit import levels, notice
from pulse.jit.levels import LEVELS, runnable_level
from pulse.jit.python_call import builtin
from pulse.jit.registry import KERNELS
from pulse.jit.rows.pointer import operand
from pulse.jit.storage import package_library
from pulse.jit.storage.package_library import INDEX, checksum_of_sources, file_of, load, symbol_of
from streaming import libraries
from streaming.libraries import build

HERE = next((level for level in LEVELS.values() if not level.missing_features), None)
pytestmark = pytest.mark.skipif(HERE is None, reason="no level for this system")
SOME = ("move", "machine.read_ticks")
AARCH64 = 183
"""The number of the architecture in ELF files."""

STREAMED = """
import hashlib, json, sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            raise ImportError(f"{name} is not expected here")

if len(sys.argv) > 1:
    sys.meta_path.insert(0, Refused())
import numpy as np
import pulse
from streaming.builtin import model_path
from streaming.session import Session

program = pulse.stream(model_path(), pulse=160)
session = Session(program)
noise = np.random.default_rng(0).standard_normal((1, 16000)).astype(np.float32)
given = [session.push(noise), session.flush()]
digest = hashlib.sha256(b"".join(frames.tobytes() for part in given for frames in part.values()))
print(json.dumps({"pulse": pulse.__file__, "digest": digest.hexdigest()}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert HERE is not None
    path = tmp_path_factory.mktemp("libraries")
    index = build([HERE.name], path, SOME)
    assert set(index.functions) == set(SOME)
    assert set(index.checksums) == {HERE.name}
    return path


def test_a_function_of_a_library_computes(folder: Path) -> None:
    assert HERE is not None
    library = load(HERE, folder)
    assert library is not None
    kernel = KERNELS["move"]
    address = library.address("move", kernel.function.__module__)
    assert address is not None
    memory = np.arange(8, dtype=np.uint8)
    row, bases = np.array([0, 5, operand(0, 0), operand(0, 4), 4]), np.array([memory.ctypes.data])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)(row.ctypes.data, bases.ctypes.data)
    assert memory.tolist() == [4, 5, 6, 7, 4, 5, 6, 7]
    ticks = library.address("machine.read_ticks", "pulse.program.machine.machine")
    assert ticks is not None
    read = builtin("machine.read_ticks", ticks)
    assert 0 < read() < read()
    assert library.address("move", "a.plugin") is None, "another function of the same name"
    assert library.address("gru", KERNELS["gru"].function.__module__) is None


def test_damaged_libraries_are_reported_and_skipped(folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    assert HERE is not None
    name = file_of(HERE.name)
    (tmp_path / INDEX).write_bytes((folder / INDEX).read_bytes())
    monkeypatch.setattr(notice, "warned", set())
    with pytest.warns(PulseWarning, match="kernels are compiled instead, so install the package again"):
        assert load(HERE, tmp_path) is None
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / name).write_bytes(data)
    monkeypatch.setattr(notice, "warned", set())
    with pytest.warns(PulseWarning, match="its checksum is wrong"):
        assert load(HERE, tmp_path) is None


@pytest.mark.parametrize("content", ["", "[]", '{"format": 1}', '{"format": 1, "no": 1}', "\xff"])
def test_a_damaged_index_is_reported_and_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    assert HERE is not None
    (tmp_path / INDEX).write_bytes(content.encode("latin-1"))
    monkeypatch.setattr(notice, "warned", set())
    with pytest.warns(
        PulseWarning, match=r"index.json is damaged .*compiled instead, so install the package again"
    ):
        assert load(HERE, tmp_path) is None


def test_a_failed_build_keeps_the_old_libraries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert HERE is not None
    (folder / "notes").mkdir(exist_ok=True)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    monkeypatch.setattr(libraries, "LINKER_FLAGS", ("--no-such-flag",))
    with pytest.raises(CompileError, match="ld"):
        build([HERE.name], folder, SOME)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_library_is_checked_again_only_if_it_changed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert HERE is not None
    monkeypatch.setenv("PULSE_CACHE", str(tmp_path / "cache"))
    for name in (INDEX, file_of(HERE.name)):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    checks: list[str] = []

    def count_sources(sources: Iterable[str]) -> str | None:
        checks.extend(sources)
        return checksum_of_sources(sources)

    monkeypatch.setattr(package_library, "checksum_of_sources", count_sources)
    assert load(HERE, tmp_path) is not None
    assert "pulse/program/kernels/copy.py" in checks
    checks.clear()
    assert load(HERE, tmp_path) is not None
    assert checks == []
    os.utime(tmp_path / file_of(HERE.name))
    assert load(HERE, tmp_path) is not None
    assert checks


@pytest.mark.parametrize("change", ["no index", "format", "level", "sources_checksum", "sources"])
def test_libraries_that_do_not_fit_are_skipped(folder: Path, tmp_path: Path, change: str) -> None:
    """The libraries are missing, or of another format, other levels or other sources."""
    assert HERE is not None
    index = json.loads((folder / INDEX).read_bytes())
    index.update(
        {
            "format": {"format": 99},
            "level": {"checksums": {}},
            "sources_checksum": {"sources_checksum": "0"},
            "sources": {"sources": [*index["sources"], "pulse/no_such_file.py"]},
        }.get(change, {})
    )
    if change != "no index":
        (tmp_path / INDEX).write_text(json.dumps(index))
    (tmp_path / file_of(HERE.name)).write_bytes((folder / file_of(HERE.name)).read_bytes())
    assert load(HERE, tmp_path) is None


def test_an_index_lists_all_sources(folder: Path) -> None:
    """The index lists the kernels, their imports and the modules that compile them."""
    sources = set(json.loads((folder / INDEX).read_bytes())["sources"])
    assert {
        "pulse/program/kernels/copy.py",
        "pulse/program/machine/machine.py",
        "pulse/jit/codegen/simd.py",
        "pulse/jit/codegen/native_code.py",
        "pulse/errors.py",
    } <= sources
    assert not any(name.startswith("/") for name in sources)


@pytest.fixture
def named_levels(monkeypatch: Any) -> Any:
    def name(level: str) -> None:
        monkeypatch.setenv("PULSE_LEVEL", level)
        levels.named_level.cache_clear()

    yield name
    monkeypatch.undo()
    levels.named_level.cache_clear()


def test_a_level_is_chosen_by_name(named_levels: Any) -> None:
    assert HERE is not None
    named_levels("native")
    assert runnable_level() is None
    named_levels(HERE.name)
    assert runnable_level() is HERE
    named_levels("x86-64-v9")
    with pytest.raises(
        CompileError, match=r"PULSE_LEVEL: unknown level 'x86-64-v9'.*; choose one of x86-64-v4-avxvnni, "
    ):
        runnable_level()
    other = next(level for level in LEVELS.values() if level.machine != HERE.machine)
    named_levels(other.name)
    with pytest.raises(CompileError, match=f"this processor lacks the architecture {other.machine}"):
        runnable_level()


def test_libraries_that_cannot_be_built_are_refused(tmp_path: Path, monkeypatch: Any) -> None:
    with pytest.raises(CompileError, match="unknown level 'mips'; choose one of"):
        build(["mips"], tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompileError, match="no linker for aarch64; install binutils"):
        build(["aarch64"], tmp_path)


def test_code_for_another_processor_is_of_its_architecture(tmp_path: Path) -> None:
    """The code that reads the processor's registers is, too: ELF says for which architecture it is."""
    names = "move", "machine.run", "machine.read_ticks"
    code = f"from pathlib import Path; from streaming.libraries import write_objects; write_objects(Path(), {names})"
    environment = {**os.environ, "PULSE_LEVEL": "aarch64", "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    objects = [path.read_bytes() for path in tmp_path.glob("*.o")]
    assert [int.from_bytes(data[18:20], "little") for data in objects] == [AARCH64] * len(names)


def test_symbols_are_of_one_function_each() -> None:
    from streaming.compilation.warming import kernel_names

    assert len({symbol_of(name) for name in kernel_names()}) == len(kernel_names())


@pytest.mark.slow
def test_a_wheel_runs_without_numba(tmp_path: Path) -> None:
    """Its libraries give the bits that are compiled here for the same level."""
    assert HERE is not None
    root = Path(__file__).parents[2]
    tree = tmp_path / "tree"
    files = subprocess.run(
        ["git", "ls-files", "pulse", "streaming", "pyproject.toml", "README.md", "LICENSE"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\n")
    for file in filter(None, files):
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        (tree / file).write_bytes((root / file).read_bytes())
    build([HERE.name], tree / "pulse" / "jit" / "libraries")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(tree)]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size < 25 << 20
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    results = []
    for level, paths, arguments in ((HERE.name, tmp_path / "installed", ["alone"]), (HERE.name, root, [])):
        process = subprocess.run(
            [sys.executable, "-c", STREAMED, *arguments],
            env={**os.environ, "PYTHONPATH": str(paths), "PULSE_LEVEL": level},
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
        results.append(json.loads(process.stdout))
        assert results[-1]["pulse"].startswith(str(paths))
    assert results[0]["digest"] == results[1]["digest"]
