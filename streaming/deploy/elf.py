"""The C functions that an object or a shared library calls: its tables of symbols (System V ABI, chapter 4)."""

import struct

from pulse.support.wording import count_of

MAGIC = b"\x7fELF"
SYMBOL_SECTIONS = (2, 11)
"""The types of sections that are tables of symbols: for linkers, and for loaders."""


def undefined_symbols(data: bytes) -> set[str] | None:
    """Return the names that another object has to define; None if it is not an ELF file, as for WebAssembly.

    Raises ValueError: the file is truncated or damaged.
    """
    if not data.startswith(MAGIC):
        return None
    try:
        return _read_undefined(data)
    except (struct.error, IndexError, ValueError) as error:
        raise ValueError(
            f"an ELF file of {count_of(len(data), 'byte')} is truncated or damaged ({error})"
        ) from error


def _read_undefined(data: bytes) -> set[str]:
    is_64_bit = data[4] == 2
    head, section, symbol = (
        ("<40xQ10xHH", "<4xI16xQQI", "<IBBH16x") if is_64_bit else ("<32xI10xHH", "<4xI8xIII", "<I8xBBH")
    )
    first, size, count = struct.unpack_from(head, data)
    sections: list[tuple[int, int, int, int]] = [
        struct.unpack_from(section, data, first + size * index) for index in range(count)
    ]
    symbols: set[str] = set()
    for section_type, offset, length, link in sections:
        if section_type not in SYMBOL_SECTIONS:
            continue
        names = sections[link][1]
        for name, *_, defined in struct.iter_unpack(symbol, data[offset : offset + length]):
            if name and not defined:
                text = data[names + name : data.index(b"\0", names + name)].decode()
                symbols.add(text.partition("@")[0])  # without the version of the library
    return symbols
