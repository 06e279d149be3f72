"""Pools and reductions."""

from itertools import pairwise

import numpy as np

from pulse.errors import CompileError
from pulse.graph import OutletId
from pulse.ops.pool import Pool
from pulse.ops.reduce import ArgReduce, Reduce
from pulse.program.kernels import reduce as kernels
from pulse.program.kernels.copy import Fill
from pulse.program.kernels.reduce import MAX, MIN, PROD, SUM
from pulse.program.lower.elementwise import Chain, store_chain
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.memory import Value


def chained(cx: Lowering, value: Value, *steps: tuple[str, float]) -> Value:
    """Elementwise functions of one tensor, each with one parameter."""
    chain = Chain()
    register = chain.load(value)
    for name, param in steps:
        register = chain.apply(name, (register,), (param,))
    target = cx.temporary(value.shape, value.dtype, value.order)
    store_chain(cx, chain, target)
    return target


@lowers(Pool)
def lower_pool(cx: Lowering, node: PulsedNode, op: Pool) -> list[Value]:
    """Rows are the output positions; the run is the channels where they are innermost."""
    outlet = OutletId(node.id)
    x = cx.floats(cx.value(node.inputs[0]), "a pool")
    rank = len(op.kernel)
    fill = -np.inf if op.kind == "max" else 0.0
    x = _bordered(cx, x, op, fill)
    if op.kind == "lp":
        x = chained(cx, x, ("abs", 0.0), ("powc", float(op.p)))
    order = list(x.order)
    y = cx.new(outlet, order)
    run_axis = next(
        (axis for axis in (0, 1) if x.strides[axis] == 1 and y.strides[axis] == 1 and x.shape[axis] > 1), None
    )
    outer = [axis for axis in (0, 1) if axis != run_axis]
    rows_in = x.view(
        [*(x.shape[a] for a in outer), *y.shape[2:]],
        [*(x.strides[a] for a in outer), *(s * n for s, n in zip(op.strides, x.strides[2:]))],
    )
    taps = x.view(op.kernel, [d * n for d, n in zip(op.dilations, x.strides[2:])])
    rows = list(range(len(outer) + rank))
    scale = 1 / float(np.prod(op.kernel)) if op.kind == "average" and not op.counts_position else 1.0
    cx.emit(
        kernels.Pool(
            x=x,
            y=y,
            M=int(np.prod(rows_in.shape)),
            rows_x=cx.table(rows_in.offsets(rows)),
            rows_y=cx.table(y.offsets([*outer, *range(2, 2 + rank)])),
            T=int(np.prod(op.kernel)),
            taps=cx.table(taps.offsets(range(rank))),
            C=1 if run_axis is None else x.shape[run_axis],
            kind=MAX if op.kind == "max" else SUM,
            scale=scale,
        )
    )
    return [_finished(cx, op, y, x)]


def _bordered(cx: Lowering, x: Value, op: Pool, fill: float) -> Value:
    """The input with its borders, where axes that do not stream are padded."""
    amounts = [(0, 0), (0, 0), *((int(before), int(after)) for before, after in op.pads)]
    if all(pair == (0, 0) for pair in amounts):
        return x
    order = list(x.order)
    target = cx.temporary([b + n + a for n, (b, a) in zip(x.shape, amounts)], x.dtype, order)
    bits = int(np.array([fill], np.float32).view(np.uint32)[0])
    cx.emit(Fill(dst=target, size=target.dtype.itemsize, count=target.size, bits=bits))
    inner = target
    for axis, (before, _) in enumerate(amounts):
        inner = inner.part(axis, before, before + x.shape[axis])
    cx.copy(x, inner)
    return target


def _finished(cx: Lowering, op: Pool, y: Value, x: Value) -> Value:
    """The divisor that depends on the position, or the root of an Lp pool."""
    if op.kind == "lp":
        chain = Chain()
        chain.apply("powc", (chain.load(y),), (1.0 / op.p,))
        store_chain(cx, chain, y)
    if op.counts_position:
        inside = [n - int(b) - int(a) for n, (b, a) in zip(x.shape[2:], op.pads)]
        divisor = op.divisor(np.ones((1, 1, *inside), np.float32), {})
        chain = Chain()
        chain.apply("div", (chain.load(y), chain.load(cx.constant(np.asarray(divisor, np.float32)))))
        store_chain(cx, chain, y)
    return y


BEFORE: dict[str, tuple[str, float]] = {
    "l1": ("abs", 0.0),
    "l2": ("square", 0.0),
    "sum_square": ("square", 0.0),
    "log_sum_exp": ("exp", 0.0),
}
AFTER: dict[str, str] = {"l2": "sqrt", "log_sum": "log", "log_sum_exp": "log"}
KINDS = {"max": MAX, "min": MIN, "prod": PROD}


@lowers(Reduce)
def lower_reduce(cx: Lowering, node: PulsedNode, op: Reduce) -> list[Value]:
    """A function before, a sum, maximum, minimum or product, and a function after."""
    outlet = OutletId(node.id)
    x = cx.floats(cx.value(node.inputs[0]), "a reduction")
    largest = None
    if op.kind == "log_sum_exp":
        largest = _reduced(cx, x, op.axes, MAX, 1.0, None)
        chain = Chain()
        safe = chain.apply("where_finite", (chain.load(_shaped(largest, op.axes, keepdims=True)),))
        chain.apply("exp", (chain.apply("sub", (chain.load(x), safe)),))
        x = _stored(cx, chain, x)
    elif op.kind in BEFORE:
        x = chained(cx, x, BEFORE[op.kind])
    count = int(np.prod([x.shape[axis] for axis in op.axes], dtype=np.int64))
    scale = 1 / count if op.kind == "mean" and count else 1.0
    plain = op.kind not in AFTER
    y = _reduced(cx, x, op.axes, KINDS.get(op.kind, SUM), scale, (outlet, op.keepdims) if plain else None)
    if not plain:
        chain = Chain()
        result = chain.apply(AFTER[op.kind], (chain.load(y),))
        if largest is not None:
            chain.apply("add", (result, chain.apply("where_finite", (chain.load(largest),))))
        y = _stored(cx, chain, y)
    return [y if plain else _shaped(y, op.axes, op.keepdims)]


def _stored(cx: Lowering, chain: Chain, model: Value) -> Value:
    target = cx.temporary(model.shape, model.dtype, model.order)
    store_chain(cx, chain, target)
    return target


def _shaped(y: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """A tensor without the reduced axes, or with ones in their place."""
    if not keepdims:
        return y
    shape, strides = list(y.shape), list(y.strides)
    for axis in sorted(axes):
        shape.insert(axis, 1)
        strides.insert(axis, 0)
    return y.view(shape, strides)


def _reduced(
    cx: Lowering,
    x: Value,
    axes: tuple[int, ...],
    kind: int,
    scale: float,
    wire: tuple[OutletId, bool] | None,
) -> Value:
    """Reduce some axes, as rows of one long axis or as runs of a kept one; the result as the wire has it, if any."""
    kept = [axis for axis in range(len(x.shape)) if axis not in axes]
    shape = [x.shape[axis] for axis in kept]
    order = [kept.index(axis) for axis in x.order if axis in kept]
    if wire is None:
        result = y = cx.temporary(shape, x.dtype, order)
    else:
        outlet, keepdims = wire
        full = [*(a for a in x.order if a in kept), *axes] if keepdims else order
        result = cx.new(outlet, full)
        y = result.view(shape, [result.strides[a] for a in kept]) if keepdims else result
    inner = [
        axis
        for axis in kept
        if x.strides[axis] == 1 and y.strides[kept.index(axis)] == 1 and x.shape[axis] > 1
    ]
    if inner:
        run = inner[0]
        rows = [axis for axis in kept if axis != run]
        cx.emit(
            kernels.Pool(
                x=x,
                y=y,
                M=int(np.prod([x.shape[a] for a in rows], dtype=np.int64)),
                rows_x=cx.table(x.offsets(rows)),
                rows_y=cx.table(y.offsets([kept.index(a) for a in rows])),
                T=int(np.prod([x.shape[a] for a in axes], dtype=np.int64)),
                taps=cx.table(x.offsets(axes)),
                C=x.shape[run],
                kind=kind,
                scale=scale,
            )
        )
        return result
    source, step, count = _one_axis(cx, x, axes)
    cx.emit(
        kernels.ReduceRows(
            x=source,
            y=y,
            M=y.size,
            rows_x=cx.table(source.offsets(kept)),
            rows_y=cx.table(y.offsets(range(len(kept)))),
            R=count,
            stride=step,
            kind=kind,
            scale=scale,
        )
    )
    return result


def _one_axis(cx: Lowering, x: Value, axes: tuple[int, ...]) -> tuple[Value, int, int]:
    """The tensor, and the stride and length of its reduced axes as one; a copy where they are not one."""
    long = [axis for axis in x.order if axis in axes and x.shape[axis] != 1]
    one = all(x.strides[a] == x.strides[b] * x.shape[b] for a, b in pairwise(long))
    if not one:
        x = cx.ordered(
            x, [*(axis for axis in x.order if axis not in axes), *long, *(a for a in axes if a not in long)]
        )
        return _one_axis(cx, x, axes)
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    return x, x.strides[long[-1]] if long else 1, count


@lowers(ArgReduce)
def lower_arg_reduce(cx: Lowering, node: PulsedNode, op: ArgReduce) -> list[Value]:
    """The index of the largest or smallest entry of a row."""
    x = cx.floats(cx.value(node.inputs[0]), "a search")
    y = cx.new(OutletId(node.id))
    kept = [axis for axis in range(len(x.shape)) if axis != op.axis]
    axes = kept if op.keepdims else list(range(len(kept)))
    if y.dtype != np.int64:
        raise CompileError(f"{node.name}: indices must be i64")
    cx.emit(
        kernels.ArgRows(
            x=x,
            y=y,
            M=y.size,
            rows_x=cx.table(x.offsets(kept)),
            rows_y=cx.table(y.offsets(axes)),
            R=x.shape[op.axis],
            stride=x.strides[op.axis],
            kind=MAX if op.kind == "max" else MIN,
            last=op.select_last,
        )
    )
    return [y]
