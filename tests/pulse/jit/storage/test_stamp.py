"""The note that files were checked, in a cache of its own."""

import os
from pathlib import Path

import pytest

from pulse.jit.storage.stamp import Stamp


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("PULSE_CACHE", str(tmp_path / "cache"))
    paths = [tmp_path / name for name in ("library.so", "kernel.py")]
    for path in paths:
        path.write_text("content")
    return [str(path) for path in paths]


def test_files_are_checked_once(files: list[str]) -> None:
    assert not Stamp(files).is_current()
    Stamp(files).write()
    assert Stamp(files).is_current()
    assert not Stamp(files[:1]).is_current(), "other files have a note of their own"


@pytest.mark.parametrize("change", ["size", "time", "replaced", "missing", "note"])
def test_changed_files_are_checked_again(files: list[str], change: str) -> None:
    Stamp(files).write()
    path = Path(files[1])
    before = path.stat()
    if change == "size":
        path.write_text("more content")
    elif change == "time":
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1000))
    elif change == "replaced":
        path.with_name("other").write_text("CONTENT")
        os.utime(path.with_name("other"), ns=(before.st_atime_ns, before.st_mtime_ns))
        os.replace(path.with_name("other"), path)
    elif change == "missing":
        path.unlink()
    else:
        (note,) = Path(os.environ["PULSE_CACHE"]).glob("checked-*")
        note.write_bytes(b"\xff")
    assert not Stamp(files).is_current()


def test_missing_files_are_never_current(files: list[str]) -> None:
    Path(files[0]).unlink()
    Stamp(files).write()
    assert not Stamp(files).is_current()


def test_a_cache_that_cannot_be_written_is_not_an_error(files: list[str], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    Stamp(files).write()
    assert not Stamp(files).is_current()
    assert (tmp_path / "cache").read_text() == "a file"


def test_a_link_in_the_cache_is_not_followed(files: list[str], tmp_path: Path) -> None:
    stamp = Stamp(files)
    stamp.write()
    (note,) = (tmp_path / "cache").glob("checked-*")
    other = tmp_path / "other"
    other.write_text("not to be written")
    note.unlink()
    note.symlink_to(other)
    stamp.write()
    assert other.read_text() == "not to be written"
    assert not note.is_symlink()
    assert stamp.is_current()
