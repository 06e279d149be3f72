"""The C compiler for a target, and its errors."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from pulse.errors import CompileError
from pulse.jit.levels import TARGETS
from streaming.deploy.toolchain import find_toolchain


@pytest.mark.parametrize(("system", "compiler"), [("armv7l", "gcc"), ("armv7", "gcc"), ("aarch64", "zig")])
def test_the_compiler_of_the_same_machine_is_used(
    system: str, compiler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux calls the machine armv7l."""
    target = next(level for level in TARGETS.values() if level.machine == "armv7")
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine=system))
    monkeypatch.setattr(shutil, "which", lambda name: f"/{name}" if name in ("gcc", "ar") else None)
    monkeypatch.setattr("streaming.deploy.toolchain.find_spec", lambda name: name)
    assert find_toolchain(target).name == compiler


def test_an_error_names_the_file_the_tool_and_the_reason(tmp_path: Path) -> None:
    target = next(level for level in TARGETS.values() if not level.missing_features)
    source = tmp_path / "wrong.c"
    source.write_text("int main(void) { return missing; }\n")
    toolchain = find_toolchain(target)
    with pytest.raises(CompileError, match=rf"wrong.c: {toolchain.name} ended with 1: .*missing"):
        toolchain.compile(source, tmp_path / "wrong.o")
