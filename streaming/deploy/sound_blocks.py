"""The C code around a library that takes sound in blocks of any size and rate, for plug-ins and browsers."""

from pathlib import Path

from pulse.c_library.sound_ports import SoundPorts, blocks_header, blocks_source
from streaming.deploy.compiled_objects import Build
from streaming.native.filters import DEFAULT_QUALITY, QUALITIES

QUALITY = QUALITIES[DEFAULT_QUALITY]
"""Quality of the resampler."""


def write_sound(build: Build, ports: SoundPorts) -> list[Path]:
    """Write the header and the source of the sound blocks to the work folder, compile them, return the objects to link.

    The library's header is already in the folder of the result.

    Raises CompileError: the compiler fails
    """
    contents, compiled, work = build.contents, build.compiled, build.work
    (work / f"{contents.name}_blocks.h").write_text(blocks_header(contents, ports))
    code = work / f"{contents.name}_blocks.c"
    symbol = compiled.resampler_symbol
    code.write_text(
        blocks_source(contents, ports, symbol, QUALITY.half_frames, QUALITY.phases, QUALITY.stop_db)
    )
    made_object = code.with_suffix(".o")
    build.toolchain.compile(code, made_object, f"-I{work}", f"-I{build.result}")
    return [made_object, compiled.resampler]
