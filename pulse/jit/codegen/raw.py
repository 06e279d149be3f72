# pyright: basic, reportArgumentType=false
"""``raw`` for numba: casts of pointers, LLVM's memmove and memset, shuffles of rows."""

from collections.abc import Callable

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin

from pulse.jit.codegen.pointer import PointerType, declare_type, has_pointer_at
from pulse.jit.codegen.simd import BIT, call, defines
from pulse.jit.language import raw
from pulse.jit.language.raw import TILE_ROWS

BYTES, FLOATS = PointerType(types.uint8), PointerType(types.float32)


def _declare_view(function: Callable, element: types.Type) -> None:
    result = PointerType(element)
    declare_type(
        function, lambda args: signature(result, args[0]) if len(args) == 1 and has_pointer_at(args) else None
    )

    @lower_builtin(function, PointerType)
    def _view(context, builder, sig, args):
        return builder.bitcast(args[0], context.get_value_type(sig.return_type))


for _function, _element in (
    (raw.as_u8, types.uint8),
    (raw.as_i16, types.int16),
    (raw.as_u16, types.uint16),
    (raw.as_i32, types.int32),
    (raw.as_f32, types.float32),
    (raw.as_i64, types.int64),
    (raw.as_f64, types.float64),
):
    _declare_view(_function, _element)


@defines(raw.move_bytes, types.none, BYTES, BYTES, types.int64)
def _move_bytes(builder, dst, src, count):
    call(builder, "llvm.memmove.p0.p0.i64", ir.VoidType(), dst, src, count, BIT(0))


@defines(raw.fill_bytes, types.none, BYTES, types.int64, types.int64)
def _fill_bytes(builder, dst, value, count):
    byte = builder.trunc(value, ir.IntType(8))
    call(builder, "llvm.memset.p0.i64", ir.VoidType(), dst, byte, count, BIT(0))


@defines(raw.opaque, types.int64, types.int64)
def _hide_value(builder, value):
    kind = ir.FunctionType(ir.IntType(64), [ir.IntType(64)])
    return builder.asm(kind, "", "=r,0", [value], side_effect=True)


def _interleave(builder, a, b, width: int):
    """Build two rows: the even groups of ``width`` lanes of a and b in turn, and the odd ones."""
    for first in (0, width):
        lanes = [i if i % (2 * width) < width else i - width + TILE_ROWS for i in range(TILE_ROWS)]
        mask = ir.Constant(ir.VectorType(ir.IntType(32), TILE_ROWS), [i + first for i in lanes])
        yield builder.shuffle_vector(a, b, mask)


@defines(raw.transpose_tile, types.none, FLOATS, FLOATS, types.int64, types.int64)
def _transpose_tile(builder, dst, src, dst_step, src_step):
    row = ir.PointerType(ir.VectorType(ir.FloatType(), TILE_ROWS))

    def place(p, step, i):
        return builder.bitcast(builder.gep(p, [builder.mul(step, step.type(i))], inbounds=True), row)

    rows = [builder.load(place(src, src_step, j), align=4) for j in range(TILE_ROWS)]
    width = 1
    while width < TILE_ROWS:
        for i in range(TILE_ROWS):
            if not i & width:
                rows[i], rows[i + width] = _interleave(builder, rows[i], rows[i + width], width)
        width *= 2
    for i in range(TILE_ROWS):
        builder.store(rows[i], place(dst, dst_step, i), align=4)
