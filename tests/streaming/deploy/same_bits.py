"""``python -m tests.streaming.deploy.same_bits FOLDER``: a library gives the bits of Python on PULSE_LEVEL."""

import sys
from pathlib import Path

from pulse.program.whole import stream_whole
from pulse.proof.signals import feeds_of
from tests.streaming.deploy.building import HERE, built, compiled
from tests.streaming.deploy.c_library import CLibrary
from tests.streaming.models import filtered

if __name__ == "__main__":
    program = compiled(filtered(), 16)
    folder = Path(sys.argv[1])
    built(program, folder, HERE)
    for length in (5, 64, 100):
        feeds = feeds_of(program.model, length)
        got = CLibrary(folder, "small").stream().whole(feeds)
        for name, array in stream_whole(program, feeds, 0.0).items():
            assert got[name].tobytes() == array.tobytes(), f"{name} in {length} frames"
