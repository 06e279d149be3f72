"""Counters of faults: one row for each checked operand."""

import numpy as np

from pulse.dim import TDim
from pulse.errors import CompileError
from pulse.jit.rows.instruction import number_fields
from pulse.ops.check import Check
from pulse.ops.fault import CountFaults
from pulse.program.kernels import fault
from pulse.program.kernels.fault import BETWEEN, NONZERO, WITHIN
from pulse.program.lower.elementwise import require_code
from pulse.program.lowering import FaultChecker, Lowering, lowers
from pulse.program.table.loops import Loops
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode
from pulse.support.bounds import UNBOUNDED
from pulse.support.record import record
from pulse.support.wording import count_of, spell

MAX_LOOPS = 3
"""Maximum number of loops of a check; a tensor with more separate axes is refused."""


@record
class CheckedFrames:
    """The frames f of a tensor that are checked: ``begin <= clock*pulse + shift + f < end``, from clock ``gate`` on.

    axis          the axis of the frames; None: the whole tensor is one frame
    pulse, shift  the terms of a frame's position in the stream
    begin, end    the bounds of the positions
    gate          the first clock at which frames are checked
    """

    axis: int | None
    pulse: int
    shift: int
    begin: TensorView
    end: TensorView
    gate: TensorView


def frames_of_every_pulse(lowering: Lowering) -> CheckedFrames:
    """Return the frames for a check of the whole tensor in every pulse."""
    return CheckedFrames(
        None, 0, 0, lowering.add_table([0]), lowering.add_table([UNBOUNDED]), lowering.add_table([0])
    )


@lowers(CountFaults)
def lower_count_faults(lowering: Lowering, node: PulsedNode, op: CountFaults) -> list[TensorView]:
    """Emit the row that counts; return the counter as the output."""
    x = lowering.value(node.inputs[0])
    frames = frames_of_every_pulse(lowering)
    if op.when == "frames" and op.axis is not None:
        end = lowering.length_register(op.length)
        frames = CheckedFrames(
            op.axis, x.shape[op.axis], -op.offset, lowering.add_table([op.first]), end, frames.gate
        )
    elif op.when == "end":
        begin = (
            frames.begin
            if op.axis is None
            else lowering.length_register(TDim.of(x.shape[op.axis]) - op.length)
        )
        frames = CheckedFrames(op.axis, 0, 0, begin, frames.end, lowering.builder.last_pulse)
    return [count_faults(lowering, x, op.check, op.node, op.op, frames)]


def count_faults(
    lowering: Lowering, operand: TensorView, check: Check, node: str, op: str, frames: CheckedFrames
) -> TensorView:
    """Emit the row that counts an operand's faults; return the counter, one for each node and check."""
    node_count, total = lowering.builder.fault_counter(node, op, check), lowering.builder.fault_total
    checked = operand
    if check.column is not None:
        checked = checked.part(len(checked.shape) - 1, check.column, check.column + 1)
    axis = frames.axis
    count, step = (1, 0) if axis is None else (checked.shape[axis], checked.strides[axis])
    x = checked if axis is None else checked.part(axis, 0, 1)
    loops = Loops.over(x.shape, [x.strides], x.order).pad(MAX_LOOPS)
    if len(loops.sizes) > MAX_LOOPS:
        raise CompileError(
            f"{node} ({op}): no kernel for a check over "
            f"{count_of(len(loops.sizes), 'separate axis', 'separate axes')}; "
            f"use {spell('backend', 'numpy')}"
        )
    if 0 in operand.shape:
        return node_count
    reals = np.issubdtype(x.dtype, np.floating)
    above, below = check.bounds() if reals else (0.0, 0.0)
    lowering.emit(
        fault.CountFaultsRow(
            x=checked,
            own=node_count,
            total=total,
            clock=lowering.clock,
            gate=frames.gate,
            begin=frames.begin,
            end=frames.end,
            P=frames.pulse,
            shift=frames.shift,
            F=count,
            step=step,
            **number_fields("s", loops.sizes),
            **number_fields("t", loops.strides[0]),
            dtype=require_code(lowering, x.dtype),
            mode=BETWEEN if reals else NONZERO if check.nonzero else WITHIN,
            above=above,
            below=below,
            low=0 if reals else check.low,
            high=0 if reals else check.high,
        )
    )
    return node_count


def make_fault_checker(frames: CheckedFrames) -> FaultChecker:
    """Return a function that emits the fault counters of each node in a body that runs for these frames."""

    def emit_fault_counters(inner: Lowering, node: PulsedNode) -> None:
        """Emit a counter for each check of a node, unless its operand is a constant that passes."""
        facts = [inner.fact(outlet) for outlet in node.inputs]
        for check in node.op.checks([fact.sizes for fact in facts], [fact.dtype for fact in facts]):
            constant = facts[check.slot].value
            if constant is None or check.find_failing(constant).any():
                count_faults(
                    inner, inner.value(node.inputs[check.slot]), check, node.name, node.op.name, frames
                )

    return emit_fault_counters
