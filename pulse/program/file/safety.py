"""Check that the rows of a program, and the accesses of Python around them, stay inside its memories."""

from pulse.errors import LoadError
from pulse.jit.registry import kernel_of
from pulse.jit.rows.fields import WORD_BYTES
from pulse.jit.rows.reach import TableCheck
from pulse.jit.rows.span import UnsafeRowError, run
from pulse.program.native.native_executable import NativeExecutable
from pulse.program.table.memory import Region
from pulse.program.table.place import Place
from pulse.program.table.table import row_starts
from pulse.support.wording import count_of

MAX_ARENA_BYTES = 1 << 30
"""Maximum number of bytes of the arena; a file that needs more is refused."""


def require_safe(program: NativeExecutable) -> None:
    """Check every memory access of a program from the numbers in its rows, without running it.

    Raises LoadError: a row may reach outside the weights, the state or the arena, write to weights or to words of the
    clock, or run for minutes
    """
    if program.arena_bytes > MAX_ARENA_BYTES:
        raise LoadError(
            f"its arena has {count_of(program.arena_bytes, 'byte', form=',')}; more than "
            f"{MAX_ARENA_BYTES:,} are refused"
        )
    check = TableCheck(program.weights, program.initial, program.arena_bytes)
    words = program.unlinked.tolist()
    for row_index, start in enumerate(row_starts(program.unlinked)):
        row = words[start : start + words[start + 1]]
        kernel = kernel_of(row[0])
        try:
            check.check_row(kernel.instruction, kernel.form, row)
        except (UnsafeRowError, IndexError, ArithmeticError) as error:
            raise LoadError(f"row {row_index} ({kernel.name}) is refused: {error}") from None
    try:
        _check_python_accesses(program, check)
        check.finish()
    except UnsafeRowError as error:
        raise LoadError(f"it is refused: {error}") from None


def _check_python_accesses(program: NativeExecutable, check: TableCheck) -> None:
    """Check the accesses of Python before and after the rows. Raises UnsafeRowError: one is outside its memory."""
    for name, place in program.input_places:
        if 0 not in place.shape:
            check.record_bytes_written(place.region, *_bytes(name, place))
    sizes = {
        Region.WEIGHTS: program.weights.size,
        Region.STATE: program.initial.size,
        Region.ARENA: program.arena_bytes,
    }
    for name, place in program.output_places:
        if (
            0 not in place.shape
            and not 0 <= _bytes(name, place)[0] < _bytes(name, place)[1] <= sizes[place.region]
        ):
            raise UnsafeRowError(f"output {name} is outside its memory")
    for byte in (*(byte for _, byte in program.length_registers), program.last_pulse_offset):
        if byte is not None:
            check.record_time_word(byte)
    for byte in (*(byte for _, byte in program.counters), program.fault_total_offset):
        if byte is not None:
            check.record_bytes_written(Region.STATE, byte, byte + WORD_BYTES)


def _bytes(name: str, place: Place) -> tuple[int, int]:
    """Return the first byte of a tensor and the one after its last."""
    span = run(1)
    for size, step in zip(place.shape, place.strides):
        span += run(size, step)
    if span.loops > 1 << 40:
        raise UnsafeRowError(f"{name} has too many elements")
    return place.offset + span.low, place.offset + span.last + place.dtype.itemsize
