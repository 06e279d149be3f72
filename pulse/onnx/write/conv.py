"""Convolutions and pools."""

from typing import Any

import numpy as np

from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.conv import Conv, ConvTranspose, Pads
from pulse.ops.pool import MaxPlace, Pool


def pads_of(pads: Pads) -> list[int]:
    """All that is before, then all that is behind."""
    return [int(pair[side]) for side in (0, 1) for pair in pads]


@writes(Conv)
def write_conv(w: NodeWriter, op: Conv) -> str:
    """The operator itself."""
    return w.emit("Conv", w.inputs, **_attributes(w, op))


@writes(ConvTranspose)
def write_conv_transpose(w: NodeWriter, op: ConvTranspose) -> str:
    """The operator itself."""
    return w.emit("ConvTranspose", w.inputs, **_attributes(w, op), output_padding=list(op.output_padding))


def _attributes(w: NodeWriter, op: Conv | ConvTranspose) -> dict[str, Any]:
    return {
        "kernel_shape": list(w.sizes(1)[2:]),
        "strides": list(op.strides),
        "dilations": list(op.dilations),
        "pads": pads_of(op.pads),
        "group": op.group,
    }


@writes(Pool)
def write_pool(w: NodeWriter, op: Pool) -> str:
    """The operator where it has what is asked for, else a convolution with ones."""
    (x,) = w.inputs
    window: dict[str, Any] = {
        "kernel_shape": list(op.kernel),
        "strides": list(op.strides),
        "pads": pads_of(op.pads),
    }
    dilated = any(step != 1 for step in op.dilations)
    if op.kind == "max":
        return w.emit("MaxPool", [x], dilations=list(op.dilations), **window)
    if op.kind == "average" and not dilated and not any(extra != 0 for extra in op.extra):
        return w.emit("AveragePool", [x], count_include_pad=int(op.count_include_pad), **window)
    if op.kind == "lp" and not dilated:
        return w.emit("LpPool", [x], p=op.p, **window)
    if op.kind == "lp":
        power = w.number(op.p, w.dtype(), "p")
        powers = w.emit("Pow", [w.emit("Abs", [x], "abs"), power], "powers")
        total = _sums(w, op, powers, "sums")
        return w.emit("Pow", [total, w.number(1 / op.p, w.dtype(), "root")])
    if op.kind == "sum":
        return _sums(w, op, x)
    divisor = op.divisor(np.empty(w.sizes(), np.float32), {})
    total = _sums(w, op, x, "sums")
    return w.emit("Div", [total, w.constant(np.asarray(divisor).astype(w.dtype()), "divisor")])


def _sums(w: NodeWriter, op: Pool, x: str, suffix: str = "") -> str:
    """The sum of every window: each channel convolved with ones."""
    batch, channels, *spatial = w.sizes()
    kernel = np.ones((1, 1, *op.kernel), w.dtype())
    single = (batch, channels) == (1, 1)
    rows = x if single else w.reshape(x, (batch * channels, 1, *spatial), "rows")
    sums = w.emit(
        "Conv",
        [rows, w.constant(kernel, "ones")],
        suffix if single else "row_sums",
        kernel_shape=list(op.kernel),
        strides=list(op.strides),
        dilations=list(op.dilations),
        pads=pads_of(op.pads),
    )
    return sums if single else w.reshape(sums, w.made(), suffix)


@writes(MaxPlace)
def write_max_place(w: NodeWriter, op: MaxPlace) -> str:
    """The second output of the operator."""
    pool = op.pool
    _, places = w.emit_all(
        "MaxPool",
        w.inputs,
        ("largest", "places"),
        kernel_shape=list(pool.kernel),
        strides=list(pool.strides),
        dilations=list(pool.dilations),
        pads=pads_of(pool.pads),
        storage_order=int(op.column_major),
    )
    return places
