"""The disk cache: where it is, whom it belongs to, what it is keyed by, a second process, damage, full disks."""

import json
import os
import pickle
import shutil
import stat
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import PulseWarning
from pulse.jit.registry import Kernel
from pulse.jit.storage import fingerprint
from pulse.jit.storage.cache import cache_location
from tests.pulse.jit.folders import folder as folder
from tests.pulse.jit.folders import kernels_in
from tests.pulse.jit.storage import damage
from tests.sources import ROOT

posix = pytest.mark.skipif(os.name != "posix", reason="folders have no owner and mode as on POSIX here")
root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away"
)
OTHER = 12345
"""The number of another user."""

SCRIPT = """
import json, sys
from pulse.jit.storage.cache import cache_location
from pulse.jit.rows.instruction import Instruction, Operand, updates
from pulse.jit.rows.pointer import operand
from pulse.jit.registry import kernel
from pulse.program.table.table import TableBuilder, link
from pulse.program.machine import machine
import numpy as np

class Scaling(Instruction):
    y: Operand = updates("f32", 1)

@kernel
def script_kernel(row: Scaling):
    y = row.y
    y[0] = y[0] * VALUE

builder = TableBuilder()
builder.add(script_kernel, operand(0, 0))
table = link(builder.finish())
y = np.ones(1, np.float32)
bases = np.array([y.ctypes.data])
machine.run(table.ctypes.data, 1, bases.ctypes.data)
location = cache_location()
print(json.dumps([script_kernel.came_from_disk, float(y[0]), str(location.path), location.kind]))
assert script_kernel.came_from_disk != ("numba" in sys.modules)
"""


def start(folder, value="2.0", **environment):
    script = Path(folder) / "script.py"
    script.write_text(SCRIPT.replace("VALUE", value))
    root = str(Path(pulse.__file__).parent.parent)
    inherited = {k: v for k, v in os.environ.items() if k not in ("PULSE_CACHE", "XDG_CACHE_HOME")}
    return subprocess.Popen(
        [sys.executable, "-B", str(script)],
        env={**inherited, "PYTHONPATH": root, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process):
    """The output of the script, and its stderr where that is not empty."""
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return json.loads(out) + ([errors] if errors else [])


def test_processes_share_the_cache_until_a_kernel_changes(tmp_path: Path) -> None:
    place = str(tmp_path / "cache")
    processes = [start(tmp_path, PULSE_CACHE=place) for _ in range(2)]
    first, second = (answer(process) for process in processes)
    assert first[1:] == second[1:] == [2.0, place, "environment"]
    assert not (first[0] and second[0])
    assert answer(start(tmp_path, PULSE_CACHE=place)) == [True, 2.0, place, "environment"]
    files = [path for path in Path(place).rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".kernel"}
    changed = answer(start(tmp_path, value="3.0", PULSE_CACHE=place))
    assert changed == [False, 3.0, place, "environment"]


def test_nowhere_to_write_is_a_temporary_folder_that_goes_away(tmp_path: Path) -> None:
    blocked = tmp_path / "file"  # a file where a folder is needed cannot be written, not even by root
    blocked.write_text("")
    package = list(Path(pulse.__file__).parent.rglob("*.nb?"))
    cached, value, path, kind, errors = answer(
        start(tmp_path, HOME=str(blocked), LOCALAPPDATA=str(blocked), XDG_CACHE_HOME=str(blocked))
    )
    assert (cached, value, kind) == (False, 2.0, "temporary")
    assert not Path(path).exists()
    assert errors.count("PulseWarning: ") == 1
    assert "set PULSE_CACHE to a folder that can be written" in errors
    assert package == [] == list(Path(pulse.__file__).parent.rglob("*.kernel"))


def test_the_cache_is_in_the_folder_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with kernels_in(""):
        for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
            monkeypatch.setenv(name, str(tmp_path))
        location = cache_location()
        assert location.kind == "user"
        assert tmp_path in location.path.parents
        assert location.folder.is_dir()


def test_an_unknown_home_folder_is_taken_as_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with kernels_in("~nobody-of-this-name/kernels"):
        assert cache_location().path == tmp_path / "~nobody-of-this-name" / "kernels"


@posix
def test_folders_are_the_users_own(tmp_path: Path) -> None:
    """Those around the cache too, where they are made for it."""
    with kernels_in(tmp_path / "a" / "b"):
        folders = [tmp_path / "a", cache_location().path, cache_location().folder]
        assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700] * 3
    before = os.umask(0o027)
    try:
        with kernels_in(tmp_path / "c", shared="1"):
            assert stat.S_IMODE(cache_location().folder.stat().st_mode) == 0o750
            path = Path(damage.compile_and_call(damage.doubles)[0].path())
            assert stat.S_IMODE(path.stat().st_mode) == 0o640
    finally:
        os.umask(before)


def of_the_group(path):
    path.mkdir()
    path.chmod(0o770)


def of_all(path):
    path.mkdir()
    path.chmod(0o1777)


def plant_folder_of_other_owner(path):
    path.mkdir(mode=0o755)
    os.chown(path, OTHER, -1)


def planted_link(path):
    target = path.parent / "elsewhere"
    target.mkdir(mode=0o700)
    path.symlink_to(target)
    os.lchown(path, OTHER, -1)


def link_to_a_planted_one(path):
    plant_folder_of_other_owner(path.parent / "elsewhere")
    path.symlink_to(path.parent / "elsewhere")


def planted_inside(path):
    with kernels_in(path):
        os.chown(cache_location().folder, OTHER, -1)


@posix
@pytest.mark.parametrize(
    ("plant", "words"),
    [
        (of_the_group, "can be written to by other users"),
        (of_all, "can be written to by other users"),
        *(
            pytest.param(plant, rf"belongs to another user \(uid {OTHER}\)", marks=root)
            for plant in (plant_folder_of_other_owner, planted_link, link_to_a_planted_one, planted_inside)
        ),
    ],
)
def test_a_folder_of_others_is_refused_unless_it_is_asked_for(
    tmp_path: Path, plant: Callable[[Path], Any], words: str
) -> None:
    path = tmp_path / "kernels"
    plant(path)
    with kernels_in(path):
        with pytest.warns(PulseWarning, match=words) as warned:
            damage.compile_and_call(damage.doubles)
            damage.compile_and_call(damage.halves)
        assert len(warned) == 1
        assert "PULSE_CACHE_SHARED=1" in str(warned[0].message)
        location = cache_location()
        assert location.kind == "temporary"
        assert stat.S_IMODE(location.path.stat().st_mode) == 0o700
    assert not list(path.rglob("*.kernel"))
    with kernels_in(path, shared="1"):
        damage.compile_and_call(damage.doubles)
        assert cache_location().kind == "environment"
    assert len(list(path.resolve().rglob("*.kernel"))) == 1


@posix
def test_a_link_of_the_users_own_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "kernels").symlink_to(tmp_path / "elsewhere")
    with kernels_in(tmp_path / "kernels"):
        damage.compile_and_call(damage.doubles)
    assert len(list((tmp_path / "elsewhere").rglob("*.kernel"))) == 1


@root
def test_another_user_runs_kernels_that_root_built() -> None:
    """An image: built with PULSE_CACHE_SHARED=1, run without it, by a user who cannot write there."""
    place = Path(tempfile.mkdtemp())  # other users cannot look into tmp_path
    place.chmod(0o755)
    run = (
        "import os; from pulse.jit.storage.cache import cache_location; from tests.pulse.jit.storage import damage\n"
        "damage.Kernel('doubles', damage.doubles, 0).path()\n"  # as long as the sources can be read
        "{}; cache_location.cache_clear(); print(damage.compile_and_call(damage.doubles)[0].came_from_disk)"
    )
    processes = []
    try:
        for shared, first in (("1", ""), ("0", f"os.setuid({OTHER})")):
            environment = {**os.environ, "PULSE_CACHE": str(place / "kernels"), "PULSE_CACHE_SHARED": shared}
            command = [sys.executable, "-c", run.format(first or "os.umask(0o022)")]
            folder = ROOT
            processes.append(
                subprocess.run(
                    command, env=environment, cwd=folder, capture_output=True, text=True, check=True
                )
            )
    finally:
        shutil.rmtree(place)
    assert [(process.stdout, process.stderr) for process in processes] == [("False\n", ""), ("True\n", "")]


class FileMaker:
    """Makes a file where it is unpickled."""

    def __init__(self, proof):
        self.proof = proof

    def __reduce__(self):
        return open, (str(self.proof), "w")


@pytest.mark.parametrize("shared", ["0", "1"])
def test_nothing_in_a_file_is_run_before_it_is_known(folder: Path, shared: str) -> None:
    """Not even if other users' files are accepted: none is a program but its own object code."""
    with kernels_in(folder, shared):
        path = Path(damage.compile_and_call(damage.doubles)[0].path())
        path.write_bytes(pickle.dumps(FileMaker(folder / "proof")))
        with pytest.warns(PulseWarning, match="not a kernel file; it is compiled again"):
            assert damage.compile_and_call(damage.doubles)[1] == 6
        assert not (folder / "proof").exists()
        assert damage.compile_and_call(damage.doubles)[0].came_from_disk


@root
def test_a_whole_file_of_another_user_is_compiled_again(folder: Path) -> None:
    path = Path(damage.compile_and_call(damage.doubles)[0].path())
    os.chown(path, OTHER, -1)
    with pytest.warns(PulseWarning, match=f"another user .uid {OTHER}.; it is compiled again"):
        kernel, value = damage.compile_and_call(damage.doubles)
    assert (kernel.came_from_disk, value, path.stat().st_uid) == (False, 6, os.geteuid())


def run_damaged(tmp_path, seed, count):
    """The report of a process that damages a file this many times: kinds, all outcomes, its warnings, what is left."""
    environment = {**os.environ, "PULSE_CACHE": str(tmp_path / f"kernels{seed}")}
    command = [sys.executable, "-m", "tests.pulse.jit.storage.damage", str(seed), str(count)]
    process = subprocess.run(
        command,
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    lines = process.stdout.splitlines()
    assert (process.returncode, process.stderr, len(lines)) == (0, "", count + 2), lines[-1:]
    cases = [line.partition("} ") for line in lines[:count]]
    kinds = [json.loads(kind + "}")["kind"] for kind, _, _ in cases]
    return kinds, {outcome for _, _, outcome in cases}, *map(json.loads, lines[count:])


@pytest.mark.parametrize(
    ("processes", "count"), [(1, len(damage.KINDS)), pytest.param(20, 100, marks=pytest.mark.slow)]
)
def test_damaged_files_are_compiled_again_and_replaced(tmp_path: Path, processes: int, count: int) -> None:
    """The process lives, the kernel is right and its file whole again each time; one line reports all."""
    reached = set()
    for seed in range(processes):
        kinds, outcomes, warned, left = run_damaged(tmp_path, seed, count)
        assert outcomes == {'{"value": 6.0, "from_disk": false, "whole": true, "again": true}'}
        assert len(warned) == 1
        assert "it is compiled again and replaced" in warned[0]
        assert [name.partition("-")[0] for name in left] == ["doubles", "halves"]
        reached.update(kinds)
    assert reached == set(damage.KINDS)


def test_a_full_disk_is_reported_and_kernels_run(small_disk: Path) -> None:
    """Kernels run, and one line reports that none is kept."""
    with kernels_in(small_disk / "kernels"):
        folder = cache_location().folder
        (small_disk / "rest").write_bytes(
            bytes(os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize)
        )
        with pytest.warns(
            PulseWarning, match="No space left on device, so compiled kernels are not cached"
        ) as warned:
            ran = [damage.compile_and_call(function) for function in (damage.doubles, damage.halves)]
        assert len(warned) == 1
        assert str(folder) in str(warned[0].message)
        assert [value for _, value in ran] == [6, 1.5]
        assert [kernel.storage_error for kernel, _ in ran] == ["No space left on device"] * 2
        assert not list(folder.iterdir())


def test_kernels_on_a_disk_without_write_access_are_used(small_disk: Path) -> None:
    """The stored kernels are used without a warning."""
    with kernels_in(small_disk / "kernels"):
        damage.compile_and_call(damage.doubles)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with kernels_in(small_disk / "kernels"):
        assert damage.compile_and_call(damage.doubles)[0].came_from_disk
        with pytest.warns(PulseWarning, match="Read-only file system, so compiled kernels are not cached"):
            assert damage.compile_and_call(damage.halves)[1] == 1.5


def test_without_any_folder_kernels_are_compiled_but_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_):
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    (tmp_path / "file").write_text("")
    with kernels_in(tmp_path / "file" / "kernels"):
        with pytest.warns(PulseWarning, match="set PULSE_CACHE to a folder that can be written") as warned:
            kernel, value = damage.compile_and_call(damage.doubles)
        assert (len(warned), kernel.is_cached, kernel.path(), value) == (1, False, None, 6)


def test_a_warning_that_is_an_error_damages_nothing(folder: Path) -> None:
    """The warning is raised once; afterwards all is as if it had been reported."""
    path = Path(damage.compile_and_call(damage.doubles)[0].path())
    path.write_bytes(b"")
    kernel = Kernel("doubles", damage.doubles, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PulseWarning):
            kernel.prepare()
        kernel.prepare()
    assert kernel.is_cached
    assert kernel.address


OFFSET = 1


def helper(x):
    return x + OFFSET


def uses_helper(x):
    return helper(x)


def closure_of(value):
    return lambda x: x + value


def test_fingerprints_cover_helpers_globals_closures_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint.fingerprint(uses_helper)
    assert fingerprint.fingerprint(uses_helper) == before
    monkeypatch.setitem(globals(), "OFFSET", 2)
    assert fingerprint.fingerprint(uses_helper) != before
    closures = [1, 2, np.arange(3), np.arange(3.0), helper, (helper, 1), [(helper, 2)], {"a": [uses_helper]}]
    assert len({fingerprint.fingerprint(closure_of(value)) for value in closures}) == len(closures)
    assert fingerprint.fingerprint(closure_of(1)) == fingerprint.fingerprint(closure_of(1))


def test_sources_hash_covers_the_sources_of_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The hash covers what a kernel's module uses, and every file of the language."""
    from pulse.program.kernels.recurrent import gru

    assert fingerprint.linked_modules(gru.__name__) >= {
        "pulse.program.kernels.recurrent.gates",
        "pulse.program.kernels.recurrent.layer",
    }
    assert (fingerprint.PACKAGE / "codegen/simd.py").is_file()
    hashes = []
    for content in ("one", "one", "two"):
        (tmp_path / "simd.py").write_text(content)
        monkeypatch.setattr(fingerprint, "PACKAGE", tmp_path)
        fingerprint.language_hash.cache_clear()
        fingerprint.sources_hash.cache_clear()
        hashes.append(fingerprint.fingerprint(uses_helper))
    monkeypatch.undo()
    fingerprint.language_hash.cache_clear()
    fingerprint.sources_hash.cache_clear()
    assert hashes[0] == hashes[1] != hashes[2]
