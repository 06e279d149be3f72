"""The C code around a library that takes sound in blocks of any size and rate, for plug-ins and browsers."""

from pathlib import Path

from pulse.deploy.sound import SoundPorts
from pulse.deploy.texts import fill
from streaming.deploy.objects import Build
from streaming.deploy.resampler import sound_source


def write_sound(build: Build, ports: SoundPorts) -> list[Path]:
    """Write its header and source to the work folder; the objects that belong to it. Raises CompileError.

    The library's header is already in the folder of the result.
    """
    deployed, compiled, work = build.deployed, build.compiled, build.work
    (work / f"{deployed.name}_blocks.h").write_text(fill("blocks/blocks.h", deployed))
    code = work / f"{deployed.name}_blocks.c"
    code.write_text(sound_source(deployed, ports, compiled.resampler_symbol))
    made_object = code.with_suffix(".o")
    build.toolchain.compile(code, made_object, f"-I{work}", f"-I{build.result}")
    return [made_object, compiled.resampler]
