"""A library for browsers: a WebAssembly module, the JavaScript that runs it on the audio thread, a page."""

import shutil
from html import escape
from pathlib import Path

from pulse.c_library.library_contents import LibraryContents
from pulse.c_library.sound_ports import SoundPorts, find_sound_ports
from pulse.c_library.texts import fill
from pulse.errors import CompileError
from pulse.support.printable import printable
from streaming.deploy.compiled_objects import Build
from streaming.deploy.sound_blocks import write_sound
from streaming.deploy.toolchain import run_test_vector

MODULE = "module.wasm"
LIBRARY = (
    *("size", "alignment", "ports", "init", "reset", "step", "flush", "valid"),
    *("snapshot_size", "snapshot", "restore"),
)
BLOCK_FUNCTIONS = (
    "size",
    "init",
    "reset",
    "delay",
    "bypass",
    "feed",
    "run",
    "take",
    "output",
    "sound_output",
    "stream",
    "counters",
)
"""The functions that JavaScript calls."""
_MATH = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh exp expm1 fabs floor fmod hypot",
    "log log10 log1p log2 pow sin sinh sqrt tan tanh trunc",
)
IN_BROWSERS = frozenset(" ".join(_MATH).split())
"""Functions of libm that JavaScript has, including their float32 variants."""
SCRIPTS = {"worklet.js": "worklet.js", "pulse.d.ts": "pulse.d.ts", "check.mjs": "test/check.mjs"}
"""Template -> file."""


def write_web(build: Build) -> None:
    """Write the module, the JavaScript and, for a model that takes sound, a page with a microphone.

    Raises CompileError: it cannot be linked, or needs a function that browsers do not have.
    """
    contents, result = build.contents, build.result
    if missing := [
        name
        for name in build.math_functions
        if name not in IN_BROWSERS and name.removesuffix("f") not in IN_BROWSERS
    ]:
        raise CompileError(
            f"{contents.title}: needs {', '.join(missing)}, which browsers do not have; remove the node that "
            f"computes it (pulse dump --stage program shows which)"
        )
    exports = [
        f"{contents.name}_{name}" for name in (*LIBRARY, *(["weights"] if contents.external_weights else []))
    ]
    objects = build.objects
    ports = find_sound_ports(contents)
    if isinstance(ports, SoundPorts):
        objects += write_sound(build, ports)
        exports += [f"{contents.name}_blocks_{name}" for name in BLOCK_FUNCTIONS]
    build.toolchain.link_module(objects, result / MODULE, exports, bool(build.math_functions))
    for name, file_name in SCRIPTS.items():
        (result / file_name).write_text(fill(f"web/{name}", contents))
    if isinstance(ports, SoundPorts):
        page = fill("web/index.html", contents, {"HTML_TITLE": escape(printable(contents.title))})
        (result / "index.html").write_text(page)


def run_in_node(contents: LibraryContents, result: Path) -> str:
    """Run the test vector in Node.js. Returns its result, or why it was not run. Raises CompileError: it fails."""
    node = shutil.which("node")
    if node is None:
        return "not run: Node.js is missing"
    return run_test_vector([node, result / "test" / "check.mjs"], f"{contents.name}: the module")
