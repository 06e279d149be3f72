"""A library computes the frames, flushes and snapshots of Python, and returns codes for a caller's errors."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path
from shutil import copyfile, which

import numpy as np
import pytest

from bench.library.c_library import (
    ALIGNMENT,
    ENDED,
    MEMORY,
    NULL,
    OK,
    REST,
    SNAPSHOT,
    STREAM,
    CLibrary,
    addresses,
)
from pulse.c_library.library_contents import library_contents
from pulse.c_library.texts import header
from pulse.c_library.vector import make_vector
from pulse.errors import CompileError, WriteError
from pulse.program.compiler import compile_model
from pulse.program.native.native_program import NativeProgram
from pulse.program.whole_stream import stream_whole
from pulse.proof.trial_signals import draw_feeds
from pulse.pulsify.driver import pulsify
from streaming.deploy import built_library, toolchain
from tests.streaming.deploy.building import HERE, PULSE, build
from tests.streaming.models import filter_model

SILENCE = np.zeros((1, PULSE), np.float32)
INPUTS, OUTPUTS = addresses([SILENCE]), addresses([None, None])
pytestmark = pytest.mark.skipif(HERE is None, reason="no level for this system")


@pytest.fixture(scope="module")
def folder(program: NativeProgram, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("small")
    library = build(program, path)
    assert "all within the tolerance" in library.outcome
    assert not library.math_functions
    return path


@pytest.fixture(scope="module")
def library(folder: Path) -> CLibrary:
    return CLibrary(folder, "small")


def test_ports_equal_the_program(library: CLibrary, program: NativeProgram) -> None:
    for port, expected in zip(library.ports, [*program.inputs, *program.outputs], strict=True):
        assert port.name.decode() == expected.name
        assert np.dtype(port.dtype.decode()) == expected.dtype
        assert tuple(port.dims[axis] for axis in range(port.axes)) == expected.shape
        assert (port.axis, port.frames, port.delay) == (expected.axis, expected.frames, expected.delay)


@pytest.mark.parametrize("length", [1, 3, PULSE - 1, PULSE, PULSE + 1, 4 * PULSE, 5 * PULSE + 7])
def test_streams_of_every_length_have_all_frames(
    library: CLibrary, program: NativeProgram, length: int
) -> None:
    feeds = draw_feeds(program.model, length)
    expected, outputs = stream_whole(program, feeds, 0.0), library.stream().whole(feeds)
    for name, array in expected.items():
        assert outputs[name].shape == array.shape
        np.testing.assert_allclose(outputs[name], array, rtol=1e-6, atol=1e-6)


def test_snapshots_agree_with_python(library: CLibrary, program: NativeProgram) -> None:
    """A stream continues in C from where it was in Python, and the other way round."""
    feeds = draw_feeds(program.model, 6 * PULSE)["x"]
    pulses = [np.ascontiguousarray(part) for part in np.split(feeds, 6, 1)]
    python, c = program.spawn(), library.stream()
    for pulse in pulses[:3]:
        python.step(pulse)
        c.step([pulse])
    restored, back = library.stream(), program.spawn()
    assert restored.restore(python.snapshot()) == OK
    back.restore(c.snapshot())
    for pulse in pulses[3:]:
        expected = python.step(pulse)
        for outputs in (restored.step([pulse]), list(back.step(pulse).values()), c.step([pulse])):
            for array, expected_output in zip(outputs, expected.values(), strict=True):
                np.testing.assert_allclose(array, expected_output, rtol=1e-6, atol=1e-6)


def test_init_requires_memory_of_its_size_and_alignment(library: CLibrary) -> None:
    size, out = library.call("size"), ctypes.c_void_p()
    memory = np.zeros(size + 128, np.uint8)
    first = memory.ctypes.data + -memory.ctypes.data % 64

    def init(address: int | None, count: int) -> int:
        return library.call("init", ctypes.c_void_p(address), ctypes.c_size_t(count), ctypes.byref(out))

    assert init(None, size) == NULL
    assert library.call("init", ctypes.c_void_p(first), ctypes.c_size_t(size), None) == NULL
    assert init(first + 8, size) == ALIGNMENT
    assert init(first, size - 1) == MEMORY
    assert library.call("step", ctypes.c_void_p(first), INPUTS, OUTPUTS) == STREAM
    assert init(first, size) == OK
    assert library.call("step", out, INPUTS, OUTPUTS) == OK


def test_step_refuses_missing_arguments(library: CLibrary) -> None:
    stream = library.stream()
    assert library.call("step", None, INPUTS, OUTPUTS) == NULL
    assert library.call("step", stream.address, None, OUTPUTS) == NULL
    assert library.call("step", stream.address, addresses([None]), OUTPUTS) == NULL
    assert library.call("step", stream.address, INPUTS, None) == NULL
    assert library.call("step", stream.address, INPUTS, OUTPUTS) == OK


def test_flush_refuses_a_rest_of_a_pulse_or_without_memory(library: CLibrary) -> None:
    stream = library.stream()
    whole, part = (ctypes.c_size_t * 1)(PULSE), (ctypes.c_size_t * 1)(3)
    assert library.call("flush", stream.address, INPUTS, whole, OUTPUTS) == REST
    assert library.call("flush", stream.address, None, part, OUTPUTS) == NULL
    assert library.call("flush", stream.address, INPUTS, part, OUTPUTS) == OK


def test_restore_refuses_snapshots_that_do_not_fit(library: CLibrary) -> None:
    stream, size = library.stream(), library.call("snapshot_size")
    buffer = ctypes.create_string_buffer(size)
    assert library.call("snapshot", stream.address, None, ctypes.c_size_t(0)) == NULL
    assert library.call("snapshot", stream.address, buffer, ctypes.c_size_t(size - 1)) == MEMORY
    assert library.call("restore", stream.address, buffer, ctypes.c_size_t(size)) == SNAPSHOT


def test_reset_restarts_a_stream_that_has_ended(library: CLibrary) -> None:
    stream = library.stream()
    address = stream.address
    assert library.call("step", address, INPUTS, OUTPUTS) == OK
    assert library.call("flush", address, None, None, OUTPUTS) == OK
    assert library.call("flush", address, None, None, OUTPUTS) == ENDED
    assert library.call("step", address, INPUTS, OUTPUTS) == ENDED
    assert library.call("reset", address) == OK
    assert library.call("step", address, INPUTS, OUTPUTS) == OK


@pytest.mark.parametrize(
    ("compiler", "options"), [("gcc", "-std=c99"), ("g++", "-std=c++17"), ("clang", "-std=c99")]
)
@pytest.mark.parametrize("external_weights", [False, True])
def test_the_header_compiles_without_warnings(
    program: NativeProgram, tmp_path: Path, compiler: str, options: str, external_weights: bool
) -> None:
    if which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    text = header(library_contents(program, "small", "small", None, external_weights))
    assert len(text.splitlines()) <= 60
    (tmp_path / "small.h").write_text(text)
    kind = "c++" if "++" in compiler else "c"
    strict = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", f"-I{tmp_path}")
    process = subprocess.run(
        [compiler, options, *strict, "-x", kind, "-"], input='#include "small.h"\n', text=True
    )
    assert process.returncode == 0


def test_a_library_needs_nothing_but_memcpy(folder: Path) -> None:
    process = subprocess.run(
        ["nm", "-D", "--undefined-only", folder / "libsmall.so"], capture_output=True, text=True, check=True
    )
    names = {line.split()[-1].partition("@")[0] for line in process.stdout.splitlines()}
    assert names <= {"memcpy", "memmove", "memset"}


def test_a_library_in_use_is_replaced_and_not_overwritten(program: NativeProgram, tmp_path: Path) -> None:
    """A process that has it open keeps the old one."""
    build(program, tmp_path)
    shared = tmp_path / "libsmall.so"
    with shared.open("rb") as used:
        before = shared.read_bytes()
        build(program, tmp_path, external_weights=True)
        assert used.read() == before
    assert shared.read_bytes() != before


def test_a_full_disk_leaves_the_old_library(
    program: NativeProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(program, tmp_path)
    before = contents(tmp_path)
    copies = []

    def copy_some(source, target):
        copies.append(target)
        if len(copies) > 3:
            raise OSError(28, "No space left on device")
        return copyfile(source, target)

    monkeypatch.setattr(shutil, "copyfile", copy_some)
    with pytest.raises(WriteError, match=f"^{tmp_path}: cannot be written .*No space left on device"):
        build(program, tmp_path, external_weights=True)
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_library_that_hangs_fails_its_test(
    program: NativeProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "RUN_TIMEOUT_S", 0.5)
    fill = built_library.fill

    def hang(name, *rest):
        return "int main(void) { for (;;) { } }" if name == "runner.c" else fill(name, *rest)

    monkeypatch.setattr(built_library, "fill", hang)
    with pytest.raises(
        CompileError, match=r"small: the library fails its test vector: it did not end within 0.5 s"
    ):
        build(program, tmp_path)


def test_a_program_that_needs_python_is_refused() -> None:
    program = compile_model(pulsify(filter_model().declutter(), pulse=PULSE), "numpy")
    with pytest.raises(WriteError, match="numpy backend, which needs Python"):
        library_contents(program, "small", "small", None)


def test_a_program_without_a_length_for_a_vector_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulse.c_library.vector.nearest_length", lambda *limits: None)
    program = compile_model(pulsify(filter_model().declutter(), pulse=PULSE), "numpy")
    with pytest.raises(WriteError, match=r"takes no stream of \d+ frames, .*: use another pulse"):
        make_vector(program, None)


def test_a_library_equals_python_on_the_same_level(tmp_path: Path) -> None:
    """Python runs the kernels of the level that the library is built for."""
    process = subprocess.run(
        [sys.executable, "-m", "tests.streaming.deploy.same_bits", str(tmp_path)],
        env={**os.environ, "PULSE_LEVEL": str(HERE)},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
