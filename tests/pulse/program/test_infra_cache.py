"""The disk cache: where it is, what it is keyed by, a second process, processes at once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pulse
from pulse.program.kernels import cache

SCRIPT = """
import json, sys
from pulse.program.kernels.cache import cache_location
from pulse.program.kernels.pointer import f32, operand
from pulse.program.kernels.registry import kernel
from pulse.program.table import TableBuilder, link
from pulse.program import machine
import numpy as np

@kernel
def script_kernel(row, bases):
    y = f32(row, bases, 0)
    y[0] = y[0] * VALUE

builder = TableBuilder()
builder.add(script_kernel, operand(0, 0))
table = link(builder.finish())
y = np.ones(1, np.float32)
bases = np.array([y.ctypes.data])
machine.run(table.ctypes.data, 1, bases.ctypes.data)
location = cache_location()
print(json.dumps([script_kernel.cached, float(y[0]), str(location.path), location.kind]))
"""


def start(folder, value="2.0", **environment):
    script = Path(folder) / "script.py"
    script.write_text(SCRIPT.replace("VALUE", value))
    root = str(Path(pulse.__file__).parent.parent)
    kept = {k: v for k, v in os.environ.items() if k not in ("PULSE_CACHE", "XDG_CACHE_HOME")}
    return subprocess.Popen(
        [sys.executable, "-B", str(script)],
        env={**kept, "PYTHONPATH": root, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


def answer(process):
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return json.loads(out)


def test_second_process_loads_and_a_changed_kernel_does_not(tmp_path):
    place = str(tmp_path / "cache")
    first, second = (answer(start(tmp_path, PULSE_CACHE=place)) for _ in range(2))
    changed = answer(start(tmp_path, value="3.0", PULSE_CACHE=place))
    assert first == [False, 2.0, place, "environment"]
    assert second == [True, 2.0, place, "environment"]
    assert changed == [False, 3.0, place, "environment"]


def test_processes_that_compile_at_once(tmp_path):
    place = str(tmp_path / "cache")
    processes = [start(tmp_path, PULSE_CACHE=place) for _ in range(2)]
    assert [answer(process)[1] for process in processes] == [2.0, 2.0]
    assert answer(start(tmp_path, PULSE_CACHE=place))[0] is True
    files = [path for path in Path(place).rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".kernel"}


def test_nowhere_to_write_is_a_temporary_folder_that_goes_away(tmp_path):
    blocked = tmp_path / "file"  # a file where a folder is needed cannot be written, not even by root
    blocked.write_text("")
    package = list(Path(pulse.__file__).parent.rglob("*.nb?"))
    cached, value, path, kind = answer(
        start(tmp_path, HOME=str(blocked), LOCALAPPDATA=str(blocked), XDG_CACHE_HOME=str(blocked))
    )
    assert (cached, value, kind) == (False, 2.0, "temporary")
    assert not Path(path).exists()
    assert package == [] == list(Path(pulse.__file__).parent.rglob("*.kernel"))


def test_user_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("PULSE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    cache.cache_location.cache_clear()
    try:
        location = cache.cache_location()
        assert location.kind == "user" and tmp_path in location.path.parents and location.path.is_dir()
    finally:
        cache.cache_location.cache_clear()


@pytest.mark.parametrize("content", [b"", b"\x80\x05", b"not a pickle"])
def test_a_damaged_file_counts_as_none(tmp_path, content):
    place = tmp_path / "cache"
    answer(start(tmp_path, PULSE_CACHE=str(place)))
    for path in place.rglob("*.kernel"):
        path.write_bytes(content)
    assert answer(start(tmp_path, PULSE_CACHE=str(place)))[:2] == [False, 2.0]
    assert answer(start(tmp_path, PULSE_CACHE=str(place)))[:2] == [True, 2.0]


OFFSET = 1


def helper(x):
    return x + OFFSET


def uses_helper(x):
    return helper(x)


def closing_over(value):
    return lambda x: x + value


def test_fingerprint_follows_helpers_globals_closures_and_constants(monkeypatch):
    before = cache.fingerprint(uses_helper)
    assert cache.fingerprint(uses_helper) == before
    monkeypatch.setitem(globals(), "OFFSET", 2)
    assert cache.fingerprint(uses_helper) != before
    closures = [1, 2, np.arange(3), np.arange(3.0), helper, (helper, 1), [(helper, 2)], {"a": [uses_helper]}]
    assert len({cache.fingerprint(closing_over(value)) for value in closures}) == len(closures)
    assert cache.fingerprint(closing_over(1)) == cache.fingerprint(closing_over(1))


def test_sources_hash_covers_what_kernels_are_made_of():
    from pulse.program.kernels import registry

    assert cache._links(registry.__name__) >= {
        "pulse.program.kernels.simd_lowering",
        "pulse.program.kernels.pointer_lowering",
        "pulse.program.kernels.cache",
    }
