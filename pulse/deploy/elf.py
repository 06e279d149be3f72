"""The C functions that an object file calls, read from its table of symbols (System V ABI, chapter 4)."""

import struct

MAGIC = b"\x7fELF"
SYMBOLS = 2
"""The type of a section that is a table of symbols."""


def undefined_symbols(data: bytes) -> set[str] | None:
    """The names that another object has to define; None if it is no ELF file, as for WebAssembly."""
    if not data.startswith(MAGIC):
        return None
    wide = data[4] == 2
    head, section, symbol = (
        ("<40xQ10xHH", "<4xI16xQQI", "<IBBH16x") if wide else ("<32xI10xHH", "<4xI8xIII", "<I8xBBH")
    )
    first, size, count = struct.unpack_from(head, data)
    sections: list[tuple[int, int, int, int]] = [
        struct.unpack_from(section, data, first + size * number) for number in range(count)
    ]
    found: set[str] = set()
    for kind, offset, length, link in sections:
        if kind != SYMBOLS:
            continue
        names = sections[link][1]
        for name, *_, defined in struct.iter_unpack(symbol, data[offset : offset + length]):
            if name and not defined:
                found.add(data[names + name : data.index(b"\0", names + name)].decode())
    return found
