"""The functions whose LLVM code many tests read: compiled once, their machine code and their LLVM code are stored.

``python -m tests.pulse.jit.shown_code NAME ...`` compiles some of them. Functions that Python calls are not among
them: their machine code has a wrapper, which their LLVM code here lacks.
"""

import subprocess
import sys

from tests.sources import ROOT

KERNELS = ("gru", "depthwise", "matmul", "copy", "layer_norm", "softmax")
ENTRIES = ("pipeline.run_pulse", "pipeline.callback", "pipeline.pump", "device.gate", "team.run_parts")


def compile_shown(jobs: int) -> None:
    """Compile those that are missing, in several processes."""
    names = (*ENTRIES, *KERNELS)
    command = [sys.executable, "-m", "tests.pulse.jit.shown_code"]
    processes = [subprocess.Popen([*command, *names[first::jobs]], cwd=ROOT) for first in range(jobs)]
    codes = [process.wait() for process in processes]
    assert not any(codes)


def main() -> None:
    from pulse.jit.codegen.native_code import emit_code
    from pulse.support.collector import collect_rarely
    from streaming.compilation.warming import function_of, kernel_names
    from tests.pulse.jit.assembly import keep_llvm_code

    kernel_names()
    collect_rarely()
    for name in sys.argv[1:]:
        function = function_of(name)
        if not function.is_cached:
            entry = function.cache_entry()
            entry.write(emit_code(keep_llvm_code(function, entry.symbol), entry.symbol))


if __name__ == "__main__":
    main()
