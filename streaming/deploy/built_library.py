"""A library of a program: compiled, linked, tested if this machine can run it, and written to a folder."""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pulse.c_library.library_contents import LibraryContents
from pulse.c_library.readme import readme
from pulse.c_library.sound_ports import find_sound_ports
from pulse.c_library.texts import fill, header, source
from pulse.c_library.vector import TestVector
from pulse.errors import WriteError, file_errors
from pulse.jit.levels import Level
from pulse.support.record import record
from pulse.support.report import Pairs, Report, Section, byte_size
from pulse.support.wording import count_of, spell
from streaming.deploy.compiled_objects import Build, compile_objects
from streaming.deploy.plugins import require_plugins, write_plugins
from streaming.deploy.toolchain import Toolchain, find_toolchain, run_test_vector
from streaming.deploy.web import MODULE, run_in_node, write_web
from streaming.files.atomic import publish, scratch_file

PROVIDED = frozenset(("memcpy", "memmove", "memset"))
ABI_PREFIX = "__"
"""The prefix of a compiler's own helper functions, which come with it."""


@record
class BuiltLibrary(Report):
    """A library that was written.

    contents        its contents
    target          the target that it is compiled for
    toolchain       the toolchain that linked it
    folder          its folder
    sizes           file -> bytes
    math_functions  the functions of libm that it calls
    vector          its test vector
    outcome         the result of the vector here, or why it was not run
    """

    contents: LibraryContents
    target: Level
    toolchain: Toolchain
    folder: Path
    sizes: Mapping[str, int]
    math_functions: tuple[str, ...]
    vector: TestVector
    outcome: str

    def sections(self) -> list[Section]:
        """Return the library's files and the result of its test vector."""
        pairs = [
            ("library", f"{self.contents.title} as {self.contents.name}, for {self.target.name}"),
            (
                "pulse",
                f"{count_of(self.contents.program.pulse, 'frame')}, "
                f"{count_of(len(self.contents.calls), 'instruction')}, "
                f"{count_of(len(self.contents.kernels), 'kernel')}",
            ),
            ("linked by", self.toolchain.name),
            (
                "needs",
                ", ".join(self.math_functions)
                if self.math_functions
                else "only memcpy and similar functions",
            ),
            *self._sound_pairs(),
            *((str(self.folder / name), byte_size(size)) for name, size in self.sizes.items()),
            ("test vector", self.outcome),
        ]
        return [Pairs(pairs)]

    def _sound_pairs(self) -> list[tuple[str, str]]:
        """Return why a module for browsers has no page and does not run on the audio thread, if that is so."""
        ports = find_sound_ports(self.contents)
        return [("sound", f"none. {ports}")] if MODULE in self.sizes and isinstance(ports, str) else []

    def values(self) -> dict[str, Any]:
        return {
            "name": self.contents.name,
            "target": self.target.name,
            "toolchain": self.toolchain.name,
            "folder": self.folder,
            "files": dict(self.sizes),
            "needs": self.math_functions,
            "vector": self.outcome,
        }


def build_library(
    contents: LibraryContents,
    target: Level,
    vector: TestVector,
    folder: Path,
    checks: bool = True,
    plugins: tuple[str, ...] = (),
) -> BuiltLibrary:
    """Build the library of a program in a folder, which is made if it is missing.

    checks   run the test vector, if this machine has the processor
    plugins  the plug-ins to build: ``ladspa``, ``lv2``, ``clap``
    Raises   CompileError: it cannot be compiled or linked, or the test vector fails; WriteError: the
             program cannot become a library, or a plug-in of this kind; InputError: the folder cannot be written to
    """
    if plugins:
        require_plugins(contents, target, plugins)
    toolchain = find_toolchain(target)
    with TemporaryDirectory() as scratch:
        work, result = Path(scratch, "work"), Path(scratch, "result")
        for directory in (work, result, result / "test"):
            directory.mkdir()
        compiled = compile_objects(contents, target, work)
        math_functions = tuple(
            name for name in compiled.c_functions if name not in PROVIDED and not name.startswith(ABI_PREFIX)
        )
        build = Build(contents, target, toolchain, compiled, math_functions, work, result)
        _link(build)
        if target.machine == "wasm32":
            write_web(build)
        if plugins:
            write_plugins(build, plugins, folder)
        _write_texts(build, vector)
        outcome = _run_test_vector(build) if checks else f"not run ({spell('check', False)})"
        files = [path for path in sorted(result.rglob("*")) if path.is_file()]
        sizes = {path.relative_to(result).as_posix(): path.stat().st_size for path in files}
        _move_into_place(files, result, folder)
    return BuiltLibrary(
        contents=contents,
        target=target,
        toolchain=toolchain,
        folder=folder,
        sizes=sizes,
        math_functions=math_functions,
        vector=vector,
        outcome=outcome,
    )


def _link(build: Build) -> None:
    """Write the header, the C source as an object, and both libraries."""
    contents, result = build.contents, build.result
    (result / f"{contents.name}.h").write_text(header(contents))
    code = build.work / f"{contents.name}.c"
    code.write_text(source(contents, build.compiled.symbols))
    build.toolchain.compile(code, code.with_suffix(".o"), f"-I{result}")
    build.toolchain.archive(build.objects, result / f"lib{contents.name}.a")
    if build.target.machine != "wasm32":
        build.toolchain.link_shared(
            build.objects, result / f"lib{contents.name}.so", bool(build.math_functions)
        )


def _write_texts(build: Build, vector: TestVector) -> None:
    contents, result, math_functions = build.contents, build.result, build.math_functions
    texts = {"LIBRARIES": "m" if math_functions else "", "LINK": " -lm" if math_functions else ""}
    (result / f"{contents.name}Config.cmake").write_text(fill("config.cmake", contents, texts))
    (result / f"{contents.name}.pc").write_text(fill("package.pc", contents, texts))
    (result / "README.md").write_text(readme(contents, build.target.name, math_functions, vector))
    if contents.external_weights:
        (result / contents.weights_file).write_bytes(contents.program.weights.tobytes())
    files = f"vector.bin {contents.weights_file}" if contents.external_weights else "vector.bin"
    (result / "test" / f"run_{contents.name}.c").write_text(fill("runner.c", contents, {"ARGUMENTS": files}))
    (result / "test" / "vector.bin").write_bytes(vector.content)


def _run_test_vector(build: Build) -> str:
    """Run the test vector. Returns its result, or why it was not run. Raises CompileError: it fails."""
    contents, result = build.contents, build.result
    if build.target.machine == "wasm32":
        return run_in_node(contents, result)
    if build.target.missing_features:
        return f"not run: this processor lacks {', '.join(build.target.missing_features)}"
    runner = build.work / "runner"
    library = str(result / f"lib{contents.name}.a")
    build.toolchain.link_program(
        result / "test" / f"run_{contents.name}.c", runner, f"-I{result}", library, "-lm"
    )
    files = [
        result / "test" / "vector.bin",
        *([result / contents.weights_file] if contents.external_weights else []),
    ]
    return run_test_vector([runner, *files], f"{contents.name}: the library")


def _move_into_place(paths: Sequence[Path], result: Path, folder: Path) -> None:
    """Copy all files to the folder under temporary names, then rename them: programs may be using older ones."""
    with file_errors(folder, "written", WriteError, "check the folder"), ExitStack() as stack:
        parts: list[tuple[Path, Path]] = []
        for path in paths:
            target = folder / path.relative_to(result)
            target.parent.mkdir(parents=True, exist_ok=True)
            parts.append((stack.enter_context(scratch_file(target)), target))
            shutil.copyfile(path, parts[-1][0])
        for part, target in parts:
            publish(part, target)
