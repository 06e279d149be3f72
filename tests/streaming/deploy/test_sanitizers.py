"""The C file of a library under the sanitizers of a C compiler, and the whole library under valgrind."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from shutil import which

import pytest

from pulse.c_library.library_contents import LibraryContents, library_contents
from pulse.c_library.sound_ports import blocks_header, blocks_source, sound_ports
from pulse.c_library.texts import fill, header, source
from pulse.c_library.vector import make_vector
from pulse.jit.levels import TARGETS
from pulse.program.program import Program
from pulse.proof.oracle import pulsed_oracle
from streaming.deploy.compiled_objects import CompiledObjects, compile_objects
from streaming.deploy.sound_blocks import QUALITY
from tests.streaming.channel_mixer import mixing_program
from tests.streaming.deploy.building import HERE, build, compile_program
from tests.streaming.deploy.sound import RATE_HZ
from tests.streaming.models import filter_model

pytestmark = [
    pytest.mark.skipif(HERE is None, reason="no level for this system"),
    pytest.mark.skipif(which("gcc") is None, reason="gcc is not installed"),
]
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-O1")
MISUSE, BLOCKS = (Path(__file__).parent / name for name in ("misuse.c", "blocks.c"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The parts of a library: header, source, objects, vector and its runner."""
    path = tmp_path_factory.mktemp("parts")
    program = compile_program(filter_model(), 16)
    contents, _ = write_parts(program, path)
    (path / "runner.c").write_text(fill("runner.c", contents))
    network = program.network
    (path / "vector.bin").write_bytes(make_vector(program, (network, pulsed_oracle(network))).content)
    return path


def write_parts(program: Program, path: Path) -> tuple[LibraryContents, CompiledObjects]:
    """Write the header, the C file and the objects of a library."""
    contents = library_contents(program, "small", "small", RATE_HZ)
    parts = compile_objects(contents, TARGETS[str(HERE)], path)
    (path / "small.h").write_text(header(contents))
    (path / "small.c").write_text(source(contents, parts.symbols))
    (path / "objects").write_text("\n".join(map(str, parts.objects)))
    return contents, parts


def run_sanitized(folder: Path, main: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Compile a program with the library's C file, all of it sanitized, and run it."""
    objects = (folder / "objects").read_text().split("\n")
    binary = folder / f"{main.stem}.out"
    options: Sequence[str] = (*STRICT, *SANITIZERS, f"-I{folder}")
    sources = map(str, (main, *sorted(folder.glob("small*.c"))))
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


@pytest.mark.parametrize(("inputs", "outputs", "layout"), [(1, 1, "1,C,T"), (2, 3, "1,T,C"), (3, 2, "1,C,T")])
def test_sound_in_blocks_passes_the_sanitizers(
    inputs: int, outputs: int, layout: str, tmp_path: Path
) -> None:
    """Each channel has its own memory, and all of it is within the reported size."""
    contents, parts = write_parts(mixing_program(inputs, outputs, layout, 48), tmp_path)
    ports, symbol = sound_ports(contents), parts.resampler_symbol
    (tmp_path / "small_blocks.h").write_text(blocks_header(contents, ports))
    code = blocks_source(contents, ports, symbol, QUALITY.half_frames, QUALITY.phases, QUALITY.stop_db)
    (tmp_path / "small_blocks.c").write_text(code)
    with (tmp_path / "objects").open("a") as file:
        file.write(f"\n{parts.resampler}")
    process = run_sanitized(tmp_path, BLOCKS)
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
