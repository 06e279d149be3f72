"""The header and the C source of a library, from their templates."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from itertools import accumulate
from math import prod
from pathlib import Path
from zlib import adler32

import numpy as np

from pulse.c_library.expressions import expression, longest
from pulse.c_library.library_contents import LibraryContents
from pulse.interface import Port
from pulse.program.table.memory import align
from pulse.program.table.place import Place
from pulse.support.printable import printable
from pulse.version import __version__

TEMPLATES = Path(__file__).parent / "templates"
IDENTITY = b"pulse/1\0"


def fill(template: str, contents: LibraryContents, extra_names: Mapping[str, str] | None = None) -> str:
    """Fill a template with the names of a library."""
    text = (TEMPLATES / template).read_text()
    title = printable(contents.title).replace("*/", "* /")
    names = {"NAME": contents.name, "UPPER": contents.name.upper(), "TITLE": title, "VERSION": __version__}
    for key, value in {**names, **(extra_names or {})}.items():
        text = text.replace(f"@{key}@", value)
    return text


def header(contents: LibraryContents) -> str:
    return fill(
        "header.h",
        contents,
        {"WEIGHTS": fill("weights/external.h", contents) if contents.external_weights else ""},
    )


def source(contents: LibraryContents, kernels: Mapping[str, str]) -> str:
    """Return the C source; ``kernels`` has the symbol of each kernel. Raises WriteError: a length is not known."""
    parts = {
        "DATA": _data(contents, kernels),
        "LENGTHS": _lengths(contents),
        "RUN": _run(contents, kernels),
        "WEIGHTS": _weights(contents),
    }
    return fill("shell.c", contents, parts)


def data_symbol(contents: LibraryContents, name: str) -> str:
    """Return the C symbol of data: the ``weights``, the ``rows``, or the ``initial`` pieces of the first state."""
    return f"{contents.name}_{name}"


def _weights(contents: LibraryContents) -> str:
    """Return the C source that finds the weights: in the library, or at an address from the caller."""
    if not contents.external_weights:
        return fill("weights/embedded.c", contents, {"SYMBOL": data_symbol(contents, "weights")})
    weights = contents.program.weights
    return fill(
        "weights/external.c",
        contents,
        {"BYTES": str(weights.size), "CHECKSUM": f"{adler32(weights.tobytes()):#010x}"},
    )


def _data(contents: LibraryContents, kernels: Mapping[str, str]) -> str:
    """Return the C source of numbers, tables, and symbols of other objects."""
    waits, ends = contents.awaited_wires, contents.program.length_registers
    starts = [0, *accumulate(piece.data.size for piece in contents.pieces)]
    pieces = [(piece.offset, start, piece.data.size) for piece, start in zip(contents.pieces, starts)]
    return "\n".join(
        [
            *(f"#define {name} {data_symbol(contents, name)}" for name in ("rows", "initial")),
            "extern HIDDEN const unsigned char initial[];",
            "extern HIDDEN const int64_t rows[];",
            *(
                f"HIDDEN void *{kernels[kernel.name]}(const int64_t *, const int64_t *); /* {kernel.name} */"
                for kernel in contents.kernels
            ),
            "",
            f"enum {{ {', '.join(f'{name} = {value}' for name, value in _counts(contents).items())} }};",
            *(f"#define {name} INT64_C({value})" for name, value in _sizes(contents).items()),
            "",
            "struct place { /* of a port's tensor: dims, and bytes from one element to the next */",
            "  int region, width, axes, axis, streams;",
            "  int64_t offset, frames, delay, dims[AXES], steps[AXES];",
            "};",
            f"static const struct place places[] = {_table(map(_place_text, contents.ports, contents.places))};",
            _ports(contents),
            "static const struct { int64_t to, from, bytes; } pieces[] = "
            + _table([f"{{{to}, {start}, {size}}}" for to, start, size in pieces] or ["{0, 0, 0}"])
            + ";",
            "static const struct { int64_t frames, offset; } waits[] = "
            + _table([f"{{{wire.frames}, {wire.offset}}}" for wire in waits] or ["{1, 0}"])
            + ";",
            f"static const int64_t ends[] = {_row([byte for _, byte in ends] or [0])};",
            f"static const unsigned char identity[24] = {_row(IDENTITY + _fingerprint(contents))};",
        ]
    )


def _counts(contents: LibraryContents) -> dict[str, int]:
    """Return the numbers of ports, of the lengths of their kinds, and of pieces."""
    waits, ends = len(contents.awaited_wires), len(contents.program.length_registers)
    return {
        "INPUTS": len(contents.program.inputs),
        "OUTPUTS": len(contents.program.outputs),
        "WAITS": waits,
        "ENDS": ends,
        "ASSUMPTIONS": len(contents.assumptions),
        "FIRST_WAIT": len(contents.ports),
        "FIRST_END": len(contents.ports) + waits,
        "FIRST_ASSUMPTION": len(contents.ports) + waits + ends,
        "PIECES": len(contents.pieces),
        "AXES": max([1, *(len(port.shape) for port in contents.ports)]),
    }


def _sizes(contents: LibraryContents) -> dict[str, int]:
    """Return the frames of a pulse, the longest stream, and the sizes of memories in bytes."""
    program = contents.program
    return {
        "PULSE": program.pulse,
        "LIMIT": min([longest(contents.lengths), *([] if program.limit is None else [program.limit])]),
        "STATE_BYTES": program.state_bytes,
        "STATE_ROOM": align(program.state_bytes),
        "ARENA_BYTES": align(program.arena_bytes),
        "FAULTS_AT": -1 if program.fault_total_offset is None else program.fault_total_offset,
        "LAST_AT": -1 if program.last_pulse_offset is None else program.last_pulse_offset,
    }


def _fingerprint(contents: LibraryContents) -> bytes:
    """Return the fingerprint of Python's snapshots without constants, so that each reads the other's."""
    return blake2b(contents.program.fingerprint, digest_size=16).digest()


def _place_text(port: Port, place: Place) -> str:
    axis = -1 if port.axis is None else port.axis
    numbers = f"{int(place.region)}, {place.dtype.itemsize}, {len(place.shape)}, {axis}, {int(port.streams)}"
    more = f"{place.offset}, {port.frames}, {port.delay}"
    return f"{{{numbers}, {more}, {_row(place.shape)}, {_row(place.strides)}}}"


def _ports(contents: LibraryContents) -> str:
    lines: list[str] = []
    for index, port in enumerate(contents.ports):
        lines.append(f"static const size_t dims{index}[] = {_row(port.shape or (1,))};")
    inputs = len(contents.program.inputs)
    rows = [
        f'{{{_text(port.name)}, "{np.dtype(port.dtype).name}", {int(index >= inputs)}, {len(port.shape)}, '
        f"dims{index}, {prod(port.shape) * port.dtype.itemsize}, {-1 if port.axis is None else port.axis}, "
        f"{port.frames}, {port.delay}, {contents.rate_of(port)!r}}}"
        for index, port in enumerate(contents.ports)
    ]
    return "\n".join([*lines, f"static const {contents.name}_port ports[] = {_table(rows)};"])


def _lengths(contents: LibraryContents) -> str:
    cases = [
        f"    case {index}: return {expression(length)};" for index, length in enumerate(contents.lengths)
    ]
    return "\n".join(
        [
            "/* Lengths in a stream of n frames: of the ports, of the wires that the end waits for, of the ends;",
            "   then whether the model takes n frames. */",
            "static int64_t length(int which, int64_t n) {",
            "  switch (which) {",
            *cases,
            "  }",
            "  return n;",
            "}",
        ]
    )


def _run(contents: LibraryContents, kernels: Mapping[str, str]) -> str:
    return "\n".join(f"  {kernels[kernel.name]}(rows + {start}, bases);" for kernel, start in contents.calls)


def _row(values: Iterable[int]) -> str:
    return "{" + (", ".join(map(str, values)) or "0") + "}"


def _table(rows: Iterable[str]) -> str:
    return "{\n" + "".join(f"  {row},\n" for row in rows) + "}"


def _text(text: str) -> str:
    """Return a string of C."""
    escaped = (
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
        for byte in text.encode()
    )
    return f'"{"".join(escaped)}"'
