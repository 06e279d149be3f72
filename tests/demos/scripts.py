"""Helpers that run the demos as scripts."""

import subprocess
import sys

from tests.sources import ROOT


def run_demo(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "demos" / name), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
