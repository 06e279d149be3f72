"""Entries read and written at indices."""

from typing import Any

import numpy as np

from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.code_table import CodeTable
from pulse.ops.gather import Gather
from pulse.ops.lookup import GatherBatches, GatherElements
from pulse.ops.scatter import ScatterElements, ScatterND


@writes(Gather)
def write_gather(w: NodeWriter, op: Gather) -> str:
    """Entries of an axis."""
    return w.emit("Gather", w.inputs, axis=op.axis)


@writes(CodeTable)
def write_code_table(w: NodeWriter, op: CodeTable) -> str:
    """An entry by its place in the table, counted from the first."""
    x, table = w.inputs
    dtype, last = w.dtype(), int(w.sizes(1)[0]) - 1
    place = w.emit("Sub", [x, w.number(op.first, dtype, "first")], "place")
    low, high = w.number(0, dtype, "low"), w.number(last, dtype, "high")
    kept = w.emit("Min", [w.emit("Max", [w.emit("Round", [place], "whole"), low], "floor"), high], "kept")
    return w.emit("Gather", [table, w.cast(kept, np.dtype(np.int64), "index")])


@writes(GatherElements)
def write_gather_elements(w: NodeWriter, op: GatherElements) -> str:
    """An index for each element."""
    return w.emit("GatherElements", w.inputs, axis=op.axis)


@writes(GatherBatches)
def write_gather_batches(w: NodeWriter, op: GatherBatches) -> str:
    """An index for each slice; its operator takes i64."""
    return w.emit("GatherND", w.inputs, batch_dims=op.batch)


@writes(ScatterND)
def write_scatter_nd(w: NodeWriter, op: ScatterND) -> str:
    """Slices replaced, or combined with what is there."""
    how: dict[str, Any] = {} if op.reduction == "none" else {"reduction": op.reduction}
    return w.emit("ScatterND", w.inputs, **how)


@writes(ScatterElements)
def write_scatter_elements(w: NodeWriter, op: ScatterElements) -> str:
    """Elements replaced, or combined with what is there."""
    how: dict[str, Any] = {} if op.reduction == "none" else {"reduction": op.reduction}
    return w.emit("ScatterElements", w.inputs, axis=op.axis, **how)
