"""The demos in C, C++ and Rust, and programs that find a library by CMake and pkg-config."""

import subprocess
from pathlib import Path
from shutil import which

import numpy as np
import pytest
import soundfile

from pulse.models import TypedModel
from pulse.program.native.native_program import NativeProgram
from pulse.program.program import Program
from streaming import Session
from streaming.builtin import model_path, noisy_path
from streaming.deploy.building import build_model, find_target
from streaming.opening.opened_model import OpenedModel
from streaming.opening.source import load_source
from tests.sources import ROOT
from tests.streaming.deploy.building import HERE, PULSE, build, compile_program
from tests.streaming.models import filter_model

DEMO = ROOT / "demos" / "c" / "denoise.c"
CMAKE = """
cmake_minimum_required(VERSION 3.13)
project(consumer C)
find_package(denoise CONFIG REQUIRED)
add_executable(of_archive {demo})
target_link_libraries(of_archive denoise::denoise)
add_executable(of_shared {demo})
target_link_libraries(of_shared denoise::shared)
"""


def small_model() -> TypedModel:
    """A filter that looks 2 samples ahead: audio in, audio out."""
    model = filter_model()
    model.graph.set_outputs(model.graph.outputs[:1], ["denoised"])
    return model


@pytest.fixture(scope="module", params=["small", pytest.param("built-in", marks=pytest.mark.slow)])
def opened_model(request: pytest.FixtureRequest) -> OpenedModel | None:
    """The built-in denoiser; None for the small model, whose kernels take less time to compile."""
    return OpenedModel.of(load_source(model_path())) if request.param == "built-in" else None


@pytest.fixture(scope="module")
def program(opened_model: OpenedModel | None) -> Program:
    return compile_program(small_model(), PULSE) if opened_model is None else opened_model.compile()


@pytest.fixture(scope="module")
def library(
    opened_model: OpenedModel | None, program: Program, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder that ``pulse build -o denoise`` writes."""
    if HERE is None:
        pytest.skip("no level for this system")
    folder = tmp_path_factory.mktemp("demo") / "denoise"
    if opened_model is not None:
        build_model(opened_model, program, "denoise", find_target(HERE), folder, checks=True)
    else:
        assert isinstance(program, NativeProgram)
        build(program, folder, name="denoise")
    return folder


@pytest.fixture(scope="module")
def noisy() -> np.ndarray:
    """Half a second and a part of a pulse."""
    sound, _ = soundfile.read(noisy_path(), dtype="int16")
    return sound[:8123]


@pytest.fixture(scope="module")
def wanted_sound(program: Program, noisy: np.ndarray) -> np.ndarray:
    """The output of Python."""
    session = Session(program)
    pieces = [session.push(noisy[None] / np.float32(32768)), session.flush()]
    return np.concatenate([piece["denoised"] for piece in pieces], 1)[0]


def assert_same_sound(program: Path, noisy: np.ndarray, wanted_sound: np.ndarray) -> None:
    """Require that a compiled program prints the output of Python as 16-bit samples."""
    process = subprocess.run([program], input=noisy.tobytes(), capture_output=True)
    assert process.returncode == 0, process.stderr
    output = np.frombuffer(process.stdout, np.int16)
    assert output.shape == wanted_sound.shape
    assert np.abs(output - 32767 * wanted_sound.clip(-1, 1)).max() < 1.1


def compile_with(*command: str | Path) -> None:
    """Run a compiler, or skip the test if it is missing, or is a launcher such as rustup's without a toolchain."""
    if which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    if subprocess.run([command[0], "--version"], capture_output=True).returncode != 0:
        pytest.skip(f"{command[0]} is installed without a toolchain: {command[0]} --version fails")
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr


STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-O1")


@pytest.mark.parametrize(
    ("compiler", "options", "demo"),
    [
        ("cc", "-std=c99", "denoise.c"),
        ("c++", "-std=c++17", "denoise.cpp"),
        ("clang", "-std=c99", "denoise.c"),
    ],
)
def test_programs_in_c_agree_with_python(
    library: Path,
    noisy: np.ndarray,
    wanted_sound: np.ndarray,
    tmp_path: Path,
    compiler: str,
    options: str,
    demo: str,
) -> None:
    source, archive = ROOT / "demos" / "c" / demo, library / "libdenoise.a"
    compile_with(compiler, options, *STRICT, f"-I{library}", source, archive, "-o", tmp_path / "clean")
    assert_same_sound(tmp_path / "clean", noisy, wanted_sound)


def test_the_program_in_rust_agrees_with_python(
    library: Path, noisy: np.ndarray, wanted_sound: np.ndarray, tmp_path: Path
) -> None:
    source = ROOT / "demos" / "rust" / "denoise.rs"
    options = ("--edition", "2021", "-O", "-D", "warnings", f"-L{library}")
    compile_with("rustc", *options, source, "-o", tmp_path / "clean")
    assert_same_sound(tmp_path / "clean", noisy, wanted_sound)


def test_cmake_finds_the_library(
    library: Path, noisy: np.ndarray, wanted_sound: np.ndarray, tmp_path: Path
) -> None:
    (tmp_path / "CMakeLists.txt").write_text(CMAKE.format(demo=DEMO))
    compile_with("cmake", "-S", tmp_path, "-B", tmp_path / "made", f"-DCMAKE_PREFIX_PATH={library}")
    compile_with("cmake", "--build", tmp_path / "made")
    for name in ("of_archive", "of_shared"):
        assert_same_sound(tmp_path / "made" / name, noisy, wanted_sound)


def test_pkg_config_finds_the_library(
    library: Path, noisy: np.ndarray, wanted_sound: np.ndarray, tmp_path: Path
) -> None:
    if which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    command = ("pkg-config", "--cflags", "--libs", "denoise")
    process = subprocess.run(
        command,
        env={"PATH": "/usr/bin:/bin", "PKG_CONFIG_PATH": str(library)},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    more = (f"-Wl,-rpath,{library}", "-o", tmp_path / "clean")
    compile_with("cc", "-std=c99", DEMO, *process.stdout.split(), *more)
    assert_same_sound(tmp_path / "clean", noisy, wanted_sound)
