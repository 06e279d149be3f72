# pyright: basic, reportArgumentType=false
"""Two devices with separate clocks, compiled, so that hours of a tone take seconds."""

from math import pi

import numpy as np
from numba import njit

from pulse.jit.codegen.registration import register_with_numba
from pulse.jit.language.address import doubles_at, floats_at
from pulse.jit.language.foreign import c_function_at, c_signature, call_address
from streaming.native.control_block import control_at

TONE_HZ = 440.0
LEVEL, BEND, SILENT, DELAY = range(4)
"""Columns of a window: frames in the output ring at its end, largest second difference, silent frames, delay in s."""
WINDOW = 4


_call = c_function_at(c_signature("i32", *["i64"] * 6))
"""Calls the callback of a device at an address, with addresses as ints."""
register_with_numba()  # of what ``drive`` calls


@njit(nogil=True)
def drive(pipeline, callback, source, target, block, rate, rate_out, windows, window_s, measured):
    """Run a tone through a pipeline and measure each window of the output; the first four are addresses."""
    control, samples_in, played, measured = (
        control_at(pipeline),
        floats_at(source),
        floats_at(target),
        doubles_at(measured),
    )
    came = went = window = 0
    start = 1e9
    first = second = 0.0
    real = imaginary = bend = 0.0
    silent = 0
    while window < windows:
        in_s, out_s = (came + block) / rate, (went + block) / rate_out + 0.003
        if in_s <= out_s:
            for i in range(block):
                samples_in[i] = np.float32(np.sin(2 * pi * TONE_HZ * ((came + i) / rate)))
            came += block
            control.virtual_now_ns = np.int64(start + in_s * 1e9)
            _call(callback, source, 0, block, 0, 0, pipeline)
            call_address(control.pump, pipeline)
            continue
        control.virtual_now_ns = np.int64(start + out_s * 1e9)
        _call(callback, 0, target, block, 0, 0, pipeline)
        for i in range(block):
            value = np.float64(played[i])
            turn = 2 * pi * TONE_HZ * ((went + i) / rate_out + 0.003)
            real += value * np.sin(turn)
            imaginary += value * np.cos(turn)
            bend = max(bend, abs(value - 2 * first + second))
            second, first = first, value
        went += block
        if out_s >= (window + 1) * window_s:
            measured[WINDOW * window + LEVEL] = control.out_written - control.out_read
            measured[WINDOW * window + BEND] = bend
            measured[WINDOW * window + SILENT] = control.frames_silent - silent
            measured[WINDOW * window + DELAY] = -np.arctan2(imaginary, real) / (2 * pi * TONE_HZ)
            real = imaginary = bend = 0.0
            silent = control.frames_silent
            window += 1
