"""Check that a library is bit-identical to Python with the kernels of PULSE_LEVEL, in streams of several lengths.

``python -m tests.streaming.deploy.same_bits FOLDER [MODEL]``; without a model, a small one.
"""

import os
import sys
from pathlib import Path

from bench.library.c_library import CLibrary
from pulse.errors import InputError
from pulse.program.program import Program
from pulse.program.whole_stream import stream_whole
from pulse.proof.trial_signals import draw_feeds
from streaming.deploy.building import build_model, find_target
from streaming.opening.opened_model import OpenedModel
from streaming.opening.source import load_source
from tests.streaming.deploy.building import build, compile_program
from tests.streaming.models import channel_filter_model

MAX_PULSES, NEAR = 6, 300


def compare(library: CLibrary, program: Program) -> int:
    """Assert that streams of several lengths are equal; return how many lengths both take."""
    streams_compared, pulse = 0, program.pulse
    for min_length in (pulse // 2 + 1, 2 * pulse, MAX_PULSES * pulse + pulse // 3):
        for length in range(min_length, min_length + NEAR):
            feeds = draw_feeds(program.model, length)
            try:
                expected = stream_whole(program, feeds, 0.0)
            except InputError:
                continue
            outputs = library.stream().whole(feeds)
            for name, array in expected.items():
                assert outputs[name].tobytes() == array.tobytes(), f"{name} in {length} frames"
            streams_compared += 1
            break
    return streams_compared


if __name__ == "__main__":
    folder, level = Path(sys.argv[1]), os.environ["PULSE_LEVEL"]
    if len(sys.argv) > 2:
        opened = OpenedModel.of(load_source(Path(sys.argv[2])))
        program = opened.compile()
        library = build_model(opened, program, "small", find_target(level), folder, checks=True)
    else:
        program = compile_program(channel_filter_model(), 16)
        library = build(program, folder, level)
    streams = compare(CLibrary(folder, "small"), program)
    assert streams
    print(f"{streams} streams equal; {library.outcome}")
