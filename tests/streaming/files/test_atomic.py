"""Files that appear only when they are complete: permissions, and failures that leave nothing."""

import os
import stat
import threading
from pathlib import Path

import pytest

from pulse.errors import InputError
from pulse.program.file.program_file import write_file
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


def test_a_link_stands_for_its_file_which_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    target, link = tmp_path / "disk" / "target.wav", tmp_path / "link.wav"
    target.write_bytes(b"old")
    target.chmod(0o600)
    link.symlink_to(target)
    with scratch_file(link) as part:
        assert part.parent == target.parent, "a rename does not cross disks"
        part.write_bytes(b"data")
        publish(part, link)
    assert link.is_symlink()
    assert target.read_bytes() == b"data"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in target.parent.iterdir()] == ["target.wav"]


def test_a_link_to_no_file_makes_it(tmp_path: Path) -> None:
    link = tmp_path / "link.pulse"
    link.symlink_to("new.pulse")
    write_file(b"data", link)
    assert (tmp_path / "new.pulse").read_bytes() == b"data"
    assert link.is_symlink()


def test_a_program_replaces_a_link_to_a_pipe_and_not_the_pipe(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link.pulse"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    write_file(b"data", link)
    assert link.read_bytes() == b"data"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_the_umask_is_never_changed_by_scratch_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
