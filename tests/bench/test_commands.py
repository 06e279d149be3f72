"""The commands of the bench, one file or one folder each, and the folders that they share."""

import re
import subprocess
import sys

import pytest

from tests.documents.pages import pages
from tests.invariants.imports import imports_of
from tests.sources import ROOT

BENCH = ROOT / "bench"
COMMANDS = {path.stem for path in BENCH.glob("*.py")} - {"__init__"} | {
    path.parent.name for path in BENCH.glob("*/__main__.py")
}
SHARED = ("models", "measurement", "peers", "performance", "report")
"""Folders in order: each imports only from earlier ones."""


def test_each_file_is_a_command() -> None:
    """Other modules are in a folder that several commands share, or in their command's folder."""
    files = {*BENCH.glob("*.py"), *BENCH.glob("*/__main__.py")} - {BENCH / "__init__.py"}
    assert not [path for path in files if '__name__ == "__main__"' not in path.read_text("utf-8")]


def test_the_page_lists_all_commands_and_shared_folders() -> None:
    text = pages()["bench/README.md"].text
    (commands,) = re.findall(r"```\n(__main__ .*?)```", text, re.DOTALL)
    columns = [line.partition("   ")[0] for line in commands.splitlines()]
    assert {name.strip("/") for column in columns for name in column.split()} == COMMANDS
    assert tuple(re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE)) == SHARED


def test_all_folders_have_a_place() -> None:
    assert {path.parent.name for path in BENCH.glob("*/__init__.py")} == {
        name for name in COMMANDS if (BENCH / name).is_dir()
    } | {*SHARED}


def test_shared_folders_import_only_earlier_ones() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for index, folder in enumerate(SHARED)
        for path in (BENCH / folder).rglob("*.py")
        for name in imports_of(path)
        if name.startswith("bench.") and name.split(".")[1] not in SHARED[: index + 1]
    ]
    assert not wrong


def test_an_unknown_model_is_named() -> None:
    pytest.importorskip("tract", reason="needs the extra bench")
    process = subprocess.run([sys.executable, "-m", "bench", "nothing"], capture_output=True, text=True)
    assert process.returncode == 2
    assert "no model is called nothing; choose from denoiser, tcn_1" in process.stderr
