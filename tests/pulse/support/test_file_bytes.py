"""The bytes of a file of limited size."""

import os
from pathlib import Path

import pytest

from pulse.errors import LoadError
from pulse.support.file_bytes import HEAD_BYTES, file_bytes


def test_a_file_up_to_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(100)))
    assert file_bytes(path, 100, "too long") == bytes(range(100))
    with pytest.raises(LoadError, match="has 100 bytes; too long"):
        file_bytes(path, 99, "too long")


def test_the_head_is_checked_before_the_size(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(2 * HEAD_BYTES))

    def refuse(head: bytes) -> None:
        assert head == bytes(HEAD_BYTES)
        raise LoadError("another format")

    with pytest.raises(LoadError, match="another format"):
        file_bytes(path, 1, "too long", refuse)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, reason in [
        (tmp_path, "a folder"),
        (tmp_path / "pipe", "a pipe"),
        (tmp_path / "none", "no such file"),
    ]:
        with pytest.raises(LoadError, match=reason):
            file_bytes(path, 100, "too long")
