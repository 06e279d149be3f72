"""The file of a compiled function: whatever is done to it, no code comes out of it but what was written."""

import json
import os
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from pulse.jit.storage import kernel_file
from pulse.jit.storage.kernel_file import CHECKSUM_BYTES, LENGTH_BYTES, MAGIC, DamagedError, NativeCode

CODE = NativeCode("pulse_12", ("memmove", "tanh"), bytes(range(256)))
VERSIONS = {"pulse": "1", "options": ["3"]}
FUNCTION = {"name": "tick", "fingerprint": "12"}
read = partial(kernel_file.read, versions=VERSIONS, function=FUNCTION)
decoded = partial(kernel_file.decode, versions=VERSIONS, function=FUNCTION)

posix = pytest.mark.skipif(os.name != "posix", reason="files have no owner and mode as on POSIX here")
root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away"
)


@pytest.fixture
def path(tmp_path):
    """The path of a kernel file with ``CODE``."""
    path = tmp_path / "kernels" / "tick-12.kernel"
    kernel_file.write(path, CODE, VERSIONS, FUNCTION)
    return path


def test_what_is_encoded_is_decoded_again(path: Path) -> None:
    assert read(path) == CODE
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert read(path.with_name("other")) is None


def test_a_file_has_its_checksum_its_header_and_the_object_code(path: Path) -> None:
    """The parts are magic, checksum, length, JSON and object code."""
    data = path.read_bytes()
    assert data.startswith(b"pulse kernel 1\n")
    assert data.endswith(CODE.object)
    body = data[len(MAGIC) + CHECKSUM_BYTES :]
    assert data[len(MAGIC) :][:CHECKSUM_BYTES] == blake2b(body, digest_size=CHECKSUM_BYTES).digest()
    header = body[LENGTH_BYTES : LENGTH_BYTES + int.from_bytes(body[:LENGTH_BYTES], "big")]
    assert json.loads(header) == {
        "versions": VERSIONS,
        "function": FUNCTION,
        "symbol": CODE.symbol,
        "needs": list(CODE.needs),
    }


def test_files_of_other_versions_are_ignored(path: Path) -> None:
    assert kernel_file.read(path, {**VERSIONS, "pulse": "2"}, FUNCTION) is None
    data = path.read_bytes()
    path.write_bytes(data.replace(b"kernel 1\n", b"kernel 2\n"))
    assert read(path) is None


@pytest.mark.parametrize("function", [{**FUNCTION, "name": "tock"}, {**FUNCTION, "fingerprint": "13"}])
def test_the_file_of_another_function_is_refused(path: Path, function: dict[str, str]) -> None:
    with pytest.raises(DamagedError, match="contains another function, tick"):
        kernel_file.read(path, VERSIONS, function)


def test_every_changed_byte_and_length_is_noticed(path: Path) -> None:
    """Each bit that is flipped, each end that is missing, and ends that are too long."""
    data = path.read_bytes()
    changed = [
        data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]
        for place in range(len(data))
        for bit in range(8)
    ]
    changed += [data[:length] for length in range(len(data))]
    changed += [data + b"\0", data + data, b"\0" + data]
    other_versions = 0
    for content in changed:
        if content.startswith(kernel_file.KIND) and not content.startswith(MAGIC):
            assert decoded(content) is None
            other_versions += 1
        else:
            with pytest.raises(DamagedError, match=r"checksum is wrong|not a kernel file"):
                decoded(content)
    assert other_versions == 8 * 2 + 2
    assert len(changed) > 9 * len(data)


@pytest.mark.parametrize("size", [kernel_file.MAX_BYTES + 1, 1 << 40])
def test_a_file_that_is_too_large_is_not_read_to_its_end(path: Path, size: int) -> None:
    os.truncate(path, size)
    with pytest.raises(DamagedError, match="has more than 16,777,216 bytes"):
        read(path)


def folder(path):
    path.mkdir()
    (path / "inside").write_text("")


def to_nowhere(path):
    path.symlink_to(path.parent / "nowhere")


def to_a_good_one(path):
    kernel_file.write(path.parent / "good", CODE, VERSIONS, FUNCTION)
    path.symlink_to(path.parent / "good")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (folder, "cannot be read: Is a directory"),
        pytest.param(lambda path: os.mkfifo(path), "not a file", marks=posix, id="pipe"),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), "cannot be read", marks=posix, id="device"),
        pytest.param(to_nowhere, "cannot be read", marks=posix),
        pytest.param(to_a_good_one, "cannot be read", marks=posix),
    ],
)
def test_special_files_are_not_read(path: Path, make: Callable[[Path], Any], words: str) -> None:
    """Writing then replaces the special file by a regular one."""
    path.unlink()
    make(path)
    with pytest.raises(DamagedError, match=words):
        read(path)
    kernel_file.write(path, CODE, VERSIONS, FUNCTION)
    assert read(path) == CODE
    assert path.is_file()
    assert not path.is_symlink()


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_files_that_others_may_write_need_a_shared_cache(
    path: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.chmod(mode)
    with pytest.raises(DamagedError, match="can be written to by other users"):
        read(path)
    monkeypatch.setenv("PULSE_CACHE_SHARED", "1")
    assert read(path) == CODE
    monkeypatch.setenv("PULSE_CACHE_SHARED", "0")
    kernel_file.write(path, CODE, VERSIONS, FUNCTION)
    assert read(path) == CODE
    assert path.stat().st_mode & 0o777 == 0o600


@root
def test_files_of_other_users_need_a_shared_cache(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(path, 12345, -1)
    with pytest.raises(DamagedError, match=r"belongs to another user \(uid 12345\)"):
        read(path)
    monkeypatch.setenv("PULSE_CACHE_SHARED", "1")
    assert read(path) == CODE


def test_nothing_is_left_of_a_file_that_could_not_be_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        kernel_file.write(path, CODE, VERSIONS, FUNCTION)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before
