"""Commands that read from a pipe and write to one."""

import subprocess
import sys
from pathlib import Path
from subprocess import Popen
from typing import Any

LIMIT_S = 120


def command(*arguments: Path | str, **how: Any) -> Popen:
    """Start the command as a process with pipes."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from streaming.cli import main; main()",
            "run",
            *arguments,
            "--backend",
            "numpy",
        ],
        bufsize=0,
        **pipes | how,
    )


def pipe(data: bytes | None, *arguments: str, code: int = 0, **how: Any) -> tuple[Any, ...]:
    """Run the command on bytes of standard input; return its output and messages."""
    process = command(*arguments, **how)
    out, errors = process.communicate(data, LIMIT_S)
    assert process.returncode == code, errors
    return out, (errors or b"").decode()
