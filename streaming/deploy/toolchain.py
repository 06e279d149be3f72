"""The C compiler, linker and archiver for a target: those of the system, or of the wheel ziglang."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from pulse.errors import CompileError
from pulse.jit.levels import Level
from pulse.support.record import record

GNU = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu", "armv7": "arm-linux-gnueabihf"}
"""The prefixes of Debian's compilers for an architecture."""
ZIG = {
    "x86_64": "x86_64-linux-gnu.2.17",
    "aarch64": "aarch64-linux-gnu.2.17",
    "armv7": "arm-linux-gnueabihf.2.17",
    "wasm32": "wasm32-freestanding",
}
"""zig's names of architectures, with the oldest glibc that a shared library supports."""
CPUS = {
    "armv7": "-mcpu=generic+v7a+neon+vfp4",
    "wasm32": "-mcpu=generic+simd128+bulk_memory+bulk_memory_opt+sign_ext+nontrapping_fptoint",
}
"""zig's names of processors above the baseline of their architecture."""
WARNINGS = ("-Wall", "-Wextra", "-pedantic")
RUN_TIMEOUT_S = 600.0
"""A test program that takes longer fails."""
OPTIMISED = ("-O2", "-fPIC", "-fvisibility=hidden")


@record
class Toolchain:
    """The compiler and archiver that make libraries of C for a target.

    name      the name in reports
    compiler  the command of the compiler
    archiver  the command of the archiver
    """

    name: str
    compiler: tuple[str, ...]
    archiver: tuple[str, ...]

    def compile(self, source: Path, target: Path, *options: str) -> None:
        """Compile one file of C99 into an object. Raises CompileError: the compiler fails."""
        arguments = ("-std=c99", *WARNINGS, *OPTIMISED, *options, "-c", str(source), "-o", str(target))
        self._run((*self.compiler, *arguments), source)

    def archive(self, objects: Sequence[Path], target: Path) -> None:
        """Make a static library; the same objects make the same bytes. Raises CompileError: the archiver fails."""
        target.unlink(missing_ok=True)
        self._run((*self.archiver, "rcsD", str(target), *map(str, objects)), target)

    def link_shared(
        self, objects: Sequence[Path], target: Path, needs_math: bool, export: str | None = None
    ) -> None:
        """Make a shared library, which needs only memcpy and similar functions.

        export  the only exported symbol; None: all with default visibility
        Raises  CompileError: the linker fails
        """
        options = (
            "-shared",
            "-nostartfiles",
            f"-Wl,-soname,{target.name}",
            "-Wl,--gc-sections",
            "-Wl,-z,noexecstack",
        )
        extra = ("-lm",) if needs_math else ()
        if export is not None:
            script = objects[0].with_name(f"{export}.map")
            script.write_text(f"{{ global: {export}; local: *; }};\n")
            options = (*options, f"-Wl,--version-script={script}")
        self._run((*self.compiler, *options, "-Wl,-s", *map(str, objects), "-o", str(target), *extra), target)

    def link_module(
        self, objects: Sequence[Path], target: Path, exports: Sequence[str], needs_math: bool
    ) -> None:
        """Make a WebAssembly module, which imports functions of libm at most. Raises CompileError: the linker fails."""
        options = ("-Wl,--no-entry", "-Wl,--gc-sections", "-Wl,--strip-all", "-Wl,--export=__heap_base")
        extra = ("-Wl,--import-symbols",) if needs_math else ()
        symbols = [f"-Wl,--export={name}" for name in exports]
        self._run((*self.compiler, *options, *extra, *symbols, *map(str, objects), "-o", str(target)), target)

    def link_program(self, source: Path, target: Path, *arguments: str) -> None:
        """Make a program of one file and libraries. Raises CompileError: the compiler or the linker fails."""
        self._run((*self.compiler, "-O1", str(source), *arguments, "-o", str(target)), source)

    def _run(self, command: Sequence[str], about: Path) -> None:
        process = subprocess.run(command, capture_output=True, text=True)
        if process.returncode:
            lines = process.stderr.splitlines()
            reason = [line for line in lines if "error" in line.lower()] or lines
            raise CompileError(
                f"{about.name}: {self.name} ended with {process.returncode}: {'; '.join(reason[:3])}"
            )


def find_toolchain(target: Level) -> Toolchain:
    """Return the system's tools for a target, or else zig's. Raises CompileError: there are none."""
    system = GNU.get(target.machine)
    for prefix in [f"{system}-"] * bool(system) + [""] * os.uname().machine.startswith(target.machine):
        for name in ("gcc", "clang", "cc"):
            compiler, archiver = shutil.which(f"{prefix}{name}"), shutil.which(f"{prefix}ar")
            if compiler and archiver:
                return Toolchain(f"{prefix}{name}", (compiler,), (archiver,))
    if find_spec("ziglang") is not None:
        zig = (sys.executable, "-m", "ziglang")
        compiler = (*zig, "cc", "-target", ZIG[target.machine], CPUS.get(target.machine, "-mcpu=baseline"))
        return Toolchain("zig", compiler, (*zig, "ar"))
    package = f"install gcc-{system}, or " if system else ""
    raise CompileError(
        f"{target.name}: there is no C compiler and linker for it; {package}pip install 'pulse-stream[build]'"
    )


def run_test_vector(command: Sequence[str | Path], subject: str) -> str:
    """Run a program that runs a test vector. Returns its result. Raises CompileError: it fails, or does not end."""
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise CompileError(
            f"{subject} fails its test vector: it did not end within {RUN_TIMEOUT_S:g} s"
        ) from None
    if process.returncode not in (0, 3):
        reason = process.stderr.strip() or f"it ended with {process.returncode}"
        raise CompileError(f"{subject} fails its test vector: {reason}")
    return process.stdout.strip()
