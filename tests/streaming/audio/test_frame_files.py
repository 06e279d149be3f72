"""Frames are appended to files that equal a file written at once, in bounded memory."""

import csv
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pulse.errors import InputError
from pulse.facts import Array
from streaming.audio import frame_formats
from streaming.audio.frame_files import FramesFile

FULL = r"cannot be written \(No space left on device\); free some space, or write to another disk"


def write_pieces(path: Path, pieces: list[Array], axis: int | None, rate_hz: float | None = None) -> Path:
    with FramesFile(path, axis, rate_hz) as file:
        for piece in pieces:
            file.write(piece)
    return path


def table(path: Path, array: Array, axis: int | None, rate_hz: float | None = None) -> bytes:
    """The bytes of a table that is written in one piece."""
    rows = array.reshape(1, -1) if axis is None else np.moveaxis(array, axis, 0)
    rows = rows.reshape(len(rows), -1)
    names = ["value"] if rows.shape[1] == 1 else [f"value_{column}" for column in range(rows.shape[1])]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["frame" if rate_hz is None else "time_s", *names])
        for number, row in enumerate(rows.tolist()):
            writer.writerow([number if rate_hz is None else f"{number / rate_hz:.3f}", *row])
    return path.read_bytes()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_frames_of_any_axis_are_written_in_any_pieces(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """The loaded array and the memory map have the values, dtype and shape of the whole."""
    folder = tmp_path_factory.mktemp("frames")
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4), "shape")
    axis = data.draw(st.integers(0, len(shape) - 1), "axis")
    shape[axis] = data.draw(st.integers(0, 40), "frames")
    dtype = data.draw(st.sampled_from(["f4", "f8", "f2", "i8", "u1", "?"]), "dtype")
    whole = data.draw(arrays.arrays(dtype, shape, elements={"allow_nan": False} if "f" in dtype else None))
    cuts = sorted(data.draw(st.lists(st.integers(0, shape[axis]), max_size=5), "cuts"))
    pieces = np.split(whole, cuts, axis)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame_formats, "MAX_PIECE_BYTES", 64)
        path = write_pieces(folder / "x.npy", pieces, axis)
    for mode in (None, "r") if whole.size else (None,):
        stored = np.load(path, mmap_mode=mode)
        assert (stored.dtype, stored.shape) == (whole.dtype, whole.shape)
        np.testing.assert_array_equal(stored, whole)
    if shape[axis]:
        rate_hz = data.draw(st.sampled_from([None, 62.5]))
        stored = write_pieces(folder / "x.csv", pieces, axis, rate_hz).read_bytes()
        assert stored == table(folder / "y.csv", whole, axis, rate_hz)
    assert len(list(folder.iterdir())) <= 3


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_the_last_tensor_without_time_is_written(tmp_path: Path, shape: tuple[Any, ...]) -> None:
    """The second of two tensors is in the file."""
    first, last = np.zeros(shape, np.float32), np.random.default_rng(1).random(shape, np.float32)
    np.testing.assert_array_equal(np.load(write_pieces(tmp_path / "x.npy", [first, last], None)), last)
    path = write_pieces(tmp_path / "x.csv", [first, last], None)
    assert path.read_bytes() == table(tmp_path / "y.csv", last, None)


def test_a_table_of_no_frames_has_its_names(tmp_path: Path) -> None:
    """An empty table has column names; a file is made only if frames were written."""
    path = write_pieces(tmp_path / "x.csv", [np.zeros((1, 0, 2), np.float32)], 1)
    assert path.read_bytes() == b"frame,value_0,value_1\r\n"
    write_pieces(tmp_path / "y.csv", [], 1)
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_run_keeps_the_old_file_of_frames(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), FramesFile(path, 0, None) as file:
        file.write(np.zeros(3))
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x.txt", "as .npy or .csv, not .txt"),
        ("no/x.npy", "no such folder; make it first"),
        ("folder.npy", "is not a file that can be replaced"),
    ],
)
def test_files_that_cannot_take_frames_are_refused(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(InputError, match=words):
        FramesFile(tmp_path / name, 0, None)


def test_pieces_of_several_types_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"float64 \[3\] does not fit .* a separate file"):
        write_pieces(tmp_path / "x.npy", [np.zeros(3, np.float32), np.zeros(3)], 0)


@pytest.mark.parametrize(("name", "axis"), [("x.npy", 0), ("x.npy", 1), ("x.csv", 1)])
def test_a_frame_writer_reports_a_full_disk(small_disk: Path, name: str, axis: int) -> None:
    """The write raises the error; frames of earlier writes may be kept whole."""
    piece = np.random.default_rng(2).random((5, 100) if axis else (100, 5)).astype(np.float32)
    count = 0
    with FramesFile(small_disk / name, axis, None) as file:
        with pytest.raises(InputError, match=f"{name}: {FULL}"):
            while True:
                file.write(piece)
                count += 1
        with pytest.raises(InputError, match=FULL):
            file.write(piece)
    assert count > 2
    whole = np.concatenate([piece] * count, axis)
    if name.endswith(".npy"):
        np.testing.assert_array_equal(np.load(small_disk / name), whole)
    else:
        assert (small_disk / name).read_bytes() == table(small_disk.parent / "y.csv", whole, axis)
    assert [path.name for path in small_disk.iterdir()] == [name]


def test_frames_without_room_stay_in_their_order(small_disk: Path) -> None:
    """The axis is in the middle: they stay in their order, under a new name that the error has."""
    whole = np.random.default_rng(4).integers(0, 99, (2, 9000, 3), np.int8)
    pieces = np.split(whole, 90, 1)
    names = ["x-frames-first.npy", "x-frames-first-2.npy"]
    (small_disk / names[0]).write_bytes(b"old")
    with pytest.raises(InputError, match=f"{FULL}; .* in .*{names[1]}, .*moveaxis.frames, 0, 1. ") as refusal:
        write_pieces(small_disk / "x.npy", pieces, 1)
    assert "error" not in str(refusal.value)
    np.testing.assert_array_equal(np.moveaxis(np.load(small_disk / names[1]), 0, 1), whole)
    assert sorted(path.name for path in small_disk.iterdir()) == sorted(names)
    assert (small_disk / names[0]).read_bytes() == b"old"


def test_frames_written_before_the_disk_is_full_are_kept(small_disk: Path) -> None:
    whole = np.random.default_rng(5).random((3, 4000, 2)).astype(np.float32)
    count = 0
    file = FramesFile(small_disk / "x.npy", 1, None)
    with pytest.raises(InputError, match=f"{FULL}$"):
        for piece in np.split(whole, 40, 1):
            file.write(piece)
            count += 100
    with pytest.raises(InputError, match="frames-first"), file:
        pass
    assert 2000 < count < 4000
    stored = np.load(small_disk / "x-frames-first.npy")
    np.testing.assert_array_equal(np.moveaxis(stored, 0, 1), whole[:, :count])


@pytest.mark.parametrize("name", ["x.npy", "x.csv"])
def test_a_tensor_stays_until_it_is_replaced(small_disk: Path, name: str) -> None:
    """The earlier tensor stays until the new one replaces it."""
    old = np.random.default_rng(6).random((10, 100))
    with FramesFile(small_disk / name, None, None) as file:
        file.write(old)
        with pytest.raises(InputError, match=FULL):
            file.write(np.random.default_rng(7).random((100, 100)))
    if name.endswith(".npy"):
        np.testing.assert_array_equal(np.load(small_disk / name), old)
    else:
        assert (small_disk / name).read_bytes() == table(small_disk.parent / "y.csv", old, None)
    assert [path.name for path in small_disk.iterdir()] == [name]


@pytest.mark.parametrize(("name", "axis"), [("x.npy", 0), ("x.npy", 2), ("x.npy", 1), ("x.csv", 1)])
def test_appending_frames_takes_no_more_memory(tmp_path: Path, name: str, axis: int) -> None:
    """A writer keeps a few pieces in memory, not the 20 MB that it writes."""
    shape = [4, 4, 4]
    shape[axis] = 1000
    piece = np.random.default_rng(3).random(shape).astype(np.float32)
    count = 30 if name.endswith(".csv") else 300
    tracemalloc.start()
    try:
        with FramesFile(tmp_path / name, axis, None) as file:
            for _ in range(count):
                file.write(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * frame_formats.MAX_PIECE_BYTES + 1_000_000
    if name.endswith(".npy"):
        assert np.load(tmp_path / name, mmap_mode="r").shape[axis] == 1000 * count
