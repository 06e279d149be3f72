"""The node cases of another onnx: ``python -m tests.conformance.stored_cases …/onnx/backend/test/data/node``."""

import sys
from pathlib import Path

from docs.tables.node_cases import totals
from tests.conformance.node_cases import stored_case
from tests.conformance.node_outcomes import failures, outcome

if __name__ == "__main__":
    outcomes = [outcome(stored_case(path.parent)) for path in sorted(Path(sys.argv[1]).glob("*/model.onnx"))]
    print(totals(outcomes), *failures(outcomes), sep="\n")
