"""A program read from a file. Running it needs neither the model nor numba."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from pulse.dim import Symbol, TDim, scope_of
from pulse.errors import DimError, LoadError
from pulse.facts import DTYPES, MAX_AXES
from pulse.interface import Port
from pulse.jit.registry import KERNEL_PLUGINS, KERNELS, Kernel
from pulse.ops.check import Check, Site
from pulse.program.file.container import Container, open_container
from pulse.program.file.json_object import MAX_OFFSET, JsonObject
from pulse.program.file.program_file import layout_checksum, write_file
from pulse.program.file.proof_note import ProofNote
from pulse.program.file.safety import require_safe
from pulse.program.file.stored_interface import read_interface
from pulse.program.native.kernel_program import KernelProgram
from pulse.program.table.memory import Region
from pulse.program.table.place import Place
from pulse.rounding import Rounding
from pulse.support.bounds import FAR_FRAMES, UNBOUNDED
from pulse.support.collector import fewer_collections
from pulse.support.plugins import load_plugins
from pulse.support.wording import count_of
from pulse.version import __version__

if TYPE_CHECKING:
    from pulse.program.table.cost import RowNote

OWN_KERNELS = "pulse.program.kernels."
"""The package that declares this project's kernels."""


class StoredProgram(KernelProgram):
    """A program from a file: checked rows over memory-mapped weights.

    container  the file, or its bytes
    proof      the proof that was made at compilation; None if there was none
    """

    def __init__(self, container: Container) -> None:
        """Raises LoadError: the header or a row is not valid, or a kernel is not installed."""
        header = container.header
        version = header.text("version")
        if version != __version__:
            raise LoadError(
                f"{container.name}: was compiled by pulse {version}, and this is pulse {__version__}: compile the "
                "model again with pulse compile"
            )
        model = read_interface(header, header.values.get("chunks"))
        super().__init__(model, Rounding(header.text("form"), header.text("activations")))
        self.name = container.name
        self.metadata: dict[str, str] = header.mapping("metadata", str)
        self.detected = tuple((kind, text) for kind, text in _read_detections(header))
        note = header.optional_child("proof")
        self.proof = None if note is None else ProofNote.read(note)
        self._container = container
        self._fingerprint = _read_fingerprint(header)
        self.weights = container.section("weights")
        self.initial = container.section("initial")
        self.arena_bytes = header.number("arena_bytes", 1)
        self.input_places = _read_places(header, "input_places", model.inputs)
        self.output_places = _read_places(header, "output_places", model.outputs)
        self.fetched_places = ()
        self.length_registers = tuple(
            _read_length_register(end, model.symbol) for end in header.children("length_registers")
        )
        self.counters = tuple(map(_read_counter, header.children("counters")))
        self.fault_total_offset = header.optional_number("fault_total_offset")
        self.last_pulse_offset = header.optional_number("last_pulse_offset")
        self.specialised_kernels = header.texts("specialised_kernels")
        kernels = [_find_kernel(kernel) for kernel in header.children("kernels")]
        self.kernel_names = [kernel.name for kernel in kernels]
        self.unlinked, self._kernel_of_row = _number_kernels(container, kernels, header.number("rows"))
        try:
            require_safe(self)
        except LoadError as error:
            raise LoadError(f"{container.name}: {error}") from None

    @property
    def row_count(self) -> int:
        return len(self._kernel_of_row)

    def _digest(self) -> bytes:
        return self._fingerprint

    @property
    def notes(self) -> "Sequence[RowNote]":
        """The note of each instruction, for reports. Raises LoadError: the file has none."""
        rows = self._read_notes("rows")
        if len(rows) != self.row_count:
            raise self._invalid_notes()
        return [self._note(row, kernel) for row, kernel in zip(rows, self._kernel_of_row)]

    def listing(self) -> list[str]:
        lines = self._read_notes("listing")
        if not all(isinstance(line, str) for line in lines):
            raise self._invalid_notes()
        return lines

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the same file again. Raises WriteError: it cannot be written."""
        write_file(self._container.content.tobytes(), path)

    def __reduce__(self) -> tuple[Any, ...]:
        return _read_again, (self._container.content.tobytes(), self.threads)

    def _note(self, row: Any, kernel: Kernel) -> "RowNote":
        from pulse.program.table.cost import Cost, RowNote

        fields: list[Any] = cast(list[Any], row) if isinstance(row, list) else []
        if [type(value) for value in fields] != [str, str, int, int, int, int]:
            raise self._invalid_notes()
        return RowNote(fields[0], fields[1], kernel.name, Cost(*fields[2:]))

    def _read_notes(self, key: str) -> list[Any]:
        try:
            notes: Any = json.loads(self._container.section("notes").tobytes())
        except (ValueError, RecursionError):
            raise self._invalid_notes() from None
        note: Any = cast(dict[str, Any], notes).get(key) if isinstance(notes, dict) else None
        if not isinstance(note, list):
            raise self._invalid_notes()
        return cast(list[Any], note)

    def _invalid_notes(self) -> LoadError:
        return LoadError(
            f"{self.name}: its notes on instructions are missing or invalid; compile the model again"
        )


def read_program(source: "str | PathLike[str] | bytes") -> StoredProgram:
    """Read a program from its file or from bytes.

    The file must not change while the program is in use, since its weights are memory-mapped. ``save`` replaces a file
    rather than writing into it.

    Raises LoadError: it is not a program, damaged, of another version, or not safe to run; or a kernel is not installed
    """
    with fewer_collections():
        return StoredProgram(open_container(source if isinstance(source, bytes) else os.fspath(source)))


def _read_again(content: bytes, threads: int) -> StoredProgram:
    return read_program(content).with_threads(threads)


def _read_detections(header: JsonObject) -> list[list[str]]:
    pairs: Any = header.values.get("detected")
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list) and [type(text) for text in cast(list[Any], pair)] == [str, str]
        for pair in cast(list[Any], pairs)
    ):
        raise header.error("detected")
    return cast(list[list[str]], pairs)


def _read_fingerprint(header: JsonObject) -> bytes:
    try:
        digest = bytes.fromhex(header.text("fingerprint", 32))
    except ValueError:
        digest = b""
    if len(digest) != 16:
        raise header.error("fingerprint")
    return digest


def _read_places(header: JsonObject, key: str, ports: Sequence[Port]) -> tuple[tuple[str, Place], ...]:
    places = [(part.text("name"), _read_place(part)) for part in header.children(key)]
    described = [(name, place.shape, place.dtype) for name, place in places]
    if described != [(port.name, port.shape, port.dtype) for port in ports]:
        raise LoadError(f"{header.name}: {key} and the ports differ; compile the model again")
    return tuple(places)


def _read_place(entry: JsonObject) -> Place:
    shape = entry.numbers("shape", 0, 1 << 31)
    strides = entry.numbers("strides", -MAX_OFFSET, MAX_OFFSET)
    dtype = DTYPES.get(entry.text("dtype"))
    if dtype is None or len(shape) != len(strides) or len(shape) > MAX_AXES:
        raise LoadError(f"{entry.name}: a tensor has no valid type or shape; compile the model again")
    return Place(Region(entry.number("region", 0, 2)), entry.number("offset"), shape, strides, dtype)


def _read_length_register(entry: JsonObject, symbol: Symbol) -> tuple[TDim, int]:
    try:
        length = scope_of(symbol).parse(entry.text("length", 1 << 10))
        far_length = abs(length.eval({symbol: FAR_FRAMES})) if length.symbols <= {symbol} else 2 * UNBOUNDED
    except DimError as error:
        raise LoadError(f"{entry.name}: {error}; compile the model again") from None
    if far_length > UNBOUNDED:
        raise LoadError(f"{entry.name}: the length {length} is too large; compile the model again")
    return length, entry.number("byte")


def _read_counter(entry: JsonObject) -> tuple[Site, int]:
    check = entry.child("check")
    numbers = {key: check.number(key, -(1 << 63), 1 << 64) for key in ("slot", "low", "high")}
    column = check.optional_number("column")
    runtime_check = Check(**numbers, column=column, nonzero=check.flag("nonzero"), kind=check.text("kind"))
    return (entry.text("node"), entry.text("op"), runtime_check), entry.number("byte")


def _is_ours(module: str) -> bool:
    """Return whether a name can belong to a module in ``OWN_KERNELS``, or in a package there."""
    inside = module.removeprefix(OWN_KERNELS)
    return inside != module and all(part.isidentifier() for part in inside.split("."))


def _find_kernel(entry: JsonObject) -> Kernel:
    """Find a kernel of this package or of an installed plugin by name. A file cannot choose what is imported."""
    name, module = entry.text("name"), entry.text("module")
    if name not in KERNELS and _is_ours(module):
        with suppress(ImportError):  # reported below, like every missing kernel
            import_module(module)
    if name not in KERNELS:
        load_plugins(KERNEL_PLUGINS)
    kernel = KERNELS.get(name)
    if kernel is None and module.startswith(OWN_KERNELS):
        raise LoadError(
            f"{entry.name}: this version has no kernel {name} in {module}; compile the model again with pulse compile"
        )
    if kernel is None:
        raise LoadError(
            f"{entry.name}: its kernel {name} of {module} is not installed here; install the package that declares "
            f"it with an entry point {KERNEL_PLUGINS}, or import it first"
        )
    if layout_checksum(kernel) != entry.text("layout"):
        raise LoadError(
            f"{entry.name}: kernel {name} has another row layout in this version; compile the model again"
        )
    return kernel


def _number_kernels(
    container: Container, kernels: Sequence[Kernel], rows: int
) -> tuple[NDArray[np.int64], list[Kernel]]:
    """Return the table with the kernel numbers of this process, and the kernel of each row."""
    section = container.section("table")
    if section.size % 8:
        raise LoadError(f"{container.name}: its table is not a multiple of 8 bytes; compile the model again")
    table = section.view("<i8").astype(np.int64)
    words, start, row_kernels = cast(list[int], table.tolist()), 0, list[Kernel]()
    while start < len(words):
        length = words[start + 1] if start + 1 < len(words) else 0
        if length < 2 or start + length > len(words) or not 0 <= words[start] < len(kernels):
            raise LoadError(f"{container.name}: row {len(row_kernels)} is not valid; compile the model again")
        row_kernels.append(kernels[words[start]])
        table[start] = row_kernels[-1].number
        start += length
    if len(row_kernels) != rows:
        raise LoadError(
            f"{container.name}: has {count_of(len(row_kernels), 'row')}, but its header has {rows}"
        )
    return table, row_kernels
