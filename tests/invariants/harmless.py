"""A damaged file is refused by an error of pulse, or read."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


PEAK_MIB = 1024
"""What a process may use at most; its limit is twice that."""


def outcomes(*arguments: object) -> Iterator[dict[str, Any]]:
    """What a worker tells of each file; fails with the file's name where the worker dies."""
    command = [sys.executable, "-m", "tests.invariants.mutation_worker", *map(str, arguments)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    last = told[-1] if told else {"begin": "the start"}
    assert done.returncode == 0, f"died in {last}:\n{done.stderr[-5000:]}"
    yield from (line for line in told if "end" in line)


def assert_harmless(*arguments: object) -> Counter[str]:
    """Every file of a worker; how far each went."""
    stages: Counter[str] = Counter()
    for told in outcomes(*arguments):
        assert not told["failure"], f"{told['end']}:\n{told['failure']}"
        assert not told["outside"], f"{told['end']} made it read {told['outside']}"
        assert told["peak_mib"] < PEAK_MIB, f"{told['end']}: {told['peak_mib']} MiB"
        stages[told["stage"]] += 1
    return stages
