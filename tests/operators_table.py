"""The table of operators, made from the code: ``python -m tests.operators_table`` writes docs/operators.md.

For each operator of the reader, its cases are loaded with each axis of each input as the stream, and what the
pulsifier finds is collected.
"""

import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pulse.errors import CompileError, FactError, LoadError, PulseError, PulsifyError
from pulse.facts import Array, dtype_name
from pulse.model import load
from pulse.onnx.registry import TRANSLATORS
from pulse.ops.relation import Pointwise, relation_name
from pulse.program.compiler import compile_model
from pulse.pulsify.driver import pulsify
from pulse.pulsify.relate import relate
from tests.laws.test_fuzzed_pulsify import all_cases

DOCUMENT = Path(__file__).parents[1] / "docs" / "operators.md"
CASES_FOR_EACH = 8
MANY = 8
"""A case of more operators speaks for those only that no other case has."""
HEAD = """# Operators

Made by `python -m tests.operators_table` from the reader, the cases of the tests and the pulsifier; a test keeps it
true. For each ONNX operator: how it streams, over the axes on which it does (*pointwise*, *window*, *ends*,
*positional*, *cumulative*, *banded*, *tail*; see `pulse/ops/relation.py`), whether it is refused over some axis
(*whole*), and whether all that it becomes has kernels for f32 (else it runs with `backend="numpy"`).

Opset 7 and up. *no streaming case* means that the tests have no case of it with an axis that can stream: an operator
on shapes or constants, mostly.

| operator | streams as | refused over some axis | kernels |
|---|---|---|---|
"""


def axes_of(feeds: dict[str, Array]) -> Iterator[dict[str, str]]:
    """Input shapes with one axis at a time called T."""
    for name, array in feeds.items():
        for axis in range(array.ndim):
            yield {
                other: ",".join(
                    [
                        *(
                            "T" if (other, at) == (name, axis) else str(size)
                            for at, size in enumerate(value.shape)
                        ),
                        dtype_name(value.dtype),
                    ]
                )
                for other, value in feeds.items()
            }


def attempts() -> dict[str, tuple[set[str], bool, bool | None]]:
    """Operator -> relations it was given, whether it was refused, whether it compiled."""
    relations: dict[str, set[str]] = defaultdict(set)
    refused: dict[str, bool] = defaultdict(bool)
    compiled: dict[str, bool] = {}
    tried: dict[str, int] = defaultdict(int)
    for _, proto, feeds in all_cases():
        operators = {node.op_type for node in proto.graph.node}
        most = 1 if len(operators) > MANY else CASES_FOR_EACH
        main = [operator for operator in operators if tried[operator] < most]
        if not main or not any(array.ndim for array in feeds.values()):
            continue
        for operator in operators:
            tried[operator] += 1
        for specs in axes_of(feeds):
            streams, refusal, kernels = attempt(proto, specs)
            for operator in main:
                relations[operator] |= streams
                refused[operator] |= refusal
                if kernels is not None:
                    compiled[operator] = compiled.get(operator, True) and kernels
    return {name: (relations[name], refused[name], compiled.get(name)) for name in TRANSLATORS}


def attempt(proto: Any, specs: dict[str, str]) -> tuple[set[str], bool, bool | None]:
    """One case over one axis: relations, whether refused, whether compiled (None: it never came to that)."""
    try:
        model = pulsify(load(proto, inputs=specs).analyse())
        found = relate(model.typed, model.symbol).relations.values()
    except PulsifyError:
        return set(), True, None
    except (LoadError, FactError, PulseError):
        return set(), False, None
    names = {relation_name(relation) for relation in found if not isinstance(relation, Pointwise)}
    try:
        compile_model(model)
    except CompileError:
        return names or {"pointwise"}, False, False
    return names or {"pointwise"}, False, True


def table() -> str:
    """The whole document."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = attempts()
    lines: list[str] = []
    for name, (relations, refused, compiled) in sorted(found.items()):
        streams = ", ".join(sorted(relations)) or "no streaming case"
        kernels = "" if compiled is None else "yes" if compiled else "partly"
        lines.append(f"| {name} | {streams} | {'yes' if refused else ''} | {kernels} |")
    return f"{HEAD}{chr(10).join(lines)}\n\n{len(lines)} operators.\n"


if __name__ == "__main__":
    DOCUMENT.write_text(table())
