"""A library for browsers: a module of WebAssembly, the JavaScript that runs it on the audio thread, a page."""

from html import escape
from pathlib import Path

from pulse.deploy.deployed import Deployed
from pulse.deploy.sound import sound_ports, takes_sound
from pulse.deploy.texts import fill
from pulse.errors import CompileError
from pulse.printable import printable
from streaming.deploy.objects import Compiled
from streaming.deploy.sound import write_sound
from streaming.deploy.toolchain import Toolchain

MODULE = "module.wasm"
LIBRARY = (
    *("size", "alignment", "ports", "init", "reset", "step", "flush", "valid"),
    *("snapshot_size", "snapshot", "restore"),
)
BLOCKS = ("size", "init", "reset", "delay", "bypass", "feed", "run", "take", "output", "sound_output", "stream", "counters")
"""What JavaScript calls."""
IN_BROWSERS = frozenset(
    "acos acosh asin asinh atan atan2 atanh cbrt cos cosh exp expm1 fmod hypot log log10 log1p log2 pow sin sinh tan tanh".split()
)
"""Functions of libm that JavaScript has; each of float32 too."""
SCRIPTS = ("worklet.js", "pulse.d.ts")


def write_web(
    made: Deployed,
    toolchain: Toolchain,
    compiled: Compiled,
    shell: Path,
    needs: tuple[str, ...],
    work: Path,
    result: Path,
) -> None:
    """Write the module, the JavaScript and, for a model that takes sound, a page with a microphone.

    shell   the object of the C source
    needs   functions of libm that the kernels call
    Raises  CompileError: it cannot be linked, or needs a function that browsers do not have
    """
    if missing := [name for name in needs if name not in IN_BROWSERS and name.removesuffix("f") not in IN_BROWSERS]:
        raise CompileError(
            f"{made.title}: needs {', '.join(missing)}, which browsers do not have; "
            "leave out the node that computes it (pulse dump --stage program shows which)"
        )
    exports = [f"{made.name}_{name}" for name in LIBRARY]
    objects = [shell, *compiled.objects]
    if takes_sound(made):
        objects += write_sound(made, sound_ports(made), toolchain, compiled, work, result)
        exports += [f"{made.name}_blocks_{name}" for name in BLOCKS]
    toolchain.link_module(objects, result / MODULE, exports, bool(needs))
    for name in SCRIPTS:
        (result / name).write_text(fill(f"web/{name}", made))
    if takes_sound(made):
        page = fill("web/index.html", made, {"HTML_TITLE": escape(printable(made.title))})
        (result / "index.html").write_text(page)
