"""Elementwise ops, as chains of functions in one pass over memory."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from pulse.errors import CompileError
from pulse.facts import BOOL, F32, Array, DType, dtype_name
from pulse.graph import OutletId
from pulse.jit.rows.instruction import number_fields
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.ops.elementwise_within import RangeCheck
from pulse.ops.matmul import MatMul, packed_operand
from pulse.ops.reduce import Reduce
from pulse.program.kernels.dtypes import CODES
from pulse.program.kernels.elementwise import (
    CHAIN_LOOPS,
    MAX_INPUTS,
    MAX_REGISTERS,
    ChainInput,
    ChainOutput,
    ChainRow,
    MicroOp,
)
from pulse.program.kernels.elementwise_float64 import Chain64Row
from pulse.program.kernels.elementwise_microops import OPCODES
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.loops import Loops
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode
from pulse.support.record import record
from pulse.support.wording import count_of, spell

MAX_EXACT_INTEGER = 1 << 53
"""The largest integer such that all up to it are exact in f64, in which the kernel computes."""

MAX_CHAINED_FUNCTIONS = 48
"""Maximum number of functions of a pending wire; with more, it is stored instead of merged into its reader."""

SQUARE_REDUCTIONS = ("sum", "mean")
"""The reductions of squares that are one row, if a kept axis is innermost."""

WITH_NUMBER = {
    "add": ("addc", "addc"),
    "sub": ("rsubc", "addc"),
    "mul": ("mulc", "mulc"),
    "div": ("rdivc", "divc"),
    "min": ("minc", "minc"),
    "max": ("maxc", "maxc"),
}
"""The functions of two tensors that are one of a tensor and a number: if that is the first operand, or the second."""

_SIMD = {F32, BOOL}
"""The types that ``ChainRow`` computes in vectors; with any other type, it is ``Chain64Row``."""


class Chain:
    """A chain of micro-operations on registers.

    inputs       the tensors in the registers 0, 1 …
    ops          the micro-operations
    free         registers that hold no result
    free_inputs  the number of tensors by which pending operands may increase the inputs
    """

    def __init__(self, free_inputs: int = 0) -> None:
        self.inputs: list[TensorView] = []
        self.ops: list[MicroOp] = []
        self.free = list(range(MAX_INPUTS, MAX_REGISTERS))
        self.free_inputs = free_inputs

    def load(self, value: TensorView) -> int:
        """Return the register of an input, which is added at its first use."""
        if value not in self.inputs:
            self.inputs.append(value)
        return self.inputs.index(value)

    def apply(self, name: str, registers: Sequence[int], params: Sequence[float] = ()) -> int:
        """Append one function; return the register of its result."""
        a, b, c = (*registers, 0, 0, 0)[:3]
        p0, p1 = (*params, 0.0, 0.0)[:2]
        self.free += sorted({register for register in registers if register >= MAX_INPUTS})
        target = self.free.pop()
        self.ops.append(MicroOp(code=OPCODES[name], target=target, a=a, b=b, c=c, p=p0, q=p1))
        return target

    def fold(self, function: str, registers: Sequence[int], params: Sequence[float]) -> int:
        """Append a function of the table with any number of operands."""
        if function in ("min", "max", "sum", "mean"):
            result = registers[0]
            for register in registers[1:]:
                result = self.apply("add" if function in ("sum", "mean") else function, (result, register))
            return self.apply("mulc", (result,), (1 / len(registers),)) if function == "mean" else result
        return self.apply(function, registers, params)


def store_chain(lowering: Lowering, chain: Chain, target: TensorView) -> None:
    """Emit a chain whose last result goes to a tensor."""
    assert len(chain.inputs) <= MAX_INPUTS
    shape = target.shape
    inputs = [broadcast(value, shape) for value in chain.inputs]
    order = target.order
    loops = Loops.over(shape, [target.strides, *(v.strides for v in inputs)], order)
    if len(loops.sizes) > CHAIN_LOOPS:
        inputs = [lowering.order_axes(value, order) for value in inputs]
        loops = Loops.over(shape, [target.strides, *(v.strides for v in inputs)], order)
    if len(loops.sizes) > CHAIN_LOOPS:
        raise lowering.no_kernel(
            f"elementwise functions over {count_of(len(loops.sizes), 'separate axis', 'separate axes')}"
        )
    loops = loops.pad(CHAIN_LOOPS)
    target_strides, *strides = loops.strides

    def step_fields(value: TensorView, steps: Sequence[int]) -> dict[str, Any]:
        """Return the fields of an input or output."""
        return {"tensor": value, "dtype": require_code(lowering, value.dtype), **number_fields("step", steps)}

    row_class = ChainRow if {value.dtype for value in (*inputs, target)} <= _SIMD else Chain64Row
    lowering.emit(
        row_class(
            **number_fields("s", loops.sizes),
            input_count=len(inputs),
            op_count=len(chain.ops),
            inputs=[ChainInput(**step_fields(value, steps)) for value, steps in zip(inputs, strides)],
            output=ChainOutput(**step_fields(target, target_strides)),
            ops=chain.ops,
        )
    )


def store_temporary(
    lowering: Lowering, chain: Chain, like: TensorView, dtype: DType | None = None
) -> TensorView:
    """Emit a chain; its result is a temporary with the shape and axis order of ``like``, and its type or ``dtype``."""
    target = lowering.allocate_temporary(like.shape, dtype or like.dtype, like.order)
    store_chain(lowering, chain, target)
    return target


def require_code(lowering: Lowering, dtype: DType) -> int:
    """Return the kernel's code for a type. Raises CompileError: it has none."""
    if dtype not in CODES:
        raise lowering.no_kernel(dtype_name(dtype))
    return CODES[dtype]


def broadcast(value: TensorView, shape: Sequence[int]) -> TensorView:
    """Broadcast a tensor to a shape by strides of zero."""
    added_axes = len(shape) - len(value.shape)
    strides = [0] * added_axes + [step if size != 1 else 0 for size, step in zip(value.shape, value.strides)]
    return value.view(shape, strides)


def result_order(lowering: Lowering, outlet: OutletId, inputs: Sequence[TensorView]) -> list[int]:
    """Return the axis order of the largest input, so that loops run through memory in order."""
    sizes = lowering.fact(outlet).sizes
    for value in inputs:
        if (
            value.shape == sizes
            and value.size > 1
            and all(value.strides[a] for a, n in enumerate(sizes) if n > 1)
        ):
            return list(value.order)
    return lowering.stream_first(outlet)


@lowers(Elementwise, Cast)
def lower_elementwise(lowering: Lowering, node: PulsedNode, op: Elementwise | Cast) -> list[TensorView]:
    """Leave the function pending if its reader can include it in its own chain, else emit it now."""
    outlet = OutletId(node.id)
    for slot, source in enumerate(node.inputs):
        constant = lowering.known_value(source)
        if (
            constant is not None
            and constant.dtype.kind in "iu"
            and constant.size
            and int(abs(constant).max()) > MAX_EXACT_INTEGER
        ):
            raise CompileError(
                f"{node.name} ({node.op.name}): input {slot} holds integers beyond 2**53; "
                f"use {spell('backend', 'numpy')}"
            )
    functions = 1 + sum(map(lowering.pending_functions, set(node.inputs)))
    merges = functions < MAX_CHAINED_FUNCTIONS and _is_mergeable(lowering, outlet)
    if merges or _scales_a_product(lowering, node) or _is_summed_square(lowering, node):
        lowering.leave_pending(outlet, lambda: _emit_wire(lowering, outlet), functions)
        return []
    return [_emit_wire(lowering, outlet)]


def find_scale(lowering: Lowering, node: PulsedNode) -> tuple[int, float] | None:
    """Return the slot of the tensor that a node multiplies by a number, and the number; None for other nodes."""
    op = node.op
    factor = ELEMENTWISE[op.kind].factor if isinstance(op, Elementwise) else None
    if factor is None:
        return None
    for slot in (0, 1):
        fact, constant = lowering.fact(node.inputs[slot]), lowering.known_value(node.inputs[1 - slot])
        if (
            fact.value is None
            and fact.sizes == lowering.fact(OutletId(node.id)).sizes
            and fact.dtype == np.float32
        ):
            number = one_number(constant)
            scale = (
                factor(number, slot) if number is not None and np.isfinite(number) and number != 0 else None
            )
            if scale is not None:
                return slot, scale
    return None


def one_number(constant: Array | None) -> float | None:
    """Return the value of an f32 constant with one element; None for anything else."""
    if constant is not None and constant.dtype == np.float32 and constant.size == 1:
        return float(constant.ravel()[0])
    return None


def _scales_a_product(lowering: Lowering, node: PulsedNode) -> bool:
    """Return whether the only reader of a scaled tensor is a product of two tensors, which can scale its result."""
    outlet = OutletId(node.id)
    reader = lowering.only_reader(outlet)
    if reader is None or find_scale(lowering, node) is None:
        return False
    return isinstance(reader.op, MatMul) and packed_operand(list(map(lowering.fact, reader.inputs))) is None


def _is_summed_square(lowering: Lowering, node: PulsedNode) -> bool:
    """Return whether the only reader of the squares of a tensor is a sum or a mean, which can square the entries."""
    outlet = OutletId(node.id)
    reader = lowering.only_reader(outlet)
    if reader is None or _exponent(lowering, node) != 2.0:
        return False
    # an exponent [1, 1] may add leading axes
    keeps_axes = lowering.fact(node.inputs[0]).sizes == lowering.fact(outlet).sizes
    return keeps_axes and isinstance(reader.op, Reduce) and reader.op.kind in SQUARE_REDUCTIONS


def _emit_wire(lowering: Lowering, outlet: OutletId) -> TensorView:
    """Emit a chain for an elementwise wire and the pending wires that it can include."""
    node = lowering.graph.node(outlet)
    if len(node.inputs) > MAX_INPUTS:
        return _store_in_parts(lowering, outlet)
    chain = Chain(free_inputs=MAX_INPUTS - len(node.inputs))
    _append_function(lowering, chain, node)
    target = lowering.allocate_wire(outlet, result_order(lowering, outlet, chain.inputs))
    store_chain(lowering, chain, target)
    return target


def _store_in_parts(lowering: Lowering, outlet: OutletId) -> TensorView:
    """Fold more operands than a chain takes, in order: each chain continues with the result of the previous one."""
    node = lowering.graph.node(outlet)
    op = node.op
    assert isinstance(op, Elementwise)
    values = [lowering.value(source) for source in node.inputs]
    target = lowering.allocate_wire(outlet, result_order(lowering, outlet, values))
    bounds = [0, *range(MAX_INPUTS, len(values), MAX_INPUTS - 1), len(values)]
    for start, stop in pairwise(bounds):
        chain = Chain()
        partial_result = [chain.load(target)] if start else []
        registers = [*partial_result, *(chain.load(value) for value in values[start:stop])]
        result = chain.fold("sum" if op.kind == "mean" else op.kind, registers, op.params)
        if op.kind == "mean" and stop == len(values):
            chain.apply("mulc", (result,), (1 / len(values),))
        store_chain(lowering, chain, target)
    return target


def _append_function(lowering: Lowering, chain: Chain, node: PulsedNode) -> int:
    """Append the function of a node, the functions of pending operands first; return its register."""
    registers: list[int] = []
    number = _number_operand(lowering, node)
    for slot, outlet in enumerate(node.inputs):
        if number is not None and slot == number.slot:
            continue
        child = lowering.graph.node(outlet)
        fits = len(child.inputs) - 1 <= chain.free_inputs and len(chain.free) > 2
        if lowering.pending_functions(outlet) and fits:
            chain.free_inputs -= len(child.inputs) - 1
            lowering.include_pending(outlet)
            registers.append(_append_function(lowering, chain, child))
        else:
            registers.append(chain.load(lowering.value(outlet)))
    op = node.op
    if isinstance(op, Cast):
        return registers[0]
    assert isinstance(op, Elementwise)
    if number is not None:
        return chain.fold(number.function, registers, [number.value])
    return chain.fold(op.kind, registers, op.params)


@record
class NumberOperand:
    """The operand of a function of two that is a number, and the function of the other one with this parameter."""

    slot: int
    function: str
    value: float


def _number_operand(lowering: Lowering, node: PulsedNode) -> NumberOperand | None:
    """Return the operand of a node that its chain takes as a parameter; None if there is none."""
    exponent = _exponent(lowering, node)
    if exponent is not None:
        return NumberOperand(1, "powc", exponent)
    if not isinstance(node.op, Elementwise) or node.op.kind not in WITH_NUMBER or len(node.inputs) != 2:
        return None
    for slot, function in enumerate(WITH_NUMBER[node.op.kind]):
        value = one_number(lowering.known_value(node.inputs[slot]))
        if value is not None:
            return NumberOperand(slot, function, -value if node.op.kind == "sub" and slot == 1 else value)
    return None


def _exponent(lowering: Lowering, node: PulsedNode) -> float | None:
    """Return the constant exponent of a power of an f32 tensor if f32 holds it exactly, else None."""
    if not isinstance(node.op, Elementwise) or node.op.kind != "pow":
        return None
    constant = lowering.known_value(node.inputs[1])
    if constant is None or constant.size != 1 or lowering.fact(node.inputs[0]).dtype != np.float32:
        return None
    exponent = float(constant.ravel()[0])
    return exponent if float(np.float32(exponent)) == exponent else None


def _is_mergeable(lowering: Lowering, outlet: OutletId) -> bool:
    """Return whether the only reader is an elementwise op of the same shape, whose types the vector kernel supports."""
    node, reader = lowering.graph.node(outlet), lowering.only_reader(outlet)
    if reader is None:
        return False
    wires = [outlet, *node.inputs, *reader.inputs, OutletId(reader.id)]
    cast = isinstance(node.op, Cast) and lowering.fact(node.inputs[0]).dtype != np.bool_
    return (
        not cast
        and isinstance(reader.op, Elementwise)
        and lowering.fact(OutletId(reader.id)).sizes == lowering.fact(outlet).sizes
        and all(lowering.fact(wire).dtype in _SIMD for wire in wires)
    )


@lowers(RangeCheck)
def lower_range_check(lowering: Lowering, node: PulsedNode, op: RangeCheck) -> list[TensorView]:
    """Return the tensor itself; a separate row counts faults."""
    return [lowering.value(node.inputs[0])]


def emit_chain(
    lowering: Lowering, value: TensorView, *steps: tuple[str, float], dtype: DType | None = None
) -> TensorView:
    """Emit elementwise functions of one tensor, each with one parameter; the result has its type or ``dtype``."""
    chain = Chain()
    register = chain.load(value)
    for name, param in steps:
        register = chain.apply(name, (register,), (param,))
    return store_temporary(lowering, chain, value, dtype)
