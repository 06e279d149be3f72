"""Builds the machine code that the package carries: ``python -m streaming.libraries [LEVEL …]``.

For each level of processors one shared library with all kernels and entries, in ``pulse/jit/libraries``, from where a
wheel takes them: build them, then the wheel. Each level is compiled by a separate process, and needs a linker of its
architecture: ``ld``, ``x86_64-linux-gnu-ld`` or ``aarch64-linux-gnu-ld``. Without names: all levels that have one.
"""

import ast
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from pulse.errors import CompileError
from pulse.jit.compiled import CompiledFunction
from pulse.jit.levels import LEVELS, Level
from pulse.jit.storage import package_library
from pulse.jit.storage.package_library import LibraryIndex, checksum, checksum_of_sources, file_of, symbol_of
from pulse.support.naming import require_name
from streaming.compilation.warming import function_of, kernel_names
from streaming.files.atomic import complete_folder

OWN_PREFIXES = ("pulse.", "streaming.")
FOLDER, ROOT = Path(package_library.FOLDER), Path(package_library.ROOT)
COMPILER_FOLDER = ROOT / "pulse" / "jit"
LINKER_FLAGS = (
    *("-shared", "-nostdlib", "--gc-sections", "--strip-all", "--hash-style=gnu", "--build-id=none"),
    *("-z", "noexecstack", "-z", "relro", "-z", "now"),
)
"""Functions of libc, libm and the interpreter, of any version, are found in the process."""


def build(levels: Sequence[str], folder: Path = FOLDER, only: Sequence[str] | None = None) -> LibraryIndex:
    """Build the libraries of levels in place of all that are there, one level on each core at a time.

    The old ones stay until the new ones are complete.

    only    functions; all by default
    Raises CompileError: there is no such level, no linker for it, or a function cannot be compiled.
    """
    for name in levels:
        require_name("level", name, LEVELS, CompileError)
    linkers = {name: _require_linker(LEVELS[name]) for name in levels}
    functions = {entry.name: entry.function.__module__ for entry in _functions(only)}
    sources = tuple(sorted(_sources(functions.values())))
    sources_checksum = checksum_of_sources(sources)
    assert sources_checksum is not None
    folder = folder.resolve()
    with complete_folder(folder) as scratch, ThreadPoolExecutor(os.cpu_count()) as threads:
        scratch.mkdir()

        def build_one(name: str) -> str:
            return _build_level(LEVELS[name], linkers[name], scratch, list(functions))

        checksums = dict(zip(levels, threads.map(build_one, levels)))
        index = LibraryIndex(sources, sources_checksum, functions, checksums)
        index.write(scratch)
        if folder.exists():
            folder.rename(scratch.with_name("old"))  # removed with the folder around it
    return index


def write_objects(folder: Path, only: Sequence[str]) -> None:
    """Compile functions for the level that PULSE_LEVEL names, an object file for each."""
    for entry in _functions(only):
        symbol = symbol_of(entry.name)
        (folder / f"{symbol}.o").write_bytes(entry.compile(symbol).object)


def _functions(only: Sequence[str] | None) -> list[CompiledFunction]:
    """Return all of this project, or some; those of plugins are compiled where they are used."""
    functions = [function_of(name) for name in kernel_names() if only is None or name in only]
    return [entry for entry in functions if entry.function.__module__.startswith(OWN_PREFIXES)]


def _sources(modules: Iterable[str]) -> Iterator[str]:
    """Yield the files of modules and of all that they import, and those that compile them; relative to ``ROOT``."""
    ahead = [*map(_file, modules), *COMPILER_FOLDER.rglob("*.py")]
    paths: set[Path] = set()
    while ahead:
        path = ahead.pop()
        if path not in paths and path.is_file():
            paths.add(path)
            ahead += map(_file, _find_imports(path))
    for path in paths:
        yield path.relative_to(ROOT).as_posix()


def _file(module: str) -> Path:
    return ROOT / f"{module.replace('.', '/')}.py"


def _find_imports(path: Path) -> Iterator[str]:
    """Yield the modules and names that a file imports at its top."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _linker(level: Level) -> str | None:
    names = (f"{level.machine}-linux-gnu-ld", *(["ld"] if os.uname().machine == level.machine else []))
    return next((path for name in names if (path := shutil.which(name))), None)


def _require_linker(level: Level) -> str:
    if linker := _linker(level):
        return linker
    raise CompileError(
        f"{level.name}: no linker for {level.machine}; install binutils (binutils-{level.machine}-linux-gnu elsewhere)"
    )


def _build_level(level: Level, linker: str, folder: Path, functions: list[str]) -> str:
    """Build the library of a level; return its checksum."""
    with TemporaryDirectory() as objects:
        code = (
            "from pathlib import Path; from streaming.libraries import write_objects; "
            f"write_objects(Path({objects!r}), {functions!r})"
        )
        process = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PULSE_LEVEL": level.name},
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        if process.returncode:
            raise CompileError(f"{level.name}: {_last_line(process)}")
        library = folder / file_of(level.name)
        inputs = sorted(map(str, Path(objects).iterdir()))
        command = [linker, *LINKER_FLAGS, f"-soname={library.name}", "-o", str(library), *inputs]
        process = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        if process.returncode:
            raise CompileError(f"{level.name}: {linker}: {_last_line(process)}")
    return checksum([library.read_bytes()])


def _last_line(process: "subprocess.CompletedProcess[str]") -> str:
    """Return the last line of what a process that failed has written, or how it ended."""
    return (process.stderr.strip().splitlines() or [f"exit code {process.returncode}"])[-1]


def main() -> None:
    """Build the libraries, and print them."""
    start_s = time.perf_counter()
    index = build(sys.argv[1:] or [level.name for level in LEVELS.values() if _linker(level)])
    for level in index.checksums:
        library = FOLDER / file_of(level)
        print(f"{library.relative_to(ROOT)}  {library.stat().st_size:,} bytes")
    print(f"{len(index.functions)} functions, {time.perf_counter() - start_s:.0f} s")


if __name__ == "__main__":
    main()
