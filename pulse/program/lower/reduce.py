"""Reductions."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from pulse.errors import CompileError
from pulse.facts import F64, dtype_name
from pulse.graph import OutletId
from pulse.ops.reduce import ArgReduce, Reduce
from pulse.program.kernels import reduce as kernels
from pulse.program.kernels.pool import PoolRow
from pulse.program.kernels.reduce import MAX, MIN, PROD, SQUARES, SUM
from pulse.program.lower.elementwise import SQUARE_REDUCTIONS, Chain, emit_chain, store_chain, store_temporary
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode

SQUARE_SUMS = ("l2", "sum_square")
"""The sums of squares."""
LAST_FUNCTIONS: dict[str, str] = {"l2": "sqrt", "log_sum": "log", "log_sum_exp": "log"}
"""The function of the result."""
REDUCTION_CODES = {"max": MAX, "min": MIN, "prod": PROD}
"""The kind of a row; sums of squares are ``SQUARES``, all others ``SUM``."""
INTEGER_REDUCTIONS = ("sum", "mean", "max", "min", "l1", "l2", "sum_square")
"""The reductions of integers whose results rarely exceed what f64 holds exactly."""
ELEMENTWISE = {SUM: "add", MAX: "max", MIN: "min", PROD: "mul"}
"""The elementwise function that reduces two tensors."""
MAX_UNROLLED_ROW = 4
"""The longest rows whose elements are the operands of elementwise functions."""


@lowers(Reduce)
def lower_reduce(lowering: Lowering, node: PulsedNode, op: Reduce) -> list[TensorView]:
    """Emit a function before, the sum, maximum, minimum or product, and a function after."""
    outlet = OutletId(node.id)
    source, squares = node.inputs[0], op.kind in SQUARE_SUMS
    if lowering.pending_functions(source) and op.kind in SQUARE_REDUCTIONS:
        lowering.include_pending(source)
        source, squares = lowering.graph.node(source).inputs[0], True
    x = lowering.value(source)
    has_own_kernel = x.dtype == np.float32
    if not has_own_kernel:
        if x.dtype.kind != "f" and op.kind not in INTEGER_REDUCTIONS:
            raise lowering.no_kernel(f"this reduction of {dtype_name(x.dtype)}")
        x = x if x.dtype == np.float64 else emit_chain(lowering, x, dtype=F64)
    largest = None
    if op.kind == "log_sum_exp":
        largest = _reduce(lowering, x, op.axes, MAX, None)
        chain = Chain()
        safe = chain.apply("where_finite", (chain.load(_reshape(largest, op.axes, keepdims=True)),))
        chain.apply("exp", (chain.apply("sub", (chain.load(x), safe)),))
        x = store_temporary(lowering, chain, x)
    elif op.kind == "l1":
        x = emit_chain(lowering, x, ("abs", 0.0))
    count = int(np.prod([x.shape[axis] for axis in op.axes], dtype=np.int64))
    scale = 1 / count if op.kind == "mean" and count else 1.0
    plain = op.kind not in LAST_FUNCTIONS and has_own_kernel
    code = SQUARES if squares else REDUCTION_CODES.get(op.kind, SUM)
    y = _reduce(lowering, x, op.axes, code, (outlet, op.keepdims) if plain else None, scale)
    if not plain:
        chain = Chain()
        result = chain.load(y)
        if op.kind in LAST_FUNCTIONS:
            result = chain.apply(LAST_FUNCTIONS[op.kind], (result,))
        if largest is not None:
            chain.apply("add", (result, chain.apply("where_finite", (chain.load(largest),))))
        y = store_temporary(lowering, chain, y, lowering.fact(outlet).dtype)
    return [y if plain else _reshape(y, op.axes, op.keepdims)]


def _reshape(y: TensorView, axes: tuple[int, ...], keepdims: bool) -> TensorView:
    """Drop the reduced axes, or keep them with size 1."""
    if not keepdims:
        return y
    shape, strides = list(y.shape), list(y.strides)
    for axis in sorted(axes):
        shape.insert(axis, 1)
        strides.insert(axis, 0)
    return y.view(shape, strides)


def _reduce(
    lowering: Lowering,
    x: TensorView,
    axes: tuple[int, ...],
    code: int,
    wire: tuple[OutletId, bool] | None,
    scale: float = 1.0,
) -> TensorView:
    """Reduce some axes, as rows of one long axis or as runs of a kept one; write to the wire, if given."""
    kept_axes = [axis for axis in range(len(x.shape)) if axis not in axes]
    result, y = _allocate_result(lowering, x, axes, wire)
    contiguous_axes = [
        axis
        for axis in kept_axes
        if x.strides[axis] == 1 and y.strides[kept_axes.index(axis)] == 1 and x.shape[axis] > 1
    ]
    if contiguous_axes and x.dtype == np.float32:
        run = contiguous_axes[0]
        rows = [axis for axis in kept_axes if axis != run]
        lowering.emit(
            PoolRow(
                x=x,
                y=y,
                M=int(np.prod([x.shape[a] for a in rows], dtype=np.int64)),
                rows_x=lowering.add_table(x.offsets(rows)),
                rows_y=lowering.add_table(y.offsets([kept_axes.index(a) for a in rows])),
                T=int(np.prod([x.shape[a] for a in axes], dtype=np.int64)),
                taps=lowering.add_table(x.offsets(axes)),
                C=x.shape[run],
                kind=code,
                scale=scale,
            )
        )
        return result
    if code == SQUARES:
        x, code = emit_chain(lowering, x, ("square", 0.0)), SUM
    source, step, count = _one_axis(lowering, x, axes)
    if 1 < count <= MAX_UNROLLED_ROW:
        steps = [source.strides[axis] for axis in kept_axes]
        _combine(lowering, [source.view(y.shape, steps, k * step) for k in range(count)], code, scale, y)
        return result
    row_class = kernels.ReduceRow if x.dtype == np.float32 else kernels.Reduce64Row
    lowering.emit(
        row_class(
            x=source,
            y=y,
            M=y.size,
            rows_x=lowering.add_table(source.offsets(kept_axes)),
            rows_y=lowering.add_table(y.offsets(range(len(kept_axes)))),
            R=count,
            stride=step,
            kind=code,
            scale=scale,
        )
    )
    return result


def _allocate_result(
    lowering: Lowering, x: TensorView, axes: tuple[int, ...], wire: tuple[OutletId, bool] | None
) -> tuple[TensorView, TensorView]:
    """Allocate the result of a reduction, in a wire if given; return it, and without the reduced axes."""
    kept_axes = [axis for axis in range(len(x.shape)) if axis not in axes]
    shape = [x.shape[axis] for axis in kept_axes]
    order = [kept_axes.index(axis) for axis in x.order if axis in kept_axes]
    if wire is None:
        y = lowering.allocate_temporary(shape, x.dtype, order)
        return y, y
    outlet, keepdims = wire
    if not keepdims:
        y = lowering.allocate_wire(outlet, order)
        return y, y
    result = lowering.allocate_wire(outlet, [*(axis for axis in x.order if axis in kept_axes), *axes])
    return result, result.view(shape, [result.strides[axis] for axis in kept_axes])


def _combine(lowering: Lowering, parts: Sequence[TensorView], code: int, scale: float, y: TensorView) -> None:
    """Emit a reduction of a few tensors as a chain, whose vectors hold elements of many rows."""
    chain = Chain()
    total, *others = [chain.load(part) for part in parts]
    for other in others:
        total = chain.apply(ELEMENTWISE[code], (total, other))
    if scale != 1.0:
        chain.apply("mulc", (total,), (scale,))
    store_chain(lowering, chain, y)


def _one_axis(lowering: Lowering, x: TensorView, axes: tuple[int, ...]) -> tuple[TensorView, int, int]:
    """Return the tensor, and stride and length of its reduced axes as one; copy it if they cannot be merged."""
    long = [axis for axis in x.order if axis in axes and x.shape[axis] != 1]
    is_one_axis = all(x.strides[a] == x.strides[b] * x.shape[b] for a, b in pairwise(long))
    if not is_one_axis:
        x = lowering.order_axes(
            x, [*(axis for axis in x.order if axis not in axes), *long, *(a for a in axes if a not in long)]
        )
        return _one_axis(lowering, x, axes)
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    return x, x.strides[long[-1]] if long else 1, count


@lowers(ArgReduce)
def lower_arg_reduce(lowering: Lowering, node: PulsedNode, op: ArgReduce) -> list[TensorView]:
    """Emit the index of the largest or smallest entry of each row."""
    x = lowering.value(node.inputs[0])
    row_class = kernels.ArgReduceRow if x.dtype == np.float32 else kernels.ArgReduce64Row
    if x.dtype != np.float32 and x.dtype != np.float64:
        x = emit_chain(lowering, x, dtype=F64)
    y = lowering.allocate_wire(OutletId(node.id))
    kept_axes = [axis for axis in range(len(x.shape)) if axis != op.axis]
    axes = kept_axes if op.keepdims else list(range(len(kept_axes)))
    if y.dtype != np.int64:
        raise CompileError(f"{node.name}: indices must be i64")
    lowering.emit(
        row_class(
            x=x,
            y=y,
            M=y.size,
            rows_x=lowering.add_table(x.offsets(kept_axes)),
            rows_y=lowering.add_table(y.offsets(axes)),
            R=x.shape[op.axis],
            stride=x.strides[op.axis],
            kind=MAX if op.kind == "max" else MIN,
            last=op.select_last,
        )
    )
    return [y]
