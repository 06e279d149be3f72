# pyright: basic, reportArgumentType=false
"""Two devices with clocks of their own, compiled, so that hours of a tone pass in seconds."""

from math import pi

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.extending import intrinsic

from pulse.jit.address import call_at, doubles_at, floats_at, words_at
from streaming.native import control_block as cb

TONE_HZ = 440.0
LEVEL, BEND, SILENT, DELAY = range(4)
"""Of each window: the level of the ring of output at the end, the largest second difference, silence, the delay."""
WINDOW = 4


@intrinsic
def _call(typingctx, function, source, target, frames, user):
    """A device's callback, without times and flags."""

    def build(context, builder, sig, args):
        field, number = ir.PointerType(ir.IntType(8)), ir.IntType(64)
        kind = ir.FunctionType(ir.IntType(32), [field, field, number, field, number, field])
        source, target, user = (builder.inttoptr(args[place], field) for place in (1, 2, 4))
        function = builder.inttoptr(args[0], ir.PointerType(kind))
        return builder.call(function, [source, target, args[3], field(None), number(0), user])

    return types.int32(*[types.int64] * 5), build


@njit(nogil=True)
def drive(pipeline, callback, source, target, block, rate, rate_out, windows, window_s, found):
    """A tone through a pipeline; addresses, frames of a block, rates of both clocks, windows to be looked at."""
    control, heard, played, found = (
        words_at(pipeline),
        floats_at(source),
        floats_at(target),
        doubles_at(found),
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
                heard[i] = np.float32(np.sin(2 * pi * TONE_HZ * ((came + i) / rate)))
            came += block
            control[cb.VIRTUAL_NOW_NS] = np.int64(start + in_s * 1e9)
            _call(callback, source, 0, block, pipeline)
            call_at(control[cb.PUMP], pipeline)
            continue
        control[cb.VIRTUAL_NOW_NS] = np.int64(start + out_s * 1e9)
        _call(callback, 0, target, block, pipeline)
        for i in range(block):
            value = np.float64(played[i])
            turn = 2 * pi * TONE_HZ * ((went + i) / rate_out + 0.003)
            real += value * np.sin(turn)
            imaginary += value * np.cos(turn)
            bend = max(bend, abs(value - 2 * first + second))
            second, first = first, value
        went += block
        if out_s >= (window + 1) * window_s:
            found[WINDOW * window + LEVEL] = control[cb.OUT_WRITTEN] - control[cb.OUT_READ]
            found[WINDOW * window + BEND] = bend
            found[WINDOW * window + SILENT] = control[cb.FRAMES_SILENT] - silent
            found[WINDOW * window + DELAY] = -np.arctan2(imaginary, real) / (2 * pi * TONE_HZ)
            real = imaginary = bend = 0.0
            silent = control[cb.FRAMES_SILENT]
            window += 1
