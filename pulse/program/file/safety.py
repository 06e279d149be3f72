"""That no row of a program, and nothing that is read or written beside its rows, reaches outside of its memories."""

from pulse.errors import LoadError
from pulse.jit.reach import TableCheck
from pulse.jit.registry import kernel_of
from pulse.jit.span import UnsafeRowError, run
from pulse.program.native.executable import NativeExecutable
from pulse.program.table.memory import Region
from pulse.program.table.place import Place
from pulse.program.table.table import row_starts

MOST_SCRATCH = 1 << 30
"""Bytes of scratch memory."""
WORD = 8


def require_safe(program: NativeExecutable) -> None:
    """Check all that a program touches while it runs, by its numbers; nothing is run.

    Raises LoadError naming the row, if it may reach outside of the weights, the state or the scratch memory, write
    weights or words of time, or go on for minutes.
    """
    if program.arena_bytes > MOST_SCRATCH:
        raise LoadError(
            f"it needs {program.arena_bytes:,} bytes of scratch memory; more than {MOST_SCRATCH:,} are refused"
        )
    check = TableCheck(program.weights, program.initial, program.arena_bytes)
    words = program.unlinked.tolist()
    for number, start in enumerate(row_starts(program.unlinked)):
        row = words[start : start + words[start + 1]]
        kernel = kernel_of(row[0])
        try:
            check.row(kernel.instruction, kernel.form, row)
        except (UnsafeRowError, IndexError, ArithmeticError) as error:
            raise LoadError(f"row {number} ({kernel.name}) is refused: {error}") from None
    try:
        _check_around(program, check)
        check.finish()
    except UnsafeRowError as error:
        raise LoadError(f"it is refused: {error}") from None


def _check_around(program: NativeExecutable, check: TableCheck) -> None:
    """What Python reads and writes before and after the rows. Raises UnsafeRowError."""
    for name, place in program.received:
        if 0 not in place.shape:
            check.writes(place.region, *_bytes(name, place))
    sizes = {
        Region.WEIGHTS: program.weights.size,
        Region.STATE: program.initial.size,
        Region.ARENA: program.arena_bytes,
    }
    for name, place in program.sent:
        if (
            0 not in place.shape
            and not 0 <= _bytes(name, place)[0] < _bytes(name, place)[1] <= sizes[place.region]
        ):
            raise UnsafeRowError(f"output {name} lies outside of its memory")
    for byte in (*(byte for _, byte in program.ends), program.last_at):
        if byte is not None:
            check.time(byte)
    for byte in (*(byte for _, byte in program.counters), program.total_at):
        if byte is not None:
            check.writes(Region.STATE, byte, byte + WORD)


def _bytes(name: str, place: Place) -> tuple[int, int]:
    """The first byte of a tensor and the one after its last."""
    span = run(1)
    for size, step in zip(place.shape, place.strides):
        span += run(size, step)
    if span.loops > 1 << 40:
        raise UnsafeRowError(f"{name} has too many elements")
    return place.offset + span.low, place.offset + span.last + place.dtype.itemsize
