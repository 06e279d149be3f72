"""Counters of faults: one row for each checked operand."""

import numpy as np

from pulse.dim import TDim
from pulse.errors import CompileError
from pulse.jit.rows.instruction import number_fields
from pulse.ops.check import Check
from pulse.ops.fault import CountFaults
from pulse.program.kernels import fault
from pulse.program.kernels.fault import BETWEEN, NONZERO, WITHIN
from pulse.program.lower.elementwise import code_of
from pulse.program.lowering import FaultChecker, Lowering, PulsedNode, lowers
from pulse.program.table.loops import Loops
from pulse.program.table.memory import Value
from pulse.support.bounds import FAR
from pulse.support.record import record

MAX_LOOPS = 3
"""The loops of a check; a tensor with more separate axes is refused."""


@record
class Valid:
    """The frames f of a tensor that are checked: ``begin <= clock*pulse + shift + f < end``, from clock ``gate`` on.

    axis    the axis of the frames; None: the whole tensor is one frame
    """

    axis: int | None
    pulse: int
    shift: int
    begin: Value
    end: Value
    gate: Value


def always_valid(cx: Lowering) -> Valid:
    """Return a ``Valid`` that checks the whole tensor in every pulse."""
    return Valid(None, 0, 0, cx.table([0]), cx.table([FAR]), cx.table([0]))


@lowers(CountFaults)
def lower_count_faults(cx: Lowering, node: PulsedNode, op: CountFaults) -> list[Value]:
    """Return the counter as the output."""
    x = cx.value(node.inputs[0])
    frames = always_valid(cx)
    if op.when == "frames" and op.axis is not None:
        end = cx.end(op.length)
        frames = Valid(op.axis, x.shape[op.axis], -op.offset, cx.table([op.first]), end, frames.gate)
    elif op.when == "end":
        begin = frames.begin if op.axis is None else cx.end(TDim.of(x.shape[op.axis]) - op.length)
        frames = Valid(op.axis, 0, 0, begin, frames.end, cx.builder.last)
    return [count_faults(cx, x, op.check, op.node, op.op, frames)]


def count_faults(cx: Lowering, operand: Value, check: Check, node: str, op: str, frames: Valid) -> Value:
    """Emit the row that counts an operand's faults; return the counter, one for each node and check."""
    node_count, total = cx.builder.counter(node, op, check), cx.builder.total
    whole = operand
    if check.column is not None:
        whole = whole.part(len(whole.shape) - 1, check.column, check.column + 1)
    axis = frames.axis
    count, step = (1, 0) if axis is None else (whole.shape[axis], whole.strides[axis])
    x = whole if axis is None else whole.part(axis, 0, 1)
    loops = Loops.over(x.shape, [x.strides], x.order).pad(MAX_LOOPS)
    if len(loops.sizes) > MAX_LOOPS:
        raise CompileError(f"{node} ({op}): a check over {len(loops.sizes)} separate axes is not supported")
    if 0 in operand.shape:
        return node_count
    reals = np.issubdtype(x.dtype, np.floating)
    above, below = check.bounds() if reals else (0.0, 0.0)
    cx.emit(
        fault.CountFaultsRow(
            x=whole,
            own=node_count,
            total=total,
            clock=cx.clock,
            gate=frames.gate,
            begin=frames.begin,
            end=frames.end,
            P=frames.pulse,
            shift=frames.shift,
            F=count,
            step=step,
            **number_fields("s", loops.sizes),
            **number_fields("t", loops.strides[0]),
            dtype=code_of(cx, x.dtype),
            mode=BETWEEN if reals else NONZERO if check.nonzero else WITHIN,
            above=above,
            below=below,
            low=0 if reals else check.low,
            high=0 if reals else check.high,
        )
    )
    return node_count


def fault_checker(frames: Valid) -> FaultChecker:
    """Return a function that emits the fault counters of each node in a body that runs for these frames."""

    def check_faults(inner: Lowering, node: PulsedNode) -> None:
        facts = [inner.fact(outlet) for outlet in node.inputs]
        for check in node.op.checks([fact.sizes for fact in facts], [fact.dtype for fact in facts]):
            constant = facts[check.slot].value
            if constant is None or check.find_failing(constant).any():
                count_faults(
                    inner, inner.value(node.inputs[check.slot]), check, node.name, node.op.name, frames
                )

    return check_faults
