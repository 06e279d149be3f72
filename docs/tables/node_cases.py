"""docs/node_cases.md: the outcomes of the node cases of ``onnx.backend.test``."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import onnx

from docs.tables.markdown import table
from tests.conformance.node_cases import EXPANDED
from tests.conformance.node_outcomes import NodeOutcome, outcomes
from tests.conformance.node_skips import MUST, SKIPS

HEAD = """# Node cases

Made by `python -m docs.tables` from `onnx.backend.test` (kind `node`, onnx {version}); a test keeps it true.
Each case is a small model with inputs and the outputs that they must give, within the case's own tolerance. It is
loaded, analysed and run by `TypedModel.run`. In {fixed} cases that pass, inputs that decide a shape (sizes, axes, pads)
are given as constants: the shape of the result would not be known before it is computed otherwise.

A case is *plain* where it is one operator, *expanded* where it spells out an operator's function body.
`tests/conformance/node_skips.py` has the list of operators that must run, and why a case is not run.
"""


def share(results: Sequence[NodeOutcome]) -> str:
    """Passed of all; empty if there are none."""
    return f"{sum(result.status == 'passed' for result in results)} / {len(results)}" if results else ""


def totals(results: Sequence[NodeOutcome]) -> str:
    """How many pass, by kind."""
    kinds = {
        "plain cases of the operators that must run": [result for result in results if result.must],
        "all plain cases": [result for result in results if not result.case.expanded],
        "all expanded cases": [result for result in results if result.case.expanded],
        "all": list(results),
    }
    rows: list[list[object]] = []
    for name, results_of_kind in kinds.items():
        count = Counter(result.status for result in results_of_kind)
        rows.append(
            [
                name,
                len(results_of_kind),
                count["passed"],
                count["skipped"],
                len(results_of_kind) - count["passed"] - count["skipped"],
            ]
        )
    return table(["cases", "total", "pass", "not run", "do not pass"], rows)


def _skips(results: Sequence[NodeOutcome]) -> str:
    counts = Counter(result.reason for result in results if result.status == "skipped")
    must = Counter(result.reason for result in results if result.status == "skipped" and result.must)
    rows = [(reason, counts[reason], must[reason] or "") for reason, _ in SKIPS if counts[reason]]
    return table(["not run because", "cases", "of them must"], rows)


def _operators(results: Sequence[NodeOutcome]) -> str:
    plain: dict[str, list[NodeOutcome]] = defaultdict(list)
    bodies: dict[str, list[NodeOutcome]] = defaultdict(list)
    names = {result.case.name: result.case.operator for result in results if not result.case.expanded}
    for result in results:
        if result.case.expanded:
            bodies[names.get(result.case.name.split(EXPANDED)[0], "")].append(result)
        else:
            plain[result.case.operator].append(result)
    rows = [
        (name or "several", "yes" if name in MUST else "", share(plain[name]), share(bodies[name]))
        for name in sorted({*plain, *bodies}, key=lambda name: (not name, name))
    ]
    return table(["operator", "must", "plain", "expanded"], rows)


def _failures(results: Iterable[NodeOutcome]) -> str:
    kinds = Counter((result.case.operator or "several", result.status) for result in results)
    return table(["operator", "how", "cases"], [(*kind, count) for kind, count in sorted(kinds.items())])


def document(results: Sequence[NodeOutcome] | None = None) -> str:
    """The whole document."""
    results = outcomes() if results is None else results
    fixed = sum(result.fixed for result in results if result.status == "passed")
    failures = [result for result in results if result.status not in ("passed", "skipped")]
    parts = [
        HEAD.format(version=onnx.__version__, fixed=fixed),
        totals(results),
        "## Not run",
        _skips(results),
        *(["## Do not pass", _failures(failures)] if failures else []),
        "## Operators",
        "Passed of all, by operator.",
        _operators(results),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"
