"""A damaged file is refused by an error of pulse, or read."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.sources import ROOT

PEAK_MIB = 1024
"""Memory that a process may use; its limit is twice that."""


def outcomes(*arguments: object) -> Iterator[dict[str, Any]]:
    """The outcomes that a worker reports for each file; fails with the file's name where the worker dies."""
    command = [sys.executable, "-m", "tests.invariants.mutation_worker", *map(str, arguments)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in process.stdout.splitlines()]
    last = lines[-1] if lines else {"begin": "the start"}
    assert process.returncode == 0, f"died in {last}:\n{process.stderr[-5000:]}"
    yield from (line for line in lines if "end" in line)


def assert_harmless(*arguments: object) -> Counter[str]:
    """Run all files of a worker; return how far they went. Raises AssertionError: one fails."""
    stages: Counter[str] = Counter()
    for report in outcomes(*arguments):
        assert not report["failure"], f"{report['end']}:\n{report['failure']}"
        assert not report["outside"], f"{report['end']} made it read {report['outside']}"
        assert report["peak_mib"] < PEAK_MIB, f"{report['end']}: {report['peak_mib']} MiB"
        stages[report["stage"]] += 1
    return stages
