"""docs/nnef_operators.md: the operators of NNEF and tract that are read, and those of ONNX that are written."""

from docs.tables.markdown import table
from pulse.nnef.operators import families as families
from pulse.nnef.read.signatures import SIGNATURES
from pulse.nnef.read.standard import standard_fragments
from pulse.nnef.registry import WRITERS
from pulse.nnef.write.expansion import EXPANDERS

HEAD = """# Operators of NNEF

Made by `python -m docs.tables` from the readers and writers; a test keeps it true. [nnef.md](nnef.md) tells how models
are written and read. Those of ONNX that are written as NNEF, with tract's operators where NNEF has none:

"""


def document() -> str:
    """The page."""
    operators = ", ".join(f"`{name}`" for name in sorted({*WRITERS, *EXPANDERS}))
    fragments = standard_fragments()
    names = {**{name: signature.names for name, signature in SIGNATURES.items()}}
    names |= {
        name: tuple(parameter.name for parameter in fragment.parameters)
        for name, fragment in fragments.items()
    }
    rows = [
        [
            f"`{name}`",
            "tract" if name.startswith("tract_") else "NNEF",
            ", ".join(f"`{parameter}`" for parameter in names[name]),
        ]
        for name in sorted(names)
    ]
    return f"{HEAD}{operators}\n\nThose that are read:\n\n{table(['operator', 'of', 'arguments'], rows)}\n"
