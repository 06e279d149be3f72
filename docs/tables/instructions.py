"""docs/instructions.md: every instruction with its fields, from the declarations."""

import inspect

from pulse.jit.registry import KERNELS
from pulse.jit.rows.fields import Field, fields_of
from pulse.jit.rows.instruction import Instruction, RowFields
from pulse.program.kernels import families as families

HEAD = """# Instructions

The instructions of a program, which `NativeProgram.listing()` shows, declared in `pulse/program/kernels/`.
A field is an operand that is *read*, *written* or both (*updated*), with the type and the number of its elements where
they are declared; f32, f16, bf16 or int8 weights; a number; or a real. Groups of fields lie inside a row.
"""
ACCESS = {(False, 0): "read rarely", (False, 1): "read", (True, 1): "written", (True, 2): "updated"}


def document() -> str:
    """Return the whole document."""
    kinds: dict[type[Instruction], None] = {}
    for kernel in KERNELS.values():
        if kernel.function.__module__.startswith("pulse.") and kernel.instruction.kernel == kernel.name:
            kinds[kernel.instruction] = None
    parts = [_section(kind, kind.kernel) for kind in sorted(kinds, key=lambda kind: kind.kernel)]
    return "\n".join([HEAD, *parts])


def _section(part: type[RowFields], name: str) -> str:
    text = (inspect.getdoc(part) or "").replace("``", "`")
    return f"## {name}\n\n{text}\n\n{', '.join(map(text_of, fields_of(part).values()))}\n"


def text_of(field: Field) -> str:
    """Return a field as the page shows it."""
    spec, name = field.spec, f"`{field.name}`"
    if spec.kind == "number":
        return name
    if field.group is not None:
        inside = ", ".join(map(text_of, fields_of(field.group).values()))
        return f"{name}{' of each' if spec.kind == 'groups' else ''} ({inside})"
    if spec.kind != "operand":
        return f"{name} ({spec.kind})"
    size = " [" + ", ".join(map(str, spec.count)) + "]" if spec.count else ""
    access = ACCESS.get((spec.written, spec.touched), "updated rarely")
    return f"{name} ({access}, {spec.element or 'any type'}{size})"
