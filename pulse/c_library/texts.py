"""The header and the C source of a library, from their templates."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from itertools import accumulate
from math import prod
from pathlib import Path
from zlib import adler32

import numpy as np

from pulse.c_library.deployed import LibraryContents
from pulse.c_library.expressions import expression, longest
from pulse.interface import Port
from pulse.program.table.memory import align
from pulse.program.table.place import Place
from pulse.support.printable import printable
from pulse.version import __version__

TEMPLATES = Path(__file__).parent / "templates"
IDENTITY = b"pulse/1\0"


def fill(template: str, model: LibraryContents, extra_names: Mapping[str, str] | None = None) -> str:
    """Fill a template with the model's names."""
    text = (TEMPLATES / template).read_text()
    title = printable(model.title).replace("*/", "* /")
    names = {"NAME": model.name, "UPPER": model.name.upper(), "TITLE": title, "VERSION": __version__}
    for key, value in {**names, **(extra_names or {})}.items():
        text = text.replace(f"@{key}@", value)
    return text


def header(model: LibraryContents) -> str:
    return fill(
        "header.h", model, {"WEIGHTS": fill("weights/external.h", model) if model.external_weights else ""}
    )


def source(model: LibraryContents, kernels: Mapping[str, str]) -> str:
    """Return the C source; ``kernels`` has the symbol of each kernel. Raises WriteError: a length is not known."""
    parts = {
        "DATA": _data(model, kernels),
        "LENGTHS": _lengths(model),
        "RUN": _run(model, kernels),
        "WEIGHTS": _weights(model),
    }
    return fill("shell.c", model, parts)


def weights_symbol(model: LibraryContents) -> str:
    """Return the C symbol of the weights."""
    return f"{model.name}_weights"


def rows_symbol(model: LibraryContents) -> str:
    """Return the C symbol of the rows."""
    return f"{model.name}_rows"


def initial_symbol(model: LibraryContents) -> str:
    """Return the C symbol of the pieces of the first state."""
    return f"{model.name}_initial"


def _weights(model: LibraryContents) -> str:
    """Return the C source that finds the weights: in the library, or at an address from the caller."""
    if not model.external_weights:
        return fill("weights/embedded.c", model, {"SYMBOL": weights_symbol(model)})
    weights = model.program.weights
    return fill(
        "weights/external.c",
        model,
        {"BYTES": str(weights.size), "CHECKSUM": f"{adler32(weights.tobytes()):#010x}"},
    )


def _data(model: LibraryContents, kernels: Mapping[str, str]) -> str:
    """Return the C source of numbers, tables, and symbols of other objects."""
    waits, ends = model.awaited_wires, model.program.ends
    symbols = {"rows": rows_symbol(model), "initial": initial_symbol(model)}
    starts = [0, *accumulate(piece.data.size for piece in model.pieces)]
    pieces = [(piece.to, start, piece.data.size) for piece, start in zip(model.pieces, starts)]
    return "\n".join(
        [
            *(f"#define {name} {symbol}" for name, symbol in symbols.items()),
            "extern HIDDEN const unsigned char initial[];",
            "extern HIDDEN const int64_t rows[];",
            *(
                f"HIDDEN void *{kernels[kernel.name]}(const int64_t *, const int64_t *); /* {kernel.name} */"
                for kernel in model.kernels
            ),
            "",
            f"enum {{ {', '.join(f'{name} = {value}' for name, value in _counts(model).items())} }};",
            *(f"#define {name} INT64_C({value})" for name, value in _sizes(model).items()),
            "",
            "struct place { /* of a port's tensor: dims, and bytes from one element to the next */",
            "  int region, width, axes, axis, streams;",
            "  int64_t offset, frames, delay, dims[AXES], steps[AXES];",
            "};",
            f"static const struct place places[] = {_table(map(_place_text, model.ports, model.places))};",
            _ports(model),
            "static const struct { int64_t to, from, bytes; } pieces[] = "
            + _table([f"{{{to}, {start}, {size}}}" for to, start, size in pieces] or ["{0, 0, 0}"])
            + ";",
            "static const struct { int64_t frames, offset; } waits[] = "
            + _table([f"{{{wire.frames}, {wire.offset}}}" for wire in waits] or ["{1, 0}"])
            + ";",
            f"static const int64_t ends[] = {_row([byte for _, byte in ends] or [0])};",
            f"static const unsigned char identity[24] = {_row(IDENTITY + _fingerprint(model))};",
        ]
    )


def _counts(model: LibraryContents) -> dict[str, int]:
    """Return the numbers of ports, of the lengths of their kinds, and of pieces."""
    waits, ends = len(model.awaited_wires), len(model.program.ends)
    return {
        "INPUTS": len(model.program.inputs),
        "OUTPUTS": len(model.program.outputs),
        "WAITS": waits,
        "ENDS": ends,
        "ASSUMPTIONS": len(model.assumptions),
        "FIRST_WAIT": len(model.ports),
        "FIRST_END": len(model.ports) + waits,
        "FIRST_ASSUMPTION": len(model.ports) + waits + ends,
        "PIECES": len(model.pieces),
        "AXES": max([1, *(len(port.shape) for port in model.ports)]),
    }


def _sizes(model: LibraryContents) -> dict[str, int]:
    """Return the frames of a pulse, the longest stream, and the sizes of memories in bytes."""
    program = model.program
    return {
        "PULSE": program.pulse,
        "LIMIT": min([longest(model.lengths), *([] if program.limit is None else [program.limit])]),
        "STATE_BYTES": program.state_bytes,
        "STATE_ROOM": align(program.state_bytes),
        "ARENA_BYTES": align(program.arena_bytes),
        "FAULTS_AT": -1 if program.total_at is None else program.total_at,
        "LAST_AT": -1 if program.last_at is None else program.last_at,
    }


def _fingerprint(model: LibraryContents) -> bytes:
    """Return the fingerprint of Python's snapshots without constants, so that each reads the other's."""
    return blake2b(model.program.fingerprint, digest_size=16).digest()


def _place_text(port: Port, place: Place) -> str:
    axis = -1 if port.axis is None else port.axis
    numbers = f"{int(place.region)}, {place.dtype.itemsize}, {len(place.shape)}, {axis}, {int(port.streams)}"
    more = f"{place.offset}, {port.frames}, {port.delay}"
    return f"{{{numbers}, {more}, {_row(place.shape)}, {_row(place.strides)}}}"


def _ports(model: LibraryContents) -> str:
    lines: list[str] = []
    for index, port in enumerate(model.ports):
        lines.append(f"static const size_t dims{index}[] = {_row(port.shape or (1,))};")
    inputs = len(model.program.inputs)
    rows = [
        f'{{{_text(port.name)}, "{np.dtype(port.dtype).name}", {int(index >= inputs)}, {len(port.shape)}, '
        f"dims{index}, {prod(port.shape) * port.dtype.itemsize}, {-1 if port.axis is None else port.axis}, "
        f"{port.frames}, {port.delay}, {model.rate_of(port)!r}}}"
        for index, port in enumerate(model.ports)
    ]
    return "\n".join([*lines, f"static const {model.name}_port ports[] = {_table(rows)};"])


def _lengths(model: LibraryContents) -> str:
    cases = [f"    case {index}: return {expression(length)};" for index, length in enumerate(model.lengths)]
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


def _run(model: LibraryContents, kernels: Mapping[str, str]) -> str:
    return "\n".join(f"  {kernels[kernel.name]}(rows + {start}, bases);" for kernel, start in model.calls)


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
