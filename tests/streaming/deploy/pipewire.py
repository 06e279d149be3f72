"""A PipeWire of the tests, with the filter chain of a plug-in."""

import json
import os
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from tests.waiting import wait_until

Environment = dict[str, str]


@contextmanager
def run_pipewire(chain: Path, scratch: Path) -> Generator[Environment]:
    """Run PipeWire and a filter chain while the context is open; yield the environment of its clients.

    Skips the test if PipeWire is missing.
    """
    for command in ("pipewire", "pw-dump"):
        if which(command) is None:
            pytest.skip(f"{command} is missing: on Debian, install pipewire and pipewire-bin")
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(scratch), "XDG_CONFIG_HOME": str(scratch)}
    with ExitStack() as stack:
        for command in (["pipewire"], ["pipewire", "-c", str(chain)]):
            stack.enter_context(run_in_background(command, environment))
            wait_until((scratch / "pipewire-0").exists, "the socket of PipeWire")
        yield environment


@contextmanager
def run_in_background(command: list[str], environment: Environment) -> Generator[None]:
    """Run a program in the background while the context is open."""
    log = Path(environment["XDG_RUNTIME_DIR"], f"log-{len(command)}")
    with (
        log.open("wb") as file,
        subprocess.Popen(command, env=environment, stdout=file, stderr=file) as process,
    ):
        try:
            yield
        finally:
            process.terminate()


def node_infos(environment: Environment) -> list[dict[str, Any]]:
    """The properties and parameters of PipeWire's objects."""
    process = subprocess.run(["pw-dump"], env=environment, capture_output=True, text=True, timeout=60)
    if process.returncode or not process.stdout.strip():
        return []
    infos = [entry.get("info", {}) for entry in json.loads(process.stdout)]
    return [info for info in infos if info.get("props")]


def nodes(environment: Environment) -> set[tuple[str, str]]:
    """The names and classes of PipeWire's nodes."""
    properties = [info["props"] for info in node_infos(environment)]
    return {(str(props.get("node.name")), str(props.get("media.class"))) for props in properties}


def positions(environment: Environment) -> dict[str, list[str]]:
    """The positions of the channels of PipeWire's nodes, by name."""
    formats = {
        str(info["props"].get("node.name")): info.get("params", {}).get("EnumFormat")
        for info in node_infos(environment)
    }
    return {name: choices[0].get("position", []) for name, choices in formats.items() if choices}
