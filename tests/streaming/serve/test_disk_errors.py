"""A disk that refuses checkpoints: the streams continue, and the errors are counted and logged."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from pulse.client import connect
from streaming.protocol.errors import ProtocolError
from streaming.serve.checkpoints import Checkpoint, CheckpointFolder
from streaming.serve.settings import LimitSettings, ModelSettings, ServerSettings
from tests.agreement import assert_outputs_equal
from tests.noise import normal_noise
from tests.streaming.executor.streams import named_program
from tests.streaming.file_size_limit import limit_files
from tests.streaming.serve.offline_outputs import block_shape, expected_outputs
from tests.streaming.serve.servers import PULSE, RATE_HZ, RunningServer, running_server
from tests.waiting import wait_in_task

CHECKPOINT = Checkpoint("filtered", 0, (6,), (6,), bytes(1 << 16))


@contextmanager
def server_with(store: "FullStore") -> Iterator[RunningServer]:
    """A server whose checkpoints go to a store, one in three pulses."""
    model = ModelSettings(name="filtered", streams=4)
    settings = ServerSettings(
        (model,),
        limits=LimitSettings(speed=1e6),
        checkpoints=store.folder,
        checkpoint_s=3 * PULSE / RATE_HZ,
        budget=1000.0,
    )
    with running_server([(model, named_program("filtered", PULSE), RATE_HZ)], settings, threads=1) as server:
        server.service.checkpoints = store
        yield server


class FullStore(CheckpointFolder):
    """A folder on a disk without space; ``removes`` says whether files can be removed."""

    def __init__(self, folder: Path, removes: bool) -> None:
        super().__init__(folder, 60)
        self.folder, self.removes, self.names = folder, removes, set()

    def save(self, name: str, generation: int, checkpoint: Checkpoint) -> None:
        self.names.add(name)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), f"{name}.checkpoint")

    def remove(self, name: str) -> None:
        if not self.removes:
            raise OSError(errno.EIO, os.strerror(errno.EIO), f"{name}.checkpoint")


async def wait_for_count(server: RunningServer, name: str, minimum: int) -> None:
    """Wait until a count of the server has a value."""
    counts = server.service.counts
    await wait_in_task(lambda: counts.as_dict().get(name, 0) >= minimum, f"{name} is {minimum}")


@pytest.mark.anyio
@pytest.mark.parametrize("removes", [True, False])
async def test_a_full_disk_does_not_end_a_stream(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, removes: bool
) -> None:
    program, store = named_program("filtered", PULSE), FullStore(tmp_path, removes)
    (port,) = program.inputs
    x = normal_noise(*block_shape(port, 60 * PULSE), seed=5)
    with server_with(store) as server:
        async with connect(server.ws, reconnect_timeout_s=1) as stream:
            for number, block in enumerate(np.array_split(x, 3, port.axis), 1):
                await stream.send(block)
                await wait_for_count(server, "checkpoints_failed", number)
            outputs = await stream.flush()
            assert stream.connections == 1
            assert stream.is_whole, "no frame is in a checkpoint"
        await wait_for_count(server, "ended_left", 1)
        assert not server.service.counts.checkpoints
    assert_outputs_equal(outputs, expected_outputs(program, {port.name: x}))
    (record,) = [line for line in caplog.records if line.name == "pulse.serve" and line.levelname == "ERROR"]
    assert record.getMessage() == "checkpoints of a stream fail: No space left on device"
    (name,) = store.names
    assert name not in str(vars(record)), "the name of a stream is a secret"


def test_a_checkpoint_that_does_not_fit_leaves_no_file(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, 60)
    name = folder.new_name()
    folder.save(name, 0, CHECKPOINT)
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with limit_files(1 << 10), pytest.raises(OSError, match="too large"):
        folder.save(name, 1, CHECKPOINT)
    assert list(tmp_path.iterdir()) == [path]
    assert folder.load(name) == (CHECKPOINT, 0)


def test_a_checkpoint_that_cannot_be_read_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = CheckpointFolder(tmp_path, 60)
    name = folder.new_name()
    folder.save(name, 0, CHECKPOINT)

    def refuse(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    with monkeypatch.context() as patch, pytest.raises(ProtocolError, match="the checkpoint cannot be read"):
        patch.setattr(Path, "read_bytes", refuse)
        folder.load(name)
    (path,) = tmp_path.iterdir()
    path.write_bytes(b"something else")
    with pytest.raises(ProtocolError, match="the checkpoint is damaged"):
        folder.load(name)
    assert caplog.messages == [
        "a checkpoint cannot be read: Permission denied",
        "a checkpoint is damaged: not a checkpoint of a stream: it does not begin with the magic bytes",
    ]


def test_a_checkpoint_is_synced_before_the_older_one_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, fsync, unlink, steps = CheckpointFolder(tmp_path, 60), os.fsync, Path.unlink, []

    def record_fsync(descriptor):
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def record_unlink(path, missing_ok=False):
        steps.append("older")
        unlink(path, missing_ok)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(Path, "unlink", record_unlink)
    name = folder.new_name()
    folder.save(name, 0, CHECKPOINT)
    folder.save(name, 1, CHECKPOINT)
    assert steps == ["file", "folder", "file", "folder", "older"]


def test_a_file_system_that_cannot_sync_a_folder_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, fsync = CheckpointFolder(tmp_path, 60), os.fsync

    def refuse_folders(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    name = folder.new_name()
    assert folder.save(name, 0, CHECKPOINT)
    assert folder.load(name) == (CHECKPOINT, 0)


def test_a_folder_that_cannot_be_read_ends_no_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = CheckpointFolder(tmp_path, 60)

    def refuse(path, pattern):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))

    monkeypatch.setattr(Path, "glob", refuse)
    assert folder.sweep() == (0, 1)
    assert caplog.messages == ["the folder of checkpoints cannot be read: Stale file handle"]


def test_a_sweep_continues_after_a_file_that_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, unlink = CheckpointFolder(tmp_path, 60), Path.unlink
    for _ in range(3):
        folder.save(folder.new_name(), 0, CHECKPOINT)
    first, *others = sorted(tmp_path.iterdir())
    for path in (first, *others):
        os.utime(path, (0, 0))

    def refuse_first(path, missing_ok=False):
        if path == first:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse_first)
    assert folder.sweep() == (2, 1)
    assert list(tmp_path.iterdir()) == [first]
