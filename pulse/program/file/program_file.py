"""Write a program to a file: ports, tensor places, rows, weights, the initial state, and the result of a proof."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from os import PathLike
from typing import Any

import numpy as np

from pulse.errors import WriteError, file_errors
from pulse.facts import dtype_name
from pulse.jit.registry import Kernel, kernel_of
from pulse.jit.rows.fields import fields_of
from pulse.jit.rows.instruction import RowFields
from pulse.ops.check import Site
from pulse.program.file.container import encode
from pulse.program.file.proof_note import ProofNote
from pulse.program.file.safety import require_safe
from pulse.program.file.stored_interface import write_interface
from pulse.program.native.native_executable import NativeExecutable
from pulse.program.table.place import Place
from pulse.program.table.table import row_starts
from pulse.support.blake2 import blake2b
from pulse.support.replaced_file import replace_file
from pulse.version import __version__

MAX_TEXT_LENGTH = 4096
"""Maximum number of characters of a metadata value; longer values are not stored."""


def encode_program(
    program: NativeExecutable,
    metadata: Mapping[str, str],
    proof: ProofNote | None,
    chunks: Any = None,
    detected: tuple[tuple[str, str], ...] = (),
) -> bytes:
    """Return the content of its file.

    metadata          metadata of the model's file, such as ``sample_rate``; long texts are omitted
    proof             the result of a proof; None: nothing has been proved
    chunks, detected  how a chunk model is called, for reports
    Raises            WriteError: inner wires are fetched, or a row may reach outside its memory
    """
    if program.fetched_places:
        raise WriteError(
            f"{program.model.title}: a program that fetches inner wires cannot be saved; omit fetches"
        )
    require_safe(program)
    kernels: dict[Kernel, int] = {}
    table = program.unlinked.copy()
    for start in row_starts(table):
        table[start] = kernels.setdefault(kernel_of(int(table[start])), len(kernels))
    notes = {
        "rows": [[note.node, note.op, *vars(note.cost).values()] for note in program.notes],
        "listing": program.listing(),
    }
    header = {
        "version": __version__,
        **write_interface(program.model),
        "form": program.form,
        "activations": program.activations,
        "fingerprint": program.fingerprint.hex(),
        "rows": program.row_count,
        "arena_bytes": program.arena_bytes,
        "kernels": [
            {"name": kernel.name, "module": kernel.function.__module__, "layout": layout_checksum(kernel)}
            for kernel in kernels
        ],
        "specialised_kernels": list(program.specialised_kernels),
        "input_places": [_write_place(name, place) for name, place in program.input_places],
        "output_places": [_write_place(name, place) for name, place in program.output_places],
        "length_registers": [
            {"length": str(length), "byte": byte} for length, byte in program.length_registers
        ],
        "counters": [_write_site(site, byte) for site, byte in program.counters],
        "fault_total_offset": program.fault_total_offset,
        "last_pulse_offset": program.last_pulse_offset,
        "metadata": {name: text for name, text in metadata.items() if len(text) <= MAX_TEXT_LENGTH},
        "chunks": chunks,
        "detected": [list(pair) for pair in detected],
        "proof": None if proof is None else asdict(proof),
    }
    sections = {
        "table": table.astype("<i8"),
        "initial": program.initial,
        "notes": np.frombuffer(json.dumps(notes).encode(), np.uint8),
        "weights": program.weights,
    }
    return encode(header, sections)


def write_file(content: bytes, path: "str | PathLike[str]") -> None:
    """Write a whole file atomically, replacing an existing one, or the one that a symbolic link is for.

    A link to a device is replaced. Raises WriteError: the file cannot be written
    """
    is_file_link = os.path.islink(path) and (os.path.isfile(path) or not os.path.exists(path))
    with file_errors(os.fspath(path), "written", WriteError, "check the folder"):
        replace_file(os.path.realpath(path) if is_file_link else path, content)


def layout_checksum(kernel: Kernel) -> str:
    """Return a checksum of the layout of a kernel's rows, which differs between incompatible versions."""
    return blake2b(repr(_fields(kernel.instruction)).encode(), digest_size=8).hexdigest()


def _fields(group: type[RowFields]) -> list[Any]:
    return [
        (field.name, field.spec.kind, field.spec.element, field.spec.written, field.spec.count, field.word)
        if field.group is None
        else (field.name, field.spec.kind, field.spec.count, field.word, _fields(field.group))
        for field in fields_of(group).values()
    ]


def _write_place(name: str, place: Place) -> dict[str, Any]:
    return {
        "name": name,
        "region": int(place.region),
        "offset": place.offset,
        "shape": list(place.shape),
        "strides": list(place.strides),
        "dtype": dtype_name(place.dtype),
    }


def _write_site(site: Site, byte: int) -> dict[str, Any]:
    node, op, check = site
    return {"node": node, "op": op, "byte": byte, "check": dict(vars(check))}
