"""Scenarios in separate processes, because a dying server can end the process that plays."""

import os
import subprocess
import sys
from collections.abc import Callable
from shutil import which

import pytest

from tests.live.servers import skip_or_fail
from tests.sources import ROOT

SKIPPED = 77
LIMIT_S = 300
"""All of it may have to be compiled first."""


def in_own_process(scenario: str, module: str = "scenarios") -> subprocess.CompletedProcess[str]:
    """Call a function of a module of ``tests.live``; it has to return, and the process to end well."""
    if which("jackd") is None and which("pulseaudio") is None:
        skip_or_fail("neither jackd nor pulseaudio is here")
    call = scenario if scenario.endswith(")") else f"{scenario}()"
    code = f"from tests.live import own_process, {module}; own_process.run_scenario(lambda: {module}.{call})"
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if process.returncode == SKIPPED:
        skip_or_fail(process.stdout)
    assert process.returncode == 0, (
        f"{scenario}: code {process.returncode}\n{process.stdout}\n{process.stderr}"
    )
    return process


def run_scenario(scenario: Callable[[], None]) -> None:
    """Call a scenario in this process, which ends with ``SKIPPED`` if a server is missing."""
    os.environ["PULSE_REQUIRE_SERVERS"] = "0"
    try:
        scenario()
    except pytest.skip.Exception as reason:
        print(reason)
        raise SystemExit(SKIPPED) from None
