"""Files that appear only when they are complete: permissions, and failures that leave nothing."""

import os
import stat
import threading
from pathlib import Path

import pytest

from pulse.errors import InputError
from streaming.files.atomic import publish, scratch_file


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o000], ids=oct)
def test_a_published_file_has_the_permissions_of_any_new_file(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        (tmp_path / "plain").touch()
        with scratch_file(tmp_path / "out.wav") as part:
            part.write_bytes(b"data")
            publish(part, tmp_path / "out.wav")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "out.wav")]
    assert modes == [0o666 & ~mask] * 2
    assert (tmp_path / "out.wav").read_bytes() == b"data"


def test_the_umask_is_never_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The umask belongs to the whole process: files that other threads create meanwhile keep their permissions."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("changes the umask"))
    with scratch_file(tmp_path / "out.wav") as part:
        publish(part, tmp_path / "out.wav")


def test_an_unpublished_file_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="stop"), scratch_file(tmp_path / "out.wav") as part:
        part.write_bytes(b"data")
        raise RuntimeError("stop")
    assert list(tmp_path.iterdir()) == []


def test_threads_write_one_file_through_separate_parts(tmp_path: Path) -> None:
    parts = []

    def write() -> None:
        with scratch_file(tmp_path / "out.wav") as part:
            parts.append(part)
            barrier.wait(10)
            publish(part, tmp_path / "out.wav")

    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(parts)) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["out.wav"]


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match=r"cannot be written .*check the folder"),
        scratch_file(tmp_path / "no" / "out"),
    ):
        pass
