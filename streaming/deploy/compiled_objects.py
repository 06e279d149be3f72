"""Machine code of a library, compiled by a process for the target: ``python -m streaming.deploy.compiled_objects``."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from pulse.c_library.library_contents import LibraryContents, library_contents
from pulse.c_library.texts import data_symbol
from pulse.errors import CompileError
from pulse.jit.entries import Callback
from pulse.jit.language.foreign import c_signature
from pulse.jit.levels import Level
from pulse.jit.registry import Kernel
from pulse.program.file.program_file import encode_program
from pulse.program.file.stored_program import read_program
from pulse.support.record import record
from streaming.deploy.elf import undefined_symbols
from streaming.deploy.toolchain import Toolchain
from streaming.deploy.wasm import imported_functions
from streaming.native.resample import convert

CONSTANTS = "constants.o"
"""The object of rows, weights and first state."""
RESAMPLE = Callback(
    "resample.convert", convert.function, c_signature(None, "i64", "i64", "i64", "i64", "i64")
)
"""The resampler of live streams, for audio hosts at other rates than the model's. Arguments: the addresses of the
resampler and of the samples, their number, and the same for the outputs."""


@record
class CompiledObjects:
    """The machine code of a library.

    symbols                      kernel -> the name of its function
    c_functions                  the C functions that kernels call
    objects                      the object files
    resampler, resampler_symbol  the resampler, which only audio hosts need
    """

    symbols: dict[str, str]
    c_functions: tuple[str, ...]
    objects: tuple[Path, ...]
    resampler: Path
    resampler_symbol: str


@record
class Build:
    """A library that is being built.

    contents        the program as C: its files as text and numbers
    target          the target that it is compiled for
    toolchain       its compiler and linker
    compiled        the machine code of the kernels
    math_functions  functions of libm that the kernels call
    work            a folder for files that are not kept
    result          the folder to write
    """

    contents: LibraryContents
    target: Level
    toolchain: Toolchain
    compiled: CompiledObjects
    math_functions: tuple[str, ...]
    work: Path
    result: Path

    @property
    def objects(self) -> list[Path]:
        """The object of the C source, which is compiled first, and those of the kernels."""
        return [self.work / f"{self.contents.name}.o", *self.compiled.objects]


def compile_objects(contents: LibraryContents, target: Level, folder: Path) -> CompiledObjects:
    """Compile the kernels of a program and its constants for a target, into a folder.

    Raises CompileError: a kernel cannot be compiled
    """
    with TemporaryDirectory() as scratch:
        program = Path(scratch, "program")
        program.write_bytes(encode_program(contents.program, {}, None))
        process = subprocess.run(
            [
                sys.executable,
                "-m",
                __name__,
                str(program),
                contents.name,
                str(folder),
                str(contents.external_weights),
            ],
            env={**os.environ, "PULSE_LEVEL": target.name},
            capture_output=True,
            text=True,
        )
    if process.returncode:
        reason = process.stderr.strip().splitlines() or [f"the compiler ended with {process.returncode}"]
        raise CompileError(f"{contents.title}: cannot be compiled for {target.name}: {reason[-1]}")
    rows = [line.split("\t") for line in process.stdout.splitlines()]
    symbols = {kernel: symbol for kernel, symbol, _ in rows}
    resampler = symbols.pop(RESAMPLE.name)
    c_functions = sorted({need for _, _, names in rows for need in names.split()})
    objects = sorted({folder / f"{symbol}.o" for symbol in symbols.values()} | {folder / CONSTANTS})
    return CompiledObjects(symbols, tuple(c_functions), tuple(objects), folder / f"{resampler}.o", resampler)


def write_objects(contents: LibraryContents, folder: Path) -> None:
    """Compile for the processor that PULSE_LEVEL names; print a line per function with its symbol and needs."""
    from pulse.jit.constants import constants_object

    applied = contents.applied_rows
    for function in (*contents.kernels, RESAMPLE):
        code = function.code(applied.get(function) if isinstance(function, Kernel) else None)
        (folder / f"{code.symbol}.o").write_bytes(code.object)
        symbols = undefined_symbols(code.object)
        if symbols is None:
            symbols = imported_functions(code.object)
        print(function.name, code.symbol, " ".join(sorted(symbols)), sep="\t")
    constants = {
        data_symbol(contents, "rows"): contents.rows.astype("<i8").tobytes(),
        data_symbol(contents, "initial"): b"".join(piece.data.tobytes() for piece in contents.pieces),
    }
    if not contents.external_weights:
        constants[data_symbol(contents, "weights")] = contents.program.weights.tobytes()
    (folder / CONSTANTS).write_bytes(constants_object(constants))


def main(arguments: Sequence[str]) -> None:
    """Run with arguments: the program file, the library's name, the folder, whether weights are external."""
    program, name, folder, external = arguments
    contents = library_contents(read_program(Path(program)), name, name, None, external == str(True))
    write_objects(contents, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
