"""docs/tensorflow_operators.md: the operators of TensorFlow that are supported, by family."""

from collections import defaultdict
from importlib import import_module

from docs.tables.markdown import table
from pulse.tensorflow.operators import families as families
from pulse.tensorflow.registry import TRANSLATORS

HEAD = """# Operators of TensorFlow

Made by `python -m docs.tables` from the reader; a test keeps it true. Each becomes ops of this package, so how it
streams is in [operators.md](operators.md), under the operator of ONNX that does the same. Loops, branches, calls,
variables and their assignments are read before that: [tensorflow.md](tensorflow.md).
"""


def document() -> str:
    """A table for each family."""
    families: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, translator in TRANSLATORS.items():
        if not name.startswith("_"):
            summary = (translator.__doc__ or "").strip().splitlines()[0]
            families[translator.__module__][summary].append(name)
    parts = [HEAD]
    for module in sorted(families):
        title = (import_module(module).__doc__ or "").strip().splitlines()[0].rstrip(".")
        rows = [
            (", ".join(f"`{name}`" for name in sorted(names)), summary)
            for summary, names in families[module].items()
        ]
        parts.append(f"## {title}\n\n{table(('operators', 'what they do'), sorted(rows))}\n")
    count = len([name for name in TRANSLATORS if not name.startswith("_")])
    return "\n".join([*parts, f"{count} operators."]) + "\n"
