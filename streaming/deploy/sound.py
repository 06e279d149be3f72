"""The C code around a library that takes sound in blocks of any size and rate, for plug-ins and browsers."""

from pathlib import Path

from pulse.deploy.deployed import Deployed
from pulse.deploy.sound import SoundPorts
from pulse.deploy.texts import fill
from streaming.deploy.objects import Compiled
from streaming.deploy.resampler import sound_source
from streaming.deploy.toolchain import Toolchain


def write_sound(
    deployed: Deployed, ports: SoundPorts, toolchain: Toolchain, compiled: Compiled, work: Path, result: Path
) -> list[Path]:
    """Write its header and source to ``work``; the objects that belong to it. ``result`` has the library's header.

    Raises CompileError.
    """
    (work / f"{deployed.name}_blocks.h").write_text(fill("blocks/blocks.h", deployed))
    code = work / f"{deployed.name}_blocks.c"
    code.write_text(sound_source(deployed, ports, compiled.resampler_symbol))
    made_object = code.with_suffix(".o")
    toolchain.compile(code, made_object, f"-I{work}", f"-I{result}")
    return [made_object, compiled.resampler]
