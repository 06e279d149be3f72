"""Every table, by the name of its document."""

from collections.abc import Callable
from pathlib import Path

from docs.tables import instructions, models, nnef, node_cases, operators, tensorflow, tflite

FOLDER = Path(__file__).parents[2] / "docs"
DOCUMENTS: dict[str, Callable[[], str]] = {
    "operators": operators.document,
    "node_cases": node_cases.document,
    "models": models.document,
    "instructions": instructions.document,
    "tensorflow_operators": tensorflow.document,
    "tflite_operators": tflite.document,
    "nnef_operators": nnef.document,
}
