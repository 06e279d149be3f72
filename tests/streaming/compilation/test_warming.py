"""Kernels compiled ahead: by processes, once, into the folder that the others look in."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from pulse.errors import CompileError, PulseWarning
from pulse.jit.compiled import CompiledFunction
from pulse.jit.entries import ENTRIES
from pulse.jit.registry import KERNELS
from pulse.jit.storage.cache import cache_location
from streaming.cli.commands import app
from streaming.compilation import warming
from tests.pulse.jit.folders import COMPILING, kernels_in
from tests.pulse.jit.folders import folder as folder

QUICK = ("tick", "move", "machine.run", "machine.read_ticks")
"""Functions that are compiled in a moment."""
QUICK_ENTRIES = ("machine.run", "machine.read_ticks")
"""In place of the entry points of a step, one of which takes a second."""


def only(*names: str) -> list[str]:
    return [part for name in names for part in ("--only", name)]


def command(*arguments: str, **environment: str) -> CompletedProcess:
    code = "from streaming.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **COMPILING, **environment},
    )


def test_kernels_are_compiled_once(folder: Path) -> None:
    """Two processes compile; the second run finds all and starts none; the bar counts up to the end."""
    progress = []
    first = warming.warm(QUICK, jobs=2, progress=lambda count, total: progress.append((count, total)))
    assert (first.folder, set(first.compiled_s), first.present, first.jobs) == (folder, set(QUICK), (), 2)
    assert progress == [(count, len(QUICK)) for count in range(1, len(QUICK) + 1)]
    assert list(first.compiled_s.values()) == sorted(first.compiled_s.values(), reverse=True)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) == len(QUICK)
    assert {path.suffix for path in files} == {".kernel"}
    second = warming.warm(QUICK)
    assert (second.compiled_s, second.present, second.jobs) == ({}, QUICK, 0)


@pytest.fixture
def warm_folder(folder: Path) -> Path:
    """A folder that has the quick kernels."""
    warming.warm(QUICK, jobs=1)
    return folder


def test_the_command_reports_present_kernels(warm_folder: Path) -> None:
    text = CliRunner().invoke(app, ["warm", *only(*QUICK)]).stdout
    assert str(warm_folder) in text
    assert "already compiled  4" in text
    details = json.loads(CliRunner().invoke(app, ["warm", "--json", *only(*QUICK)]).stdout)
    assert details["folder"] == str(warm_folder)
    assert details["present"] == list(QUICK)
    assert details["compiled_s"] == {}


def test_the_command_compiles_only_missing_kernels(warm_folder: Path) -> None:
    for path in warm_folder.rglob("move-*"):
        path.unlink()
    details = json.loads(CliRunner().invoke(app, ["warm", "--json", *only(*QUICK)]).stdout)
    assert list(details["compiled_s"]) == ["move"]
    assert details["jobs"] == 1
    assert details["seconds"] > 0


def test_another_process_finds_compiled_kernels(folder: Path) -> None:
    """Both processes use the same folder, file and key."""
    code = (
        "from pulse.program.kernels import families\n"
        "from pulse.jit.registry import KERNELS\n"
        "kernel = KERNELS['tick']; kernel.prepare(); print(kernel.came_from_disk)"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert printed == [["False"], ["True"]]
    assert warming.warm(["tick"]).present == ("tick",)


def test_all_includes_every_kernel_and_every_entry_point() -> None:
    assert set(warming.kernel_names()) == {*KERNELS, *ENTRIES}


def test_kernels_of_live_runs_and_executors_are_known_in_advance() -> None:
    """All are known but ``next_pulse``, which serves the numpy backend."""
    code = (
        "from streaming.compilation import warming; "
        "needed = {name for name in warming.kernel_names() if name.split('.')[0] in ('pipeline', 'device')}; "
        "print(needed ^ set(warming.LIVE_ENTRIES)); "
        "from streaming.executor.native_engine import ENTRIES; "
        "print({one.name for one in ENTRIES} ^ set(warming.EXECUTOR_ENTRIES))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert process.stdout == "{'pipeline.next_pulse'}\nset()\n"


def test_unknown_kernel_names_are_refused() -> None:
    with pytest.raises(CompileError, match=r"unknown kernel 'chian' .did you mean chain"):
        warming.warm(["chian"])


def blocked_cache(tmp_path: Path) -> dict[str, str]:
    """An environment whose cache folder cannot be made, not even by root: a file is in its place."""
    file = tmp_path / "file"
    file.write_text("")
    return {"PULSE_CACHE": str(file / "kernels")}


def test_warm_without_a_cache_folder_is_an_error(tmp_path: Path) -> None:
    result = command("warm", "--only", "tick", **blocked_cache(tmp_path))
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == (
        f"error: {tmp_path / 'file' / 'kernels'}: Not a directory; set PULSE_CACHE to a folder that can be written: "
        "no kernel would be stored for the next time\n"
    )


def test_warm_refuses_a_folder_that_others_may_write(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(
        CompileError, match="can be written to by other users, so no compiled code is read from it"
    ):
        warming.warm(["tick"])


@pytest.fixture
def begun_processes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Two processors, functions that are not compiled in this process, and the processes that begin."""
    processes, begin = [], warming.begin_process
    monkeypatch.setattr(warming, "begin_process", lambda: processes.append(begin()) or processes[-1])
    monkeypatch.setattr(warming, "core_count", lambda: 2)
    entries = tuple(ENTRIES[name] for name in QUICK_ENTRIES)
    monkeypatch.setattr(warming, "STEPPING", entries)
    for kernel in (*entries, KERNELS["tick"], KERNELS["move"]):
        monkeypatch.setattr(kernel, "loaded_address", None)
        monkeypatch.setattr(kernel, "storage_error", None)
    return processes


def test_processes_without_a_cache_share_a_temporary_folder(
    tmp_path: Path, begun_processes: list[Any]
) -> None:
    """One warning says that nothing is kept."""
    with kernels_in(blocked_cache(tmp_path)["PULSE_CACHE"]):
        with pytest.warns(
            PulseWarning, match="set PULSE_CACHE to a folder that can be written; until then"
        ) as warned:
            warming.compile_in_parallel()(["tick"])
        location = cache_location()
        assert len(warned) == 1
        assert location.kind == "temporary"
        assert len(begun_processes) == 2
        assert len(list(location.folder.iterdir())) == 3
        KERNELS["tick"].prepare()
        assert KERNELS["tick"].came_from_disk


@pytest.mark.parametrize("foreseen", [True, False])
def test_this_process_compiles_if_the_disk_is_full(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch, begun_processes: list[Any], foreseen: bool
) -> None:
    """The other processes do not begin, or end with the first function that they cannot keep."""
    if not foreseen:
        monkeypatch.setattr(warming, "why_not_cached", lambda: None)
    with kernels_in(small_disk / "kernels"):
        folder = cache_location().folder
        fill(small_disk)
        with pytest.warns(
            PulseWarning, match="No space left on device, so compiled kernels are not cached"
        ) as warned:
            warming.compile_in_parallel()(["tick", "move"])
        assert len(warned) == 1
        assert len(begun_processes) == (0 if foreseen else 2)
        assert all(KERNELS[name].storage_error for name in ("tick", "move"))
        assert not list(folder.iterdir())
        with pytest.raises(
            CompileError, match=r"No space left on device, so (tick|move) is not cached; free the disk"
        ):
            warming.warm(["tick", "move"])


def fill(disk: Path) -> None:
    """Fill a disk to its last byte."""
    free = os.statvfs(disk)
    (disk / "rest").write_bytes(bytes(free.f_bavail * free.f_frsize))


def test_commands_report_a_full_disk(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``run`` warns in one line that kernels are not stored; ``warm`` fails."""
    monkeypatch.chdir(tmp_path)
    assert command("run").returncode == 0
    kernels = list(cache_location().folder.glob("[!t]*.kernel"))
    size = (1 << 24) + 2 * sum(path.stat().st_size for path in kernels)
    subprocess.run(["mount", "-o", f"remount,size={size}", str(small_disk)], check=True)
    folder = small_disk / "kernels" / cache_location().folder.name
    folder.mkdir(parents=True, mode=0o700)
    for path in kernels:
        shutil.copy(path, folder)
    folder.parent.chmod(0o700)
    fill(small_disk)
    (tmp_path / "denoised.wav").unlink()
    result = command("run", PULSE_CACHE=str(folder.parent))
    words = "No space left on device, so compiled kernels are not cached and the next process compiles them again; "
    advice = "free the disk or set PULSE_CACHE to another folder"
    assert (result.returncode, result.stderr) == (0, f"warning: {folder}: {words}{advice}\n")
    assert (tmp_path / "denoised.wav").exists()
    result = command("warm", "--only", "tick", PULSE_CACHE=str(folder.parent))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"error: {folder}: No space left on device, so tick is not cached; {advice}\n"


def test_a_failed_kernel_is_named_in_one_line(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "chatty.py").write_text(
        "from pulse.jit.registry import kernel\n"
        "from pulse.program.kernels.time import TickRow\n"
        "@kernel\n"
        "def chatty(row: TickRow):\n"
        "    print(row.clock[0])\n"
    )
    code = (
        "import chatty\nfrom pulse.errors import CompileError\nfrom streaming.compilation.warming import warm\n"
        "try: warm(['chatty'])\n"
        "except CompileError as error: print(error)"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[3]}"}
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert process.stdout.startswith("chatty: may raise an exception, or needs Python or memory (")
    assert (process.stdout.count("\n"), process.stderr) == (1, "")


SCRIPT = """
import sys; sys.path.insert(0, {root!r})
from pulse.jit.registry import KERNELS, kernel
from pulse.program.kernels.time import TickRow
from streaming.compilation import warming

@kernel
def mine(row: TickRow):
    pass

warming.core_count = lambda: 2
warming.STEPPING = ()
begun, begin = [], warming.begin_process
def counted():
    begun.append(begin())
    return begun[-1]
warming.begin_process = counted
warming.compile_in_parallel("machine.read_ticks")(["tick", "move", "mine"])
print(len(begun), [KERNELS[name].is_cached for name in ("tick", "move", "mine")])
"""


@pytest.mark.parametrize("optimised", [(), pytest.param(("-O",), marks=pytest.mark.slow)])
def test_a_script_is_not_run_again_by_compiling_processes(
    folder: Path, tmp_path: Path, optimised: tuple[Any, ...]
) -> None:
    """A guard of ``__main__`` is not needed; a kernel that the script declares is compiled where it is known."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(root=str(Path(__file__).parents[3])))
    process = subprocess.run(
        [sys.executable, *optimised, script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (process.stdout, process.stderr) == ("2 [True, True, True]\n", "")


@pytest.mark.parametrize(
    "arguments", [("run",), ("bench", "--steps", "5"), ("check", "--weights", "bf16", "--length", "999")]
)
def test_commands_compile_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[Any, ...]
) -> None:
    """Commands request all missing kernels together before they compile any."""
    names = []
    monkeypatch.setattr(CompiledFunction, "is_cached", False)
    monkeypatch.setattr(warming, "compile_in_parallel", lambda *entries: names.extend)
    monkeypatch.setattr("streaming.compilation.preparation.STEPPING", (SimpleNamespace(is_cached=False),))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert {"fourier", "tick"} <= set(names)
    assert ("product_bf16" in names) == ("bf16" in arguments)


def test_a_compiling_process_that_ends_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = warming.begin_process

    def begin_and_kill():
        process = begin()
        process.kill()
        return process

    monkeypatch.setattr(warming, "begin_process", begin_and_kill)
    with pytest.raises(CompileError, match=r"the process that compiled (tick|move) ended by itself"):
        warming.warm(["tick", "move"], jobs=2)


@pytest.mark.parametrize("alone", ["one processor", "no interpreter", ""])
def test_compiling_side_by_side_shows_its_progress(
    folder: Path, monkeypatch: pytest.MonkeyPatch, begun_processes: list[Any], alone: str
) -> None:
    """This process compiles if others cannot help; existing kernels need no bar."""
    progress = []

    @contextmanager
    def show(title):
        yield lambda count, total: progress.append((count, total))

    monkeypatch.setattr(warming, "progress", show)
    if alone == "one processor":
        monkeypatch.setattr(warming, "core_count", lambda: 1)
    monkeypatch.setattr(sys, "frozen", alone == "no interpreter", raising=False)
    warming.compile_in_parallel()(["tick"])
    assert progress == [(number, 3) for number in range(1, 4)]
    assert len(begun_processes) == (0 if alone else 2)
    warming.compile_in_parallel()(["tick"])
    assert len(progress) == 3
    assert len(list(folder.rglob("*.kernel"))) == 3
