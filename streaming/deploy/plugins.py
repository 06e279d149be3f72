"""Plug-ins for audio hosts: LADSPA, with a filter chain for PipeWire, LV2 and CLAP."""

from collections.abc import Callable, Mapping
from pathlib import Path

from pulse.c_library.library_contents import LibraryContents
from pulse.c_library.sound_ports import plugin_names, sound_ports
from pulse.c_library.texts import fill
from pulse.errors import InputError, WriteError
from pulse.interface import MAX_CHANNELS
from pulse.jit.levels import Level
from pulse.support.naming import require_name
from pulse.support.wording import spell
from streaming.deploy.compiled_objects import Build
from streaming.deploy.sound_blocks import write_sound

ENTRIES: Mapping[str, str] = {"ladspa": "ladspa_descriptor", "lv2": "lv2_descriptor", "clap": "clap_entry"}
"""Plug-ins, and the one symbol of each that hosts look for."""


def require_plugins(contents: LibraryContents, target: Level, plugins: tuple[str, ...]) -> None:
    """Raise InputError: no such plug-in for the target; WriteError: the model does not take and output sound."""
    for plugin in plugins:
        require_name("plug-in", plugin, ENTRIES, InputError, spell("plugin"))
    if contents.external_weights:
        raise InputError(
            f"{spell('external_weights', True)}: a plug-in is one file that includes the weights; omit one of these "
            "options"
        )
    if target.machine == "wasm32":
        raise InputError(
            f"{spell('plugin')} is for processors; the target wasm32 has a page and an audio worklet"
        )
    if sound_ports(contents).output is None:
        raise WriteError(
            f"{contents.title}: a plug-in outputs audio, and no output of the model is audio of up to {MAX_CHANNELS} "
            "channels at the rate of its input"
        )


def write_plugins(build: Build, plugins: tuple[str, ...], folder: Path) -> None:
    """Write plug-ins; ``folder`` is where the result will be in the end.

    Raises CompileError: the compiler or linker fails
    """
    contents, work, result = build.contents, build.work, build.result
    ports = sound_ports(contents)
    names = plugin_names(contents, ports)
    for header in ("plugin", "ports"):
        (work / f"{contents.name}_{header}.h").write_text(fill(f"plugins/{header}.h", contents, names))
    (work / "clap.h").write_text(fill("plugins/clap.h", contents))
    objects = [*build.objects, *write_sound(build, ports)]
    for plugin in plugins:
        code = work / f"{plugin}.c"
        code.write_text(fill(f"plugins/{plugin}.c", contents, names))
        object_file = code.with_suffix(".o")
        build.toolchain.compile(code, object_file, f"-I{work}", f"-I{result}")
        target = result / FILES[plugin](contents)
        target.parent.mkdir(parents=True, exist_ok=True)
        build.toolchain.link_shared(
            [object_file, *objects], target, bool(build.math_functions), ENTRIES[plugin]
        )
        if plugin == "lv2":
            (target.parent / "manifest.ttl").write_text(fill("plugins/manifest.ttl", contents, names))
            (target.parent / f"{contents.name}.ttl").write_text(fill("plugins/plugin.ttl", contents, names))
        if plugin == "ladspa":
            path = str((folder / FILES[plugin](contents)).resolve()).replace("\\", "\\\\").replace('"', '\\"')
            chain = fill(
                "plugins/filter-chain.conf",
                contents,
                {**names, "PLUGIN": f'"{path}"', "QUOTED": names["TEXT"]},
            )
            (target.parent / f"{contents.name}.conf").write_text(chain)


FILES: Mapping[str, Callable[[LibraryContents], str]] = {
    "ladspa": lambda contents: f"ladspa/{contents.name}.so",
    "lv2": lambda contents: f"lv2/{contents.name}.lv2/{contents.name}.so",
    "clap": lambda contents: f"clap/{contents.name}.clap",
}
"""Where each is, in the folder of the library."""
