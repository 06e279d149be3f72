"""docs/tflite_operators.md: the operators of .tflite files that are read."""

from docs.tables.markdown import table
from pulse.tflite.operators import families as families
from pulse.tflite.registry import STATES, TRANSLATORS
from tests.pulse.tflite.cases.families import all_cases

HEAD = """# Operators of TFLite

Made by `python -m docs.tables` from the reader and the cases of the tests; a test keeps it true. *floats* and *codes*
are the cases in which the operator is compared with LiteRT: on f32, and on int8, uint8 or int16. *state* says that it
writes a variable of the file. Layers with state, loops and calls are compared in
`tests/pulse/tflite/test_models.py`. `docs/tflite.md` tells what is exact.
"""
FAMILIES = {"CALL", "CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"}


def document() -> str:
    """The page."""
    compared: dict[str, set[bool]] = {}
    for case in all_cases():
        for operator in case.graph.operators:
            coded = any(len(case.graph.tensors[number].scale) for number in operator.outputs)
            compared.setdefault(operator.kind, set()).add(coded)
    rows = [
        [
            f"`{kind}`",
            "yes" if False in compared.get(kind, ()) else "",
            "yes" if True in compared.get(kind, ()) else "",
            "yes" if kind in STATES or kind == "ASSIGN_VARIABLE" else "",
        ]
        for kind in sorted({*TRANSLATORS, *FAMILIES})
        if not kind.startswith("_")
    ]
    return f"{HEAD}\n{table(['operator', 'floats', 'codes', 'state'], rows)}\n"
