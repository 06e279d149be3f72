"""The tables of docs/ say what the code does."""

import onnx
import pytest

from docs.tables.documents import DOCUMENTS, FOLDER
from tests.shared import shared_path

pytestmark = pytest.mark.full_proofs

OF_ONNX = ("operators", "node_cases")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_document_is_up_to_date(name: str) -> None:
    if name == "models":
        shared_path("models")
    document = (FOLDER / f"{name}.md").read_text()
    if name in OF_ONNX and f"onnx {onnx.__version__}" not in document.replace("\n", " "):
        pytest.skip(f"docs/{name}.md tells of another onnx than the installed {onnx.__version__}")
    assert document == DOCUMENTS[name](), f"run: python -m docs.tables {name}"
