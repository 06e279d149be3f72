"""Writes the built-in denoiser as a program, which a wheel carries: ``python -m streaming.builtin.program``.

It is used only if the installed sources are those that it was compiled from.
"""

import json
import sys
from pathlib import Path

from pulse.errors import LoadError
from pulse.jit.notice import warn_once
from pulse.jit.storage.package_library import ROOT, checksum_of_sources
from pulse.program.file.stored_program import StoredProgram, read_program
from streaming.builtin import SAMPLE_RATE_HZ, model_path

PULSE_FRAMES = SAMPLE_RATE_HZ // 100
FOLDER = Path(__file__).parent
PROGRAM, INDEX = "denoise.pulse", "denoise.json"


def build(folder: Path = FOLDER) -> Path:
    """Compile the denoiser in pulses of 10 ms, and write an index of its sources. Returns the program's path.

    The sources are the model and all modules of ``pulse`` that this process has imported.
    """
    from pulse.api import stream

    path = folder / PROGRAM
    (folder / INDEX).unlink(missing_ok=True)
    stream(model_path(), PULSE_FRAMES).save(path)
    modules = (module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "pulse")
    files = (str(model_path()), *(file for file in modules if file is not None))
    sources = sorted(Path(file).relative_to(ROOT).as_posix() for file in files)
    index = {"sources": sources, "sources_checksum": checksum_of_sources(sources)}
    (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n")
    return path


def find_packaged_program(folder: Path = FOLDER) -> StoredProgram | None:
    """Return the denoiser in pulses of 10 ms; None if missing, from other sources, or damaged (with a warning)."""
    try:
        index = json.loads((folder / INDEX).read_bytes())
    except FileNotFoundError:
        return None
    if checksum_of_sources(index["sources"]) != index["sources_checksum"]:
        return None
    try:
        return read_program(folder / PROGRAM)
    except LoadError as error:
        warn_once(f"{error}; the model is compiled instead, so install the package again")
        return None


def main() -> None:
    """Build, and say how large it is."""
    path = build()
    print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
