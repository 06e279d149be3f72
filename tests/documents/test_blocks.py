"""The Python blocks of the documents run, from top to bottom of each page."""

import ast
import asyncio
import inspect
import subprocess
import sys
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from streaming.executor import Microphone
from streaming.live.file_host import FileHost
from tests.documents.block_setups import ELSEWHERE, SETUPS
from tests.documents.pages import pages
from tests.sources import ROOT


@pytest.fixture(autouse=True)
def file_as_device(monkeypatch: pytest.MonkeyPatch, working_folder: None) -> None:
    """Use a file in place of audio devices."""

    def host() -> FileHost:
        return FileHost(Path("heard.wav"), Path("played.wav"), pace=10)

    monkeypatch.setattr("streaming.live.live.PortAudio", host)
    monkeypatch.setattr("streaming.executor.microphone.PortAudio", host)
    monkeypatch.setattr("streaming.executor.Microphone", lambda device: Microphone())  # whatever its name


def compile_block(code: str, name: str) -> CodeType:
    """Compile a block, which may use await and return as in a notebook."""
    return compile(code, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def run_block(code: CodeType, names: dict[str, Any]) -> None:
    """Run a block with the names of its page."""
    result = eval(code, names)
    if inspect.iscoroutine(result):
        asyncio.run(result)


def is_api(value: object) -> bool:
    """Whether a reader has to import it: neither a model nor data."""
    return inspect.ismodule(value) or inspect.isclass(value) or inspect.isroutine(value)


@pytest.mark.filterwarnings("ignore:.*time .T. is axis:pulse.PulseWarning")
@pytest.mark.parametrize("name", SETUPS)
def test_code_blocks_run(name: str) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for place, (block, setup) in enumerate(zip(pages()[name].blocks("python"), SETUPS[name], strict=True)):
        values = setup()
        assert not [key for key, value in values.items() if is_api(value)], "the block imports it"
        names.update(values)
        if "__main__" in block:
            Path("script.py").write_text(block)
            subprocess.run([sys.executable, "script.py"], check=True, timeout=300)
        else:
            run_block(compile_block(block, f"{name}, block {place + 1}"), names)


def test_every_page_with_blocks_is_run() -> None:
    assert {name for name, page in pages().items() if page.blocks("python")} == {*SETUPS, *ELSEWHERE}
    assert all((ROOT / test).exists() for test in ELSEWHERE.values())
