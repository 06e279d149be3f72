"""Bounds that depend on a symbol: computed by nodes in ONNX, arithmetic on tract's symbols in the text."""

import re
from collections.abc import Iterable, Mapping, Sequence

from onnx import NodeProto

from pulse.facts import Array, DType
from pulse.nnef.write.graph import SizeTexts

ARITHMETIC = re.compile(r"(?!.*\w\()[\w+*/() -]+")
"""Sizes that tract reads: sums, products and quotients."""
SIGNS: Mapping[str, str] = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}
PASSING_OPERATORS = frozenset({"Unsqueeze", "Squeeze", "Identity"})
"""Operators that do not change a number."""


def bound_texts(
    nodes: Iterable[NodeProto],
    facts: Mapping[str, tuple[DType, SizeTexts]],
    constants: Mapping[str, Array],
) -> dict[str, str]:
    """Return wires of one integer that are computed from the shapes of inputs -> their text."""
    shapes: dict[str, SizeTexts] = {}
    texts: dict[str, str] = {}

    def text_of(name: str) -> str | None:
        if name in constants and constants[name].size == 1 and constants[name].dtype.kind == "i":
            return str(int(constants[name].reshape(())))
        return texts.get(name)

    for node in nodes:
        op_type, inputs = node.op_type, [*node.input]
        text: str | None = None
        if op_type == "Shape" and inputs[0] in facts:
            shapes[node.output[0]] = facts[inputs[0]][1]
        elif op_type == "Gather" and inputs[0] in shapes and inputs[1] in constants:
            text = str(shapes[inputs[0]][int(constants[inputs[1]].reshape(()))])
        elif op_type in SIGNS:
            sides = [text_of(name) for name in inputs]
            if None not in sides:
                text = f"({sides[0]}{SIGNS[op_type]}{sides[1]})"
        elif op_type in PASSING_OPERATORS:
            text = texts.get(inputs[0])
        if text is not None and ARITHMETIC.fullmatch(text):
            texts[node.output[0]] = text
    return texts


def without_bounds(
    nodes: Sequence[NodeProto], texts: Mapping[str, str], outputs: Iterable[str]
) -> list[NodeProto]:
    """Return the nodes that are to be written: not those that only make bounds of slices."""
    needed = set(outputs)
    other_nodes: list[NodeProto] = []
    for node in reversed(nodes):
        makes_bound = node.op_type == "Shape" or all(name in texts for name in node.output)
        if makes_bound and needed.isdisjoint(node.output):
            continue
        other_nodes.append(node)
        reads = [
            name
            for slot, name in enumerate(node.input)
            if node.op_type != "Slice" or slot == 0 or name not in texts
        ]
        needed.update(reads)
    return other_nodes[::-1]
