"""Programs in files: the same bits, whatever form and kind; what is refused, and how."""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import CompileError, LoadError, WriteError
from pulse.program.file.container import MAGIC, encode, open_container
from pulse.program.file.stored_program import StoredProgram, read_program
from pulse.program.native.native_program import NativeProgram
from pulse.program.whole_stream import stream_whole
from tests.pulse.program.programs import FORMS, MODELS, are_bit_identical, block, constants, program

NATIVE = [form for backend, form in FORMS if backend == "numba"]
SECTIONS = ("table", "initial", "notes", "weights")


def make_program(name: str, form: str = "f32") -> NativeProgram:
    made_program = program(name, "numba", form)
    assert isinstance(made_program, NativeProgram)
    return made_program


def feeds(name: str, frames: int = 23) -> dict[str, Any]:
    made_program = make_program(name)
    (streaming,) = (port.name for port in made_program.inputs if port.streams)
    return {**constants(made_program), streaming: block(made_program, frames)}


@pytest.mark.parametrize("form", NATIVE)
@pytest.mark.parametrize("name", MODELS)
def test_a_file_gives_the_same_bits(name: str, form: str, tmp_path: Path) -> None:
    original, path = make_program(name, form), tmp_path / "one.pulse"
    original.save(path)
    other = pulse.Program.load(path)
    assert isinstance(other, StoredProgram)
    assert not other.weights.flags.writeable
    assert (other.limit, other.form) == (original.limit, form)
    for ports, expected in ((other.inputs, original.inputs), (other.outputs, original.outputs)):
        assert [port.as_dict() for port in ports] == [port.as_dict() for port in expected]
    assert are_bit_identical(stream_whole(original, feeds(name)), stream_whole(other, feeds(name)))
    assert other.listing() == original.listing()
    assert other.notes == original.notes
    assert [port.rate * original.pulse for port in original.outputs if port.streams] == [
        port.frames for port in original.outputs if port.streams
    ]


def test_a_loaded_program_has_equal_snapshots_pickles_and_lanes() -> None:
    original = make_program("windows")
    other = read_program(original.to_bytes())
    state, copy = original.spawn(), pickle.loads(pickle.dumps(other)).spawn()
    state.step(block(original, original.pulse))
    copy.restore(state.snapshot())
    assert are_bit_identical(
        state.step(block(original, original.pulse, 1)), copy.step(block(original, original.pulse, 1))
    )
    x = np.stack([block(original, original.pulse, seed) for seed in range(5)])
    assert are_bit_identical(original.spawn_many(5).step(x), other.spawn_many(5).step(x))
    assert [row.kernel for row in other.spawn().profile(5)] == [row.kernel for row in original.instructions]


def test_load_stream_and_save_take_a_program_file(tmp_path: Path) -> None:
    path = tmp_path / "windows.pulse"
    make_program("windows").save(path, sample_rate="8000")
    loaded = pulse.load(path)
    assert loaded.metadata["sample_rate"] == "8000"
    assert loaded.defines_pulse
    assert loaded.chunks is None
    assert (
        pulse.stream(path).pulse
        == pulse.stream(loaded).pulse
        == pulse.stream(path.read_bytes(), pulse=4).pulse
        == 4
    )
    again = tmp_path / "again.pulse"
    pulse.stream(path).save(again)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "call",
    [pulse.verify, pulse.cost_report, lambda source: pulse.load(source).analyse()],
    ids=["verify", "cost_report", "analyse"],
)
def test_commands_that_need_the_model_are_refused(call: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "windows.pulse"
    make_program("windows").save(path)
    with pytest.raises(
        LoadError, match="is a program, whose file does not contain the model; give the model"
    ):
        call(path)


def test_options_that_a_program_has_fixed_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "windows.pulse"
    make_program("windows").save(path)
    chunking = pulse.Chunking(states={}, pulse=4)
    with pytest.raises(
        LoadError,
        match=r"reading its model are fixed: omit symbol=, chunking=Chunking\(states=\), or compile",
    ):
        pulse.load(path, symbol="T", chunking=chunking)
    with pytest.raises(
        CompileError, match=r"pulses of 4 frames and f32 weights; omit pulse=8, weights=\"int8\""
    ):
        pulse.stream(path, pulse=8, weights="int8")


def test_a_program_of_numpy_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="only programs of the numba backend"):
        program("windows", "numpy").save(tmp_path / "windows.pulse")


def change_file(data: bytes, sections: dict[str, Any] | None = None, **header: Any) -> bytes:
    """A file with other values in its header, or other sections, its checksum right."""
    container = open_container(data)
    fields = {name: value for name, value in container.header.values.items() if name != "sections"}
    return encode(
        {**fields, **header}, {name: container.section(name) for name in SECTIONS} | (sections or {})
    )


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda data: data[:-1] + bytes([data[-1] ^ 1]),
            "its checksum is wrong, so it is damaged; copy it again",
        ),
        (lambda data: data[:-64], "its checksum is wrong"),
        (lambda data: data[:10], "is not a program file"),
        (
            lambda data: data.replace(MAGIC, MAGIC[:-2] + b"1\n", 1),
            "of a format that .* compile the model again",
        ),
        (
            lambda data: data.replace(MAGIC, MAGIC[:-2] + b"9\n", 1),
            "of a format that .* compile the model again",
        ),
        (
            lambda data: change_file(data, version="0.0.1"),
            "was compiled by pulse 0.0.1, and this is pulse .*: compile the model again",
        ),
        (lambda data: change_file(data, pulse="4"), "no valid 'pulse'"),
        (lambda data: change_file(data, arena_bytes=1 << 46), "its arena has .* bytes"),
        (lambda data: change_file(data, rows=3), "but its header has 3"),
        (lambda data: change_file(data, {"table": np.zeros(64, np.uint8)}), "row 0 is not valid"),
        (lambda data: change_file(data, assumptions=["T >= 0"] * 99), "too many assumptions"),
    ],
    ids=[
        "a flipped bit",
        "cut at the end",
        "cut in the header",
        "an older format",
        "a newer format",
        "another version",
        "a pulse of text",
        "a huge arena",
        "another number of rows",
        "a row of zeros",
        "many assumptions",
    ],
)
def test_damaged_files_are_refused(damage: Callable[[bytes], bytes], message: str) -> None:
    with pytest.raises(LoadError, match=message):
        read_program(damage(make_program("windows").to_bytes()))


def test_missing_and_empty_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"cannot be read .*; check the path"):
        pulse.Program.load(tmp_path / "none.pulse")
    (tmp_path / "empty.pulse").touch()
    with pytest.raises(LoadError, match="cannot be read"):
        pulse.Program.load(tmp_path / "empty.pulse")


@pytest.mark.parametrize(
    ("length", "message"),
    [
        ("5", "input 'x' does not grow with the stream"),
        ("0", "input 'x' does not grow with the stream"),
        ("T*1000000", "a stream would not end soon enough"),
        ("T+100000000000", "a stream would not end soon enough"),
        ("T*T*T*T", "is too large"),
        ("S", "does not depend on T alone"),
        ("T/", "cannot read 'T/'"),
    ],
)
def test_lengths_with_which_a_flush_may_take_years_are_refused(length: str, message: str) -> None:
    data = make_program("windows").to_bytes()
    ports = open_container(data).header.values["inputs"]
    with pytest.raises(LoadError, match=message):
        pulse.load(change_file(data, inputs=[{**port, "length": length} for port in ports]))


def test_a_kernel_that_is_not_installed_is_named() -> None:
    data = make_program("windows").to_bytes()
    kernels = open_container(data).header.values["kernels"]
    named = [{**kernels[0], "name": "telephone", "module": "os.path"}, *kernels[1:]]
    message = "kernel telephone of os.path is not installed here; install the package that declares it"
    with pytest.raises(LoadError, match=message):
        pulse.load(change_file(data, kernels=named))
    other = [{**kernels[0], "layout": "0" * 16}, *kernels[1:]]
    with pytest.raises(LoadError, match="has another row layout in this version; compile the model again"):
        pulse.load(change_file(data, kernels=other))


@pytest.mark.parametrize("module", ["normalise", "recurrent", "recurrent.gru"])
def test_moved_kernels_and_missing_ones_have_different_errors(module: str) -> None:
    """A module of pulse that is no more, or that has the kernel no more: no package helps."""
    data = make_program("windows").to_bytes()
    kernels = open_container(data).header.values["kernels"]
    named = [{**kernels[0], "name": "unknown", "module": f"pulse.program.kernels.{module}"}, *kernels[1:]]
    message = (
        f"no kernel unknown in pulse.program.kernels.{module}; compile the model again with pulse compile"
    )
    with pytest.raises(LoadError, match=message):
        pulse.load(change_file(data, kernels=named))


@pytest.mark.parametrize(
    "module",
    [
        "harm",
        "pulse.program.kernels.harm",
        "pulse.program.kernels..harm",
        "pulse.program.kernels.matmul..harm",
        "pulse.program.kernels.copy.harm",
        "pulse.program.kernels.a b",
    ],
)
def test_a_file_cannot_choose_imports(tmp_path: Path, module: str) -> None:
    data = make_program("windows").to_bytes()
    kernels = open_container(data).header.values["kernels"]
    (tmp_path / "harm.py").write_text("raise SystemExit('imported')")
    named = [{**kernels[0], "name": "unknown", "module": module}, *kernels[1:]]
    with pytest.raises(LoadError, match=r"is not installed here|this version has no kernel unknown"):
        pulse.load(change_file(data, kernels=named))


@pytest.mark.parametrize(
    "notes",
    [b"{", b"[]", json.dumps({"rows": [[1]], "listing": [1]}).encode()],
    ids=["cut short", "a list", "a row without fields"],
)
def test_notes_are_read_when_they_are_asked_for(notes: bytes) -> None:
    data = make_program("windows").to_bytes()
    silent = read_program(change_file(data, {"notes": np.frombuffer(notes, np.uint8)}))
    silent.spawn()
    with pytest.raises(LoadError, match="notes on instructions are missing or invalid"):
        silent.listing()
    with pytest.raises(LoadError, match="notes on instructions are missing or invalid"):
        len(silent.notes)


def test_loading_imports_no_reader_and_no_pass(tmp_path: Path) -> None:
    path = tmp_path / "windows.pulse"
    make_program("windows").save(path)
    heavy = ("onnx", "google", "pulse.onnx", "pulse.models", "pulse.loading", "pulse.declutter", "pulse.infer",
             "pulse.typed", "pulse.graph", "pulse.program.lowering", "pulse.proof", "pulse.chunks")  # fmt: skip
    code = f"import sys, pulse; pulse.Program.load({str(path)!r}); print([m for m in {heavy!r} if m in sys.modules])"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def test_kernels_import_neither_ops_nor_graphs() -> None:
    """A program file imports the modules of its kernels, so all that these import counts as its start."""
    code = (
        "import pkgutil, sys\n"
        "from importlib import import_module\n"
        "from pulse.program import kernels\n"
        "for module in pkgutil.walk_packages(kernels.__path__, f'{kernels.__name__}.'):\n"
        "    import_module(module.name)\n"
        "print([name for name in ('pulse.graph', 'pulse.ops.op') if name in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"
