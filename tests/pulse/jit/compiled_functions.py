"""Compile all functions before the tests, and store the LLVM code of those that many tests read.

``python -m tests.pulse.jit.compiled_functions`` compiles those that its standard input names. Functions that Python
calls are not shown: their machine code has a wrapper, which their LLVM code here lacks.
"""

import os
import subprocess
import sys

from tests.sources import ROOT

SHOWN = (
    *("pipeline.run_pulse", "pipeline.callback", "pipeline.pump", "device.gate", "team.run_parts"),
    *("gru", "depthwise", "matmul", "copy", "layer_norm", "softmax"),
)
NAME_BYTES = 64
"""Bytes of a name in the pipe from which all processes read the next one."""
PIPE_BYTES = 1 << 16
"""What a pipe holds before a process reads from it."""


def compile_all(jobs: int) -> None:
    """Compile what is missing, in several processes."""
    from streaming.compilation.warming import is_cached, kernel_names, why_not_cached

    missing = [name for name in dict.fromkeys((*SHOWN, *kernel_names())) if not is_cached(name)]
    assert max(map(len, missing), default=0) <= NAME_BYTES
    assert len(missing) * NAME_BYTES <= PIPE_BYTES
    requests, writer = os.pipe()
    os.write(writer, b"".join(name.encode().ljust(NAME_BYTES) for name in missing))
    os.close(writer)
    command = [sys.executable, "-m", "tests.pulse.jit.compiled_functions"]
    processes = [subprocess.Popen(command, stdin=requests, cwd=ROOT) for _ in range(min(jobs, len(missing)))]
    os.close(requests)
    codes = [process.wait() for process in processes]
    assert not any(codes)
    left = [name for name in missing if not is_cached(name)]
    assert not left, f"not in the cache folder: {left}; {why_not_cached()}"


def main() -> None:
    from pulse.jit.codegen.native_code import emit_code
    from pulse.support.collector import collect_rarely
    from streaming.compilation.warming import function_of, kernel_names
    from tests.pulse.jit.assembly import keep_llvm_code

    kernel_names()
    collect_rarely()
    while name := os.read(0, NAME_BYTES).decode().strip():
        function = function_of(name)
        if name in SHOWN:
            entry = function.cache_entry
            entry.write(emit_code(keep_llvm_code(function, entry.symbol), entry.symbol))
        else:
            function.code()


if __name__ == "__main__":
    main()
