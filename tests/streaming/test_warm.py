"""Kernels compiled ahead: by processes, once, into the folder that the others look in."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pulse.errors import CompileError
from pulse.program import machine
from pulse.program.kernels import cache
from pulse.program.kernels.registry import KERNELS
from streaming import warming
from streaming.cli import app

QUICK = ("tick", "move", "machine.run", "machine.read_ticks")
"""What is compiled in a moment."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder for compiled kernels; the one of before is found again afterwards."""
    monkeypatch.setenv("PULSE_CACHE", str(tmp_path / "kernels"))
    cache.cache_location.cache_clear()
    yield tmp_path / "kernels"
    monkeypatch.undo()
    cache.cache_location.cache_clear()


def only(*names):
    return [part for name in names for part in ("--only", name)]


def command(*arguments, **environment):
    code = "from streaming.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


def test_once_and_then_there(folder):
    """Two processes compile; the second run finds all and starts none; the bar counts up to the end."""
    seen = []
    first = warming.warm(QUICK, jobs=2, progress=lambda done, total: seen.append((done, total)))
    assert (first.folder, set(first.compiled), first.present, first.jobs) == (folder, set(QUICK), (), 2)
    assert seen == [(done, len(QUICK)) for done in range(1, len(QUICK) + 1)]
    assert list(first.compiled.values()) == sorted(first.compiled.values(), reverse=True)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) == len(QUICK) and {path.suffix for path in files} == {".kernel"}
    started = time.process_time()
    second = warming.warm(QUICK)
    assert time.process_time() - started < 2
    assert (second.compiled, second.present, second.jobs) == ({}, QUICK, 0)
    text = CliRunner().invoke(app, ["warm", *only(*QUICK)]).stdout
    assert str(folder) in text and "there before  4" in text
    found = json.loads(CliRunner().invoke(app, ["warm", "--json", *only(*QUICK)]).stdout)
    assert found["folder"] == str(folder) and found["present"] == list(QUICK) and found["compiled_s"] == {}
    for path in folder.rglob("move-*"):
        path.unlink()
    found = json.loads(CliRunner().invoke(app, ["warm", "--json", *only(*QUICK)]).stdout)
    assert list(found["compiled_s"]) == ["move"] and found["jobs"] == 1 and found["seconds"] > 0


def test_another_process_finds_what_was_compiled(folder):
    """The same folder, file and key, whoever made it."""
    code = (
        "from pulse.program.kernels import families\n"
        "from pulse.program.kernels.registry import KERNELS\n"
        "kernel = KERNELS['tick']; kernel.compiled; print(kernel.cached)"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert told == [["False"], ["True"]]
    assert warming.warm(["tick"]).present == ("tick",)


def test_all_is_every_kernel_and_every_entry_of_the_machine():
    from pulse.program.kernels.entries import ENTRIES
    from pulse.program.kernels.registry import KERNELS

    assert set(warming.names()) == {*KERNELS, *ENTRIES}


def test_what_a_live_run_and_an_executor_need_is_known_without_them():
    """All but what runs a pulse of the numpy backend, which compiles nothing beforehand."""
    code = (
        "from streaming import warming; "
        "needed = {name for name in warming.names() if name.split('.')[0] in ('line', 'device')}; "
        "print(needed ^ set(warming.LIVE)); "
        "from streaming.executor.native_engine import ENTRIES; "
        "print({one.name for one in ENTRIES} ^ set(warming.EXECUTOR))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert told.stdout == "{'line.next_pulse'}\nset()\n"


def test_a_name_that_is_not_there():
    with pytest.raises(CompileError, match=r"named chian; there are .*chain"):
        warming.warm(["chian"])


def blocked(tmp_path):
    """An environment whose cache folder cannot be made, not even by root: a file is in its place."""
    file = tmp_path / "file"
    file.write_text("")
    return {"PULSE_CACHE": str(file / "kernels")}


def test_nowhere_to_keep_is_an_error_of_warm(tmp_path):
    result = command("warm", "--only", "tick", **blocked(tmp_path))
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith(f"error: {tmp_path / 'file' / 'kernels'}: cannot be written")
    assert "set PULSE_CACHE" in result.stderr


def test_other_commands_say_once_where_nothing_is_kept(tmp_path, monkeypatch, capsys):
    """And go on in a temporary folder."""
    from streaming.cli.warm import tell_where_nothing_is_kept

    for name, value in blocked(tmp_path).items():
        monkeypatch.setenv(name, value)
    cache.cache_location.cache_clear()
    try:
        tell_where_nothing_is_kept()
        location = cache.cache_location()
        assert location.kind == "temporary" and location.path.is_dir()
        note = capsys.readouterr().err
        assert note.startswith(f"note: {tmp_path / 'file' / 'kernels'} cannot be written")
        assert str(location.path) in note and note.count("\n") == 1
    finally:
        monkeypatch.undo()
        cache.cache_location.cache_clear()
    tell_where_nothing_is_kept()
    assert capsys.readouterr().err == ""


SCRIPT = """
import sys; sys.path.insert(0, {root!r})
from pulse.program.kernels.registry import KERNELS, kernel
from streaming import warming

@kernel
def mine(row, bases):
    pass

warming._processors = lambda: 2
begun, begin = [], warming._begin
def _begin():
    begun.append(begin())
    return begun[-1]
warming._begin = _begin
warming.side_by_side("machine.read_ticks")(["tick", "move", "mine"])
print(len(begun), [KERNELS[name].kept for name in ("tick", "move", "mine")])
"""


@pytest.mark.parametrize("optimised", [(), pytest.param(("-O",), marks=pytest.mark.slow)])
def test_a_script_is_not_run_again_by_what_compiles_for_it(folder, tmp_path, optimised):
    """No guard of ``__main__`` is needed; a kernel that the script declares is compiled where it is known."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(root=str(Path(__file__).parents[2])))
    told = subprocess.run(
        [sys.executable, *optimised, script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (told.stdout, told.stderr) == ("2 [True, True, True]\n", "")


@pytest.mark.parametrize("arguments", [("run",), ("bench", "--steps", "5"), ("check", "--weights", "bf16")])
def test_commands_compile_side_by_side(tmp_path, monkeypatch, arguments):
    """All that they need is asked for before it is compiled."""
    asked = []
    monkeypatch.setattr(warming, "side_by_side", lambda *entries: asked.extend)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert {"product", "tick"} <= set(asked)
    assert ("product_bf16" in asked) == ("bf16" in arguments)


def test_a_process_that_ends_by_itself(folder, monkeypatch):
    begin = warming._begin

    def killed():
        process = begin()
        process.kill()
        return process

    monkeypatch.setattr(warming, "_begin", killed)
    with pytest.raises(CompileError, match=r"the process that compiled (tick|move) ended by itself"):
        warming.warm(["tick", "move"], jobs=2)


@pytest.mark.parametrize("alone", ["one processor", "no interpreter", ""])
def test_side_by_side_shows_how_far_it_is(folder, monkeypatch, alone):
    """In this process where others cannot help; what is there needs no bar."""
    seen, begun, begin = [], [], warming._begin

    @contextmanager
    def shown(title):
        yield lambda done, total: seen.append((done, total))

    monkeypatch.setattr(warming, "progress", shown)
    monkeypatch.setattr(warming, "_begin", lambda: begun.append(begin()) or begun[-1])
    monkeypatch.setattr(warming, "_processors", lambda: 1 if alone == "one processor" else 2)
    monkeypatch.setattr(sys, "frozen", alone == "no interpreter", raising=False)
    for name in ("tick", "move", "fill"):
        monkeypatch.setattr(KERNELS[name], "_compiled", None)
    monkeypatch.setattr(machine.RUN, "_call", None)
    warming.side_by_side()(["tick", "move", "fill"])
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert len(begun) == (0 if alone else 2)
    warming.side_by_side()(["tick", "move", "fill"])
    assert len(seen) == 4
    assert len(list(folder.rglob("*.kernel"))) == 4
