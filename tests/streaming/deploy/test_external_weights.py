"""Weights in a file next to the library: the same frames, and error codes for wrong files."""

import ctypes
import subprocess
from pathlib import Path
from shutil import which
from typing import Any
from zlib import adler32

import numpy as np
import pytest

from bench.library.c_library import ALIGNMENT, NULL, OK, WEIGHTS, CLibrary, CStream, addresses
from pulse.errors import InputError
from pulse.program.native.native_program import NativeProgram
from pulse.proof.trial_signals import draw_feeds
from tests.noise import quiet_noise
from tests.streaming.deploy.building import HERE, PULSE, build
from tests.streaming.deploy.node import require_tools, run_node
from tests.streaming.deploy.sound import RATE_HZ


@pytest.fixture(scope="module")
def folder(program: NativeProgram, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if HERE is None:
        pytest.skip("no level for this system")
    path = tmp_path_factory.mktemp("external")
    library = build(program, path, external_weights=True)
    assert "all within the tolerance" in library.outcome
    assert library.sizes["small.weights"] == program.weights.size
    return path


@pytest.fixture(scope="module")
def content(folder: Path) -> np.ndarray:
    """The file of weights at an address as it is mapped."""
    return np.memmap(folder / "small.weights", np.uint8, "r")


def give(stream: CStream, weights: np.ndarray | None, first: int = 0) -> int:
    """Call ``weights`` with the bytes from ``first`` on, and return its code."""
    address = None if weights is None else ctypes.c_void_p(weights.ctypes.data + first)
    return stream.library.call(
        "weights", stream.address, address, ctypes.c_size_t(0 if weights is None else weights.size - first)
    )


def test_frames_equal_a_library_with_weights(
    folder: Path, content: np.ndarray, program: NativeProgram, tmp_path: Path
) -> None:
    build(program, tmp_path)
    feeds = draw_feeds(program.model, 5 * PULSE + 3)
    stream = CLibrary(folder, "small").stream()
    assert give(stream, content) == OK
    expected = CLibrary(tmp_path, "small").stream().whole(feeds)
    for name, array in stream.whole(feeds).items():  # after a reset: the weights stay
        assert array.tobytes() == expected[name].tobytes()


def test_streams_need_their_weights(folder: Path, content: np.ndarray) -> None:
    stream = CLibrary(folder, "small").stream()
    outputs = addresses([None, None])
    pulses = addresses([np.zeros((1, PULSE), np.float32)]), outputs
    assert stream.library.call("step", stream.address, *pulses) == WEIGHTS
    assert stream.library.call("flush", stream.address, None, None, outputs) == WEIGHTS
    assert give(stream, content) == OK
    assert stream.library.call("step", stream.address, *pulses) == OK


def test_wrong_weight_files_are_refused(folder: Path, content: np.ndarray) -> None:
    """One wrong bit is found, and a refused file leaves the stream without weights."""
    stream = CLibrary(folder, "small").stream()
    assert stream.library.call("weights", None, None, ctypes.c_size_t(0)) == NULL
    assert give(stream, None) == NULL
    assert give(stream, content, 1) == ALIGNMENT
    assert give(stream, content[:-1]) == WEIGHTS
    lines = np.zeros(content.size + 64, np.uint8)
    other = lines[-lines.ctypes.data % 64 :][: content.size]
    other[:] = content
    other[content.size // 2] ^= 1
    assert give(stream, other) == WEIGHTS
    pulses = addresses([np.zeros((1, PULSE), np.float32)]), addresses([None, None])
    assert stream.library.call("step", stream.address, *pulses) == WEIGHTS
    other[content.size // 2] ^= 1
    assert give(stream, other) == OK


@pytest.fixture(scope="module")
def checksum(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The function in C that the folders of ``pulse build`` have."""
    if which("gcc") is None:
        pytest.skip("gcc is not installed")
    from pulse.c_library.texts import TEMPLATES

    folder = tmp_path_factory.mktemp("checksum")
    text = (TEMPLATES / "weights" / "external.c").read_text()
    start = text.index("static uint32_t checksum")
    function = text[start : text.index("\n}\n", start) + 3]
    code = "#include <stddef.h>\n#include <stdint.h>\n" + function.replace("static", "", 1)
    (folder / "sum.c").write_text(code)
    subprocess.run(["gcc", "-shared", "-fPIC", folder / "sum.c", "-o", folder / "sum.so"], check=True)
    checksum = ctypes.CDLL(str(folder / "sum.so")).checksum
    checksum.restype = ctypes.c_uint32
    return checksum


@pytest.mark.parametrize(
    "content",
    [b"", b"a", b"\xff" * 5552, b"\xff" * 30_000, np.random.default_rng(0).bytes(20_001)],
    ids=["empty", "a byte", "a block of the largest sums", "blocks of the largest sums", "random"],
)
def test_the_checksum_is_that_of_zlib(checksum: Any, content: bytes) -> None:
    assert checksum(content, ctypes.c_size_t(len(content))) == adler32(content)


def test_a_web_module_takes_external_weights(program: NativeProgram, tmp_path: Path) -> None:
    """Node.js computes the same frames with separate weights, and refuses missing and wrong files."""
    require_tools()
    for external in (False, True):
        folder = tmp_path / str(external)
        library = build(program, folder, "wasm32", rate_hz=RATE_HZ, external_weights=external)
        assert library.outcome.endswith("all within the tolerance")
    _, printed = run_node(
        """
        const file = readFileSync(`${folder}/small.weights`), said = [];
        const weights = file.buffer.slice(file.byteOffset, file.byteOffset + file.length);
        const attempt = (action) => { try { action(); } catch (error) { said.push(error.message); } };
        attempt(() => new Model(module));
        attempt(() => new Model(module, weights.slice(1)));
        const wrong = weights.slice();
        new Uint8Array(wrong)[3] ^= 1;
        attempt(() => new Sound(module, 16000, 128, wrong));
        const inside = new WebAssembly.Module(readFileSync(`${folder}/../False/module.wasm`));
        const sounds = [new Sound(module, 48000, 128, weights), new Sound(inside, 48000)].map((sound) => {
          const result = new Float32Array(heard.length);
          sound.process([heard], [result], heard.length);
          return result;
        });
        const same = sounds[0].every((frame, i) => frame === sounds[1][i]);
        console.log(JSON.stringify([...said, same, sounds[0].some((frame) => frame)]));
        """,
        tmp_path / "True",
        tmp_path,
        quiet_noise(900).tobytes(),
    )
    assert printed.strip() == (
        '["small: give the content of small.weights, an ArrayBuffer, too",'
        '"small: the weights are not those of the model","small: the weights are not those of the model",true,true]'
    )


def test_a_plug_in_has_its_weights_inside(program: NativeProgram, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a plug-in is one file that includes the weights"):
        build(program, tmp_path, rate_hz=RATE_HZ, plugins=("lv2",), external_weights=True)
