"""All functions compiled before the tests; of those whose LLVM code many tests read, that is stored too.

``python -m tests.pulse.jit.shown_code`` compiles those that its standard input names. Functions that Python calls are
not shown: their machine code has a wrapper, which their LLVM code here lacks.
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


def compile_all(jobs: int) -> None:
    """Compile what is missing, in several processes."""
    from streaming.compilation.warming import is_cached, kernel_names

    missing = [name for name in dict.fromkeys((*SHOWN, *kernel_names())) if not is_cached(name)]
    requests, writer = os.pipe()
    os.write(writer, b"".join(name.encode().ljust(NAME_BYTES) for name in missing))
    os.close(writer)
    command = [sys.executable, "-m", "tests.pulse.jit.shown_code"]
    processes = [subprocess.Popen(command, stdin=requests, cwd=ROOT) for _ in range(min(jobs, len(missing)))]
    os.close(requests)
    codes = [process.wait() for process in processes]
    assert not any(codes)
    assert all(map(is_cached, missing))


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
            entry = function.cache_entry()
            entry.write(emit_code(keep_llvm_code(function, entry.symbol), entry.symbol))
        else:
            function.code()


if __name__ == "__main__":
    main()
