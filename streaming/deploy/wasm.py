"""The functions that an object or a WebAssembly module imports (WebAssembly core specification, 5.5.5)."""

MAGIC = b"\0asm"
IMPORT_SECTION = 2
"""The number of the import section."""
FUNCTION, TABLE, MEMORY, GLOBAL = range(4)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        self.at += count
        if self.at > len(self.data):
            raise ValueError(f"a WebAssembly file of {len(self.data)} bytes is truncated")
        return self.data[self.at - count : self.at]

    def number(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def limits(self) -> None:
        has_max = self.number() & 1
        for _ in range(1 + has_max):
            self.number()


def imported_functions(data: bytes) -> set[str]:
    """Return the names of the imported functions. Raises ValueError: the file is not WebAssembly, or damaged."""
    if not data.startswith(MAGIC):
        raise ValueError("not a WebAssembly file")
    reader, names = _Reader(data), set[str]()
    reader.take(8)
    while reader.at < len(data):
        (kind,) = reader.take(1)
        section = _Reader(reader.take(reader.number()))
        if kind != IMPORT_SECTION:
            continue
        for _ in range(section.number()):
            section.take(section.number())
            name, (kind,) = section.take(section.number()).decode(), section.take(1)
            if kind == FUNCTION:
                names.add(name)
                section.number()
            elif kind == TABLE:
                section.take(1)
                section.limits()
            elif kind == MEMORY:
                section.limits()
            elif kind == GLOBAL:
                section.take(2)
            else:
                raise ValueError(f"a WebAssembly file is damaged: it imports something of kind {kind}")
    return names
