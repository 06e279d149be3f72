"""A graph or a body under construction: identifiers, stored tensors, and the wires that a body captures."""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

import numpy as np

from pulse.errors import WriteError
from pulse.facts import I64, Array, DType
from pulse.nnef.syntax import Assignment, Call, Expression, Fragment, Name, Parameter
from pulse.support.naming import free_name
from pulse.support.record import record

SizeTexts: TypeAlias = "tuple[int | str, ...]"
"""The text of an axis whose size depends on a symbol; empty if unknown."""
SCALAR, INTEGER, LOGICAL = "scalar", "integer", "logical"
RESERVED = frozenset(
    {
        "version",
        "extension",
        "graph",
        "fragment",
        "tensor",
        "integer",
        "scalar",
        "logical",
        "string",
        "true",
        "false",
    }
    | {"for", "in", "if", "else", "yield", "length_of", "range_of", "shape_of"}
)
"""Reserved words of the language."""


def kind_of(dtype: DType) -> str:
    """Return NNEF's name for a type of entries."""
    if dtype == np.bool_:
        return LOGICAL
    return INTEGER if dtype == I64 else SCALAR


@record(eq=False)
class DocumentParts:
    """The parts of a document that all scopes share.

    used_names  identifiers of the document
    tensors     stored tensors by label, each a .dat file
    labels      type, sizes and bytes of a stored tensor -> its label
    fragments   the bodies of scans
    bounds      integers of the ONNX graph that depend on a symbol -> their text
    """

    used_names: set[str] = field(default_factory=set[str])
    tensors: dict[str, Array] = field(default_factory=dict[str, Array])
    labels: dict[tuple[str, SizeTexts, bytes], str] = field(
        default_factory=dict[tuple[str, SizeTexts, bytes], str]
    )
    fragments: list[Fragment] = field(default_factory=list[Fragment])
    bounds: dict[str, str] = field(default_factory=dict[str, str])

    def identifier(self, name: str) -> str:
        """Take an identifier that no other wire has, ``name`` as far as NNEF allows, and return it."""
        plain = re.sub(r"\W", "_", name, flags=re.ASCII) or "x"
        plain = f"_{plain}" if plain[0].isdigit() or plain in RESERVED else plain
        text = free_name(plain, self.used_names.__contains__, "_")
        self.used_names.add(text)
        return text


@record(eq=False)
class Scope:
    """Assignments in order. A body has an enclosing scope: the wires that it reads from it become parameters.

    shared        the parts of the document that all scopes share
    constants     the stored tensors of the ONNX graph, by name
    facts         type and sizes of every wire, by its name in ONNX
    outer         the enclosing scope
    wire_of_name  identifiers of wires, by their names in ONNX
    body          the assignments
    captured      identifiers of a body -> identifiers of the enclosing scope
    """

    shared: DocumentParts
    constants: Mapping[str, Array]
    facts: Mapping[str, tuple[DType, SizeTexts]]
    outer: "Scope | None" = None
    wire_of_name: dict[str, Name] = field(default_factory=dict[str, Name])
    body: list[Assignment] = field(default_factory=list[Assignment])
    captured: dict[str, Name] = field(default_factory=dict[str, Name])
    _stored: dict[str, Name] = field(default_factory=dict[str, Name])

    def inner(self) -> "Scope":
        """Return a scope for the body of a scan."""
        return Scope(self.shared, self.constants, self.facts, self)

    def fact(self, name: str) -> tuple[DType, SizeTexts]:
        """Return type and sizes of an ONNX wire. Raises WriteError: its sizes are unknown."""
        if name not in self.facts:
            raise WriteError(
                f"{name}: its shape is computed at run time, which NNEF cannot express; fix it with constants"
            )
        return self.facts[name]

    def declare(self, name: str) -> str:
        """Take an identifier for a wire of ONNX that this scope begins with, and return it."""
        identifier = self.shared.identifier(name)
        self.wire_of_name[name] = Name(identifier)
        return identifier

    def wire(self, name: str) -> Name:
        """Return the identifier of a wire of ONNX; its first use stores a constant, or takes the wire into a body."""
        if name in self.wire_of_name:
            return self.wire_of_name[name]
        if name in self.constants:
            wire = self.tensor(self.constants[name], name)
        else:
            assert self.outer is not None, name
            wire = self._capture(self.outer.wire(name))
        self.wire_of_name[name] = wire
        return wire

    def tensor(self, value: Array, name: str) -> Name:
        """Store a tensor once; equal tensors share a variable."""
        if self.outer is not None:
            return self._capture(self.outer.tensor(value, name))
        dense = np.ascontiguousarray(value).reshape(value.shape)
        key = (dense.dtype.str, dense.shape, dense.tobytes())
        label = self.shared.labels.get(key)
        if label is None:
            label = self.shared.labels[key] = self.shared.identifier(name)
            self.shared.tensors[label] = dense
        if label not in self._stored:
            shape: list[Expression] = [int(size) for size in dense.shape]
            call = Call("variable", (), (("shape", shape), ("label", label)), kind_of(dense.dtype))
            self.body.append(Assignment(label, call))
            self._stored[label] = Name(label)
        return self._stored[label]

    def _capture(self, outside: Name) -> Name:
        for inside, name in self.captured.items():
            if name == outside:
                return Name(inside)
        inside = self.shared.identifier(outside.text)
        self.captured[inside] = outside
        return Name(inside)

    def assign(self, target: str | tuple[str, ...], call: Call) -> None:
        """Append an assignment."""
        self.body.append(Assignment(target, call))

    def fragment(self, name: str, parameters: list[str], results: list[str]) -> str:
        """Store the body as a fragment and return its name. Captured wires are its last parameters."""
        identifier = self.shared.identifier(name)
        inputs = tuple(Parameter(parameter, "tensor<scalar>") for parameter in [*parameters, *self.captured])
        outputs = tuple((result, "tensor<scalar>") for result in results)
        self.shared.fragments.append(Fragment(identifier, inputs, outputs, tuple(self.body)))
        return identifier
