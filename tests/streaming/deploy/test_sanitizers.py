"""The C file of a library under the sanitizers of a C compiler, and the whole library under valgrind."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from shutil import which

import pytest

from pulse.c_library.library_contents import LibraryContents, library_contents
from pulse.c_library.texts import fill, header, source
from pulse.c_library.vector import make_vector
from pulse.jit.levels import TARGETS
from pulse.proof.oracle import pulsed_oracle
from streaming.deploy.compiled_objects import CompiledObjects, compile_objects
from tests.streaming.deploy.building import HERE, build, compile_program
from tests.streaming.models import filter_model

pytestmark = [
    pytest.mark.skipif(HERE is None, reason="no level for this system"),
    pytest.mark.skipif(which("gcc") is None, reason="gcc is not installed"),
]
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-O1")
MISUSE = Path(__file__).parent / "misuse.c"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The parts of a library: header, source, objects, vector and its runner."""
    path = tmp_path_factory.mktemp("parts")
    program = compile_program(filter_model(), 16)
    contents: LibraryContents = library_contents(program, "small", "small", None)
    parts: CompiledObjects = compile_objects(contents, TARGETS[str(HERE)], path)
    (path / "small.h").write_text(header(contents))
    (path / "small.c").write_text(source(contents, parts.symbols))
    (path / "runner.c").write_text(fill("runner.c", contents))
    network = program.network
    (path / "vector.bin").write_bytes(make_vector(program, (network, pulsed_oracle(network))).content)
    (path / "objects").write_text("\n".join(map(str, parts.objects)))
    return path


def run_sanitized(folder: Path, main: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Compile a program with the library's C file, all of it sanitized, and run it."""
    objects = (folder / "objects").read_text().split("\n")
    binary = folder / f"{main.stem}.out"
    options: Sequence[str] = (*STRICT, *SANITIZERS, f"-I{folder}")
    sources = (str(main), str(folder / "small.c"))
    subprocess.run(["gcc", *options, *sources, *objects, "-lm", "-o", str(binary)], check=True)
    return subprocess.run([str(binary), *arguments], capture_output=True, text=True)


def test_a_stream_passes_the_sanitizers(folder: Path) -> None:
    process = run_sanitized(folder, folder / "runner.c", str(folder / "vector.bin"))
    assert process.returncode == 0, process.stderr
    assert not process.stderr


def test_mistakes_of_a_caller_are_codes(folder: Path) -> None:
    process = run_sanitized(folder, MISUSE)
    assert process.returncode == 0, process.stderr
    assert not process.stderr


@pytest.mark.slow
@pytest.mark.skipif(which("valgrind") is None, reason="valgrind is not installed")
def test_kernels_touch_only_their_memory(tmp_path: Path) -> None:
    """Valgrind follows the kernels too, up to AVX2."""
    if TARGETS["x86-64-v3"].missing_features:
        pytest.skip("this processor is below x86-64-v3")
    build(compile_program(filter_model(), 16), tmp_path, "x86-64-v3")
    runner = tmp_path / "run"
    sources = (str(tmp_path / "test" / "run_small.c"), str(tmp_path / "libsmall.a"))
    subprocess.run(["gcc", "-O1", f"-I{tmp_path}", *sources, "-lm", "-o", str(runner)], check=True)
    process = subprocess.run(
        [
            "valgrind",
            "-q",
            "--error-exitcode=9",
            "--leak-check=full",
            runner,
            tmp_path / "test" / "vector.bin",
        ],
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
