# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
"""Memory without a type: runs of bytes, and pointers seen as elements of 1, 2, 4 or 8 bytes."""

from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin

from pulse.jit.pointer import Pointer
from pulse.jit.pointer_lowering import PointerType, at_pointer, typed

TILE = 8


def opaque(number: int) -> int:
    """The number, hidden from the optimiser, which then moves nothing that depends on it out of a loop."""
    return number


def _seen_as(p: Pointer, dtype: type[np.generic]) -> Pointer:
    size, start = np.dtype(dtype).itemsize, p.start * p.elements.itemsize
    if start % size:
        raise ValueError(f"byte {start} is not aligned to {size}")
    region = p.elements.view(np.uint8)
    return Pointer(region[: len(region) // size * size].view(dtype), start // size)


def as_u8(p: Pointer) -> Pointer:
    """The same place, in elements of 1 byte."""
    return _seen_as(p, np.uint8)


def as_i16(p: Pointer) -> Pointer:
    """The same place, in elements of 2 bytes."""
    return _seen_as(p, np.int16)


def as_i32(p: Pointer) -> Pointer:
    """The same place, in elements of 4 bytes."""
    return _seen_as(p, np.int32)


def as_f32(p: Pointer) -> Pointer:
    """The same place, in float32; loads and stores keep all bits."""
    return _seen_as(p, np.float32)


def as_i64(p: Pointer) -> Pointer:
    """The same place, in elements of 8 bytes."""
    return _seen_as(p, np.int64)


def as_f64(p: Pointer) -> Pointer:
    """The same place, in float64."""
    return _seen_as(p, np.float64)


def move_bytes(dst: Pointer, src: Pointer, count: int) -> None:
    """``dst[:count] = src[:count]`` of two u8 pointers; the two may overlap."""
    dst.elements[dst.span(0, count)] = src.elements[src.span(0, count)].copy()


def fill_bytes(dst: Pointer, value: int, count: int) -> None:
    """``dst[:count] = value`` of a u8 pointer; the low byte of the value."""
    dst.elements[dst.span(0, count)] = value & 255


def transpose_tile(dst: Pointer, src: Pointer, dst_step: int, src_step: int) -> None:
    """``dst[i*dst_step + j] = src[j*src_step + i]``, i and j < 8, of two f32 pointers; keeps all bits."""
    tile = np.stack([src.elements[src.span(j * src_step, TILE)] for j in range(TILE)], axis=1)
    for i in range(TILE):
        dst.elements[dst.span(i * dst_step, TILE)] = tile[i]


BYTES, FLOATS = PointerType(types.uint8), PointerType(types.float32)


def _lower_view(function: Callable, element: types.Type) -> None:
    result = PointerType(element)
    typed(function, lambda args: signature(result, args[0]) if len(args) == 1 and at_pointer(args) else None)

    @lower_builtin(function, PointerType)
    def _view(context, builder, sig, args):
        return builder.bitcast(args[0], context.get_value_type(sig.return_type))


for _function, _element in (
    (as_u8, types.uint8),
    (as_i16, types.int16),
    (as_i32, types.int32),
    (as_f32, types.float32),
    (as_i64, types.int64),
    (as_f64, types.float64),
):
    _lower_view(_function, _element)


def _memory_call(builder, name, *args):
    full = f"llvm.{name}.p0{'.p0' if name == 'memmove' else ''}.i64"
    function = builder.module.globals.get(full)
    if function is None:
        function = ir.Function(
            builder.module, ir.FunctionType(ir.VoidType(), [arg.type for arg in args]), full
        )
    builder.call(function, args)


typed(
    move_bytes,
    lambda args: (
        signature(types.none, BYTES, BYTES, types.int64)
        if len(args) == 3 and args[:2] == (BYTES, BYTES) and isinstance(args[2], types.Integer)
        else None
    ),
)
typed(
    fill_bytes,
    lambda args: (
        signature(types.none, BYTES, types.int64, types.int64)
        if len(args) == 3 and at_pointer(args, 1, 2) and args[0] == BYTES
        else None
    ),
)


@lower_builtin(move_bytes, BYTES, BYTES, types.int64)
def _move_bytes(context, builder, sig, args):
    _memory_call(builder, "memmove", *args, ir.IntType(1)(0))
    return context.get_dummy_value()


@lower_builtin(fill_bytes, BYTES, types.int64, types.int64)
def _fill_bytes(context, builder, sig, args):
    dst, value, count = args
    _memory_call(builder, "memset", dst, builder.trunc(value, ir.IntType(8)), count, ir.IntType(1)(0))
    return context.get_dummy_value()


typed(opaque, lambda args: signature(types.int64, types.int64) if len(args) == 1 else None)


@lower_builtin(opaque, types.int64)
def _opaque(context, builder, sig, args):
    kind = ir.FunctionType(ir.IntType(64), [ir.IntType(64)])
    return builder.asm(kind, "", "=r,0", args, side_effect=True)


typed(
    transpose_tile,
    lambda args: (
        signature(types.none, FLOATS, FLOATS, types.int64, types.int64)
        if len(args) == 4 and args[:2] == (FLOATS, FLOATS)
        else None
    ),
)


def _interleaved(builder, a, b, width: int):
    """Two rows: the even groups of ``width`` lanes of a and b in turn, and the odd ones."""
    for first in (0, width):
        lanes = [at if at % (2 * width) < width else at - width + TILE for at in range(TILE)]
        mask = ir.Constant(ir.VectorType(ir.IntType(32), TILE), [at + first for at in lanes])
        yield builder.shuffle_vector(a, b, mask)


@lower_builtin(transpose_tile, FLOATS, FLOATS, types.int64, types.int64)
def _transpose_tile(context, builder, sig, args):
    dst, src, dst_step, src_step = args
    row = ir.PointerType(ir.VectorType(ir.FloatType(), TILE))

    def place(p, step, i):
        return builder.bitcast(builder.gep(p, [builder.mul(step, step.type(i))], inbounds=True), row)

    rows = [builder.load(place(src, src_step, j), align=4) for j in range(TILE)]
    width = 1
    while width < TILE:
        for i in range(TILE):
            if not i & width:
                rows[i], rows[i + width] = _interleaved(builder, rows[i], rows[i + width], width)
        width *= 2
    for i in range(TILE):
        builder.store(rows[i], place(dst, dst_step, i), align=4)
    return context.get_dummy_value()
