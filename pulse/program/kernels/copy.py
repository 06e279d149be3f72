"""Copies and fills."""

from collections.abc import Iterator
from typing import Any

from pulse.jit.language.raw import (
    TILE_ROWS,
    as_f32,
    as_i16,
    as_i32,
    as_i64,
    fill_bytes,
    move_bytes,
    opaque,
    transpose_tile,
)
from pulse.jit.language.simd import (
    LANES,
    vdeinterleave_even,
    vinterleave_first,
    vinterleave_second,
    vload,
    vload_eights,
    vload_part,
    vsplat,
    vstore,
    vstore_part,
)
from pulse.jit.registry import device, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.instruction import Instruction, Operand, reads, writes
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, require_element_size, run
from pulse.program.kernels.row_tuples import load_even_part

COPY_LOOPS = 6
"""The number of loops of ``CopyRow``."""
SHORT_RUN, LONG_RUN = 16, 256
"""Bytes: a shorter run is copied by element, a longer one by memmove."""


@device
def fill_elements(dst: Pointer, count: int, value: Any) -> None:
    """Set ``dst[:count] = value``."""
    for i in range(count):
        dst[i] = value


@device
def sign_extend(bits: int, width: int) -> int:
    """Return the low ``width`` bits as a signed number."""
    sign = 1 << (width - 1)
    return ((bits & (2 * sign - 1)) ^ sign) - sign


@device
def fill_run(dst: Pointer, size: int, count: int, bits: int) -> None:
    """Write the low bytes of ``bits`` into ``count`` contiguous elements of ``size`` bytes; dst is u8."""
    if bits == 0 or size == 1:
        fill_bytes(dst, bits, count * size)
    elif size == 4:
        fill_elements(as_i32(dst), count, sign_extend(bits, 32))
    elif size == 8:
        fill_elements(as_i64(dst), count, bits)
    else:
        fill_elements(as_i16(dst), count, sign_extend(bits, 16))


@device
def copy_rows(src: Pointer, dst: Pointer, size: int, rows: int, columns: int, a: int, b: int) -> None:
    """Copy rows of contiguous elements of ``size`` bytes, a and b elements apart; u8 pointers."""
    count = columns * size
    if size < 4 or count > LONG_RUN:
        for i in range(rows):
            move_bytes(dst + i * b * size, src + i * a * size, count)
        return
    words, wide = count // 4, size // 4
    if words == LANES:  # one element of sixteen interleaved streams
        for i in range(rows):
            vstore(as_f32(dst), i * b * wide, vload(as_f32(src), i * a * wide))
        return
    for i in range(rows):
        source, target = as_f32(src) + i * a * wide, as_f32(dst) + i * b * wide
        j = 0
        while j + LANES <= words:
            vstore(target, j, vload(source, j))
            j += LANES
        if j < words:
            vstore_part(target, j, words - j, vload_part(source, j, words - j))


@device
def repeat_rows(src: Pointer, dst: Pointer, rows: int, columns: int, a: int, b: int) -> None:
    """Set ``dst[i*b + j] = src[i*a]`` through f32 pointers."""
    for i in range(rows):
        v = vsplat(src[i * a])
        for j in range(0, columns, LANES):
            vstore_part(dst, i * b + j, columns - j, v)


@device
def transpose(src: Pointer, dst: Pointer, rows: int, columns: int, a: int, b: int) -> None:
    """Set ``dst[i*b + j] = src[j*a + i]`` through f32 pointers; rows, columns >= 8. The last tiles overlap others."""
    for i in range(0, rows, TILE_ROWS):
        top = min(i, rows - TILE_ROWS)
        for j in range(0, columns, TILE_ROWS):
            left = min(j, columns - TILE_ROWS)
            transpose_tile(dst + (top * b + left), src + (left * a + top), b, a)


@device
def interleave_runs(src: Pointer, other: Pointer, dst: Pointer, count: int) -> None:
    """Set ``dst[2*j] = src[j]`` and ``dst[2*j + 1] = other[j]``, j < count, through f32 pointers."""
    j = 0
    while j + LANES <= count:
        a, b = vload(src, j), vload(other, j)
        vstore(dst, 2 * j, vinterleave_first(a, b))
        vstore(dst, 2 * j + LANES, vinterleave_second(a, b))
        j += LANES
    rest = count - j
    if rest > 0:
        a, b = vload_part(src, j, rest), vload_part(other, j, rest)
        vstore_part(dst, 2 * j, 2 * rest, vinterleave_first(a, b))
        if 2 * rest > LANES:
            vstore_part(dst, 2 * j + LANES, 2 * rest - LANES, vinterleave_second(a, b))


@device
def take_every_second(src: Pointer, dst: Pointer, count: int) -> None:
    """Set ``dst[j] = src[2*j]``, j < count, through f32 pointers."""
    j = 0
    while j + LANES < count:
        vstore(dst, j, vdeinterleave_even(vload(src, 2 * j), vload(src, 2 * j + LANES)))
        j += LANES
    vstore_part(dst, j, count - j, load_even_part(src, j, count - j))


@device
def copy_elements(
    src: Pointer, dst: Pointer, rows: int, columns: int, a0: int, a1: int, b0: int, b1: int
) -> None:
    """Set ``dst[i*b0 + j*b1] = src[i*a0 + j*a1]``."""
    for i in range(rows):
        source, target = src + i * a0, dst + i * b0
        for j in range(columns):
            target[j * b1] = source[j * a1]


@device
def copy_plane(
    src: Pointer, dst: Pointer, size: int, rows: int, columns: int, a0: int, a1: int, b0: int, b1: int
) -> None:
    """Run ``copy_elements`` through u8 pointers to elements of ``size`` bytes, in the fastest way."""
    if rows <= 0 or columns <= 0:
        return
    if a1 == 1 and b1 == 1 and columns * size >= SHORT_RUN:
        copy_rows(src, dst, size, rows, columns, a0, b0)
        return
    if columns < TILE_ROWS and columns < rows:
        rows, columns, a0, a1, b0, b1 = columns, rows, a1, a0, b1, b0
    if size == 4:
        if a0 == 1 and b1 == 1 and rows >= TILE_ROWS and columns >= TILE_ROWS:
            transpose(as_f32(src), as_f32(dst), rows, columns, a1, b0)
        elif rows == 2 and a1 == 1 and b1 == 2 and b0 == 1:
            interleave_runs(as_f32(src), as_f32(src) + a0, as_f32(dst), columns)
        elif a1 == 0 and b1 == 1:
            repeat_rows(as_f32(src), as_f32(dst), rows, columns, a0, b0)
        elif a1 == 2 and b1 == 1:
            for i in range(rows):
                take_every_second(as_f32(src) + i * a0, as_f32(dst) + i * b0, columns)
        else:
            copy_elements(as_i32(src), as_i32(dst), rows, columns, a0, a1, b0, b1)
    elif size == 8:
        copy_elements(as_i64(src), as_i64(dst), rows, columns, a0, a1, b0, b1)
    elif size == 1:
        copy_elements(src, dst, rows, columns, a0, a1, b0, b1)
    else:
        copy_elements(as_i16(src), as_i16(dst), rows, columns, a0, a1, b0, b1)


class CopyRow(Instruction):
    """``dst[sum_k i_k*b_k] = src[sum_k i_k*a_k]`` for all i_k < n_k of 6 loops, outermost first.

    Elements are of ``size`` bytes (1, 2, 4, 8), strides in elements.
    """

    src: Operand = reads(None)
    dst: Operand = writes(None)
    size: int
    n0: int
    n1: int
    n2: int
    n3: int
    n4: int
    n5: int
    a0: int
    a1: int
    a2: int
    a3: int
    a4: int
    a5: int
    b0: int
    b1: int
    b2: int
    b3: int
    b4: int
    b5: int

    def work(self) -> int:
        return 8 * self.n0 * self.n1 * self.n2 * self.n3 * self.n4 * self.n5

    def cuts(self) -> Iterator[Cut]:
        """Cut the outermost loop; tiles of a transposition stay whole."""
        loop = next((loop for loop in range(5) if getattr(self, f"n{loop}") > 1), 5)
        steps = {"src": getattr(self, f"a{loop}"), "dst": getattr(self, f"b{loop}")}
        moves = {name: step * self.size for name, step in steps.items()}
        yield Cut(f"n{loop}", 1 if loop < 4 else TILE_ROWS, moves)

    def reaches(self) -> Iterator[Reach]:
        require_element_size(self.size)
        loops = run(self.n0, self.a0) + run(self.n1, self.a1) + run(self.n2, self.a2)
        yield (
            self.src,
            (loops + run(self.n3, self.a3) + run(self.n4, self.a4) + run(self.n5, self.a5)) * self.size,
        )
        loops = run(self.n0, self.b0) + run(self.n1, self.b1) + run(self.n2, self.b2)
        yield (
            self.dst,
            (loops + run(self.n3, self.b3) + run(self.n4, self.b4) + run(self.n5, self.b5)) * self.size,
        )


@kernel
def copy(row: CopyRow) -> None:
    """Copy one run if the elements are contiguous, else plane by plane."""
    src, dst, size, n4, n5, a5, b5 = row.src, row.dst, row.size, row.n4, row.n5, row.a5, row.b5
    n0, n1, n2, n3 = row.n0, row.n1, row.n2, row.n3
    if n0 == 1 and n1 == 1 and n2 == 1 and n3 == 1 and n4 == 1 and a5 == 1 and b5 == 1:
        move_bytes(dst, src, n5 * size)
        return
    a0, a1, a2, a3, a4 = row.a0, row.a1, row.a2, row.a3, row.a4
    b0, b1, b2, b3, b4 = row.b0, row.b1, row.b2, row.b3, row.b4
    for i0 in range(n0):
        for i1 in range(n1):
            for i2 in range(n2):
                source = src + (i0 * a0 + i1 * a1 + i2 * a2) * size
                target = dst + (i0 * b0 + i1 * b1 + i2 * b2) * size
                for i3 in range(n3):
                    from_plane, to_plane = source + i3 * a3 * size, target + i3 * b3 * size
                    copy_plane(
                        from_plane,
                        to_plane,
                        opaque(size),
                        opaque(n4),
                        opaque(n5),
                        opaque(a4),
                        opaque(a5),
                        opaque(b4),
                        opaque(b5),
                    )


class FillRow(Instruction):
    """``dst[:count] = value``, elements of ``size`` bytes (1, 2, 4, 8); the value's low bytes are in ``bits``."""

    DATA = ("bits",)
    dst: Operand = writes(None)
    size: int
    count: int
    bits: int

    def touched_bytes(self) -> dict[str, int]:
        return {"dst": self.size * self.count}

    def reaches(self) -> Iterator[Reach]:
        require_element_size(self.size)
        yield self.dst, run(self.count) * self.size


@kernel
def fill(row: FillRow) -> None:
    fill_run(row.dst, row.size, row.count, row.bits)


class MoveRow(Instruction):
    """``dst[:bytes] = src[:bytes]``; the two may overlap."""

    dst: Operand = writes(None)
    src: Operand = reads(None)
    bytes: int

    def touched_bytes(self) -> dict[str, int]:
        return {"dst": self.bytes, "src": self.bytes}

    def reaches(self) -> Iterator[Reach]:
        yield self.dst, run(self.bytes)
        yield self.src, run(self.bytes)


@kernel
def move(row: MoveRow) -> None:
    move_bytes(row.dst, row.src, row.bytes)


class PairedCopyRow(Instruction):
    """``dst[r*step + 2*c + i] = src_i[r*step_i + c]``, i < 2, r < rows, c < columns: two tensors joined by elements."""

    dst: Operand = writes("f32")
    src0: Operand = reads("f32")
    src1: Operand = reads("f32")
    rows: int
    columns: int
    step: int
    step0: int
    step1: int

    def work(self) -> int:
        return 16 * self.rows * self.columns

    def cuts(self) -> Iterator[Cut]:
        yield Cut("rows", 1, {"dst": self.step, "src0": self.step0, "src1": self.step1})

    def reaches(self) -> Iterator[Reach]:
        yield self.dst, run(self.rows, self.step) + run(2 * self.columns)
        yield self.src0, run(self.rows, self.step0) + run(self.columns)
        yield self.src1, run(self.rows, self.step1) + run(self.columns)


@kernel
def paired_copy(row: PairedCopyRow) -> None:
    dst, src0, src1, rows, columns = row.dst, row.src0, row.src1, row.rows, row.columns
    step, step0, step1 = row.step, row.step0, row.step1
    first = 0
    while columns == LANES // 2 and first + 2 <= rows:  # both rows in one vector
        a, b = vload_eights(src0, first * step0, step0, 2), vload_eights(src1, first * step1, step1, 2)
        vstore(dst, first * step, vinterleave_first(a, b))
        vstore(dst, first * step + step, vinterleave_second(a, b))
        first += 2
    for r in range(first, rows):
        interleave_runs(src0 + r * step0, src1 + r * step1, dst + r * step, columns)
