"""The functions that an object or a WebAssembly module imports (WebAssembly core specification, 5.5.5)."""

from pulse.support.wording import count_of

MAGIC = b"\0asm"
IMPORT_SECTION = 2
"""The number of the import section."""
FUNCTION, TABLE, MEMORY, GLOBAL = range(4)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.offset = data, 0

    def take(self, count: int) -> bytes:
        self.offset += count
        if self.offset > len(self.data):
            raise ValueError(f"a WebAssembly file of {count_of(len(self.data), 'byte')} is truncated")
        return self.data[self.offset - count : self.offset]

    def read_number(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def skip_limits(self) -> None:
        has_max = self.read_number() & 1
        for _ in range(1 + has_max):
            self.read_number()


def imported_functions(data: bytes) -> set[str]:
    """Return the names of the imported functions. Raises ValueError: the file is not WebAssembly, or damaged."""
    if not data.startswith(MAGIC):
        raise ValueError("not a WebAssembly file")
    reader, names = _Reader(data), set[str]()
    reader.take(8)
    while reader.offset < len(data):
        (kind,) = reader.take(1)
        section = _Reader(reader.take(reader.read_number()))
        if kind != IMPORT_SECTION:
            continue
        for _ in range(section.read_number()):
            section.take(section.read_number())
            name, (kind,) = section.take(section.read_number()).decode(), section.take(1)
            if kind == FUNCTION:
                names.add(name)
                section.read_number()
            elif kind == TABLE:
                section.take(1)
                section.skip_limits()
            elif kind == MEMORY:
                section.skip_limits()
            elif kind == GLOBAL:
                section.take(2)
            else:
                raise ValueError(f"a WebAssembly file is damaged: it imports something of kind {kind}")
    return names
