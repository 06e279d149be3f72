"""docs/node_cases.md: the outcomes of the node cases of ``onnx.backend.test``."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import onnx

from tests.conformance.node_cases import EXPANDED
from tests.conformance.node_outcomes import Outcome, outcomes
from tests.conformance.node_skips import MUST, SKIPS
from tests.tables.markdown import table

HEAD = """# Node cases

Made by `python -m tests.tables` from `onnx.backend.test` (kind `node`, onnx {version}); a test keeps it true.
Each case is a small model with inputs and the outputs that they must give, within the case's own tolerance. It is
loaded, analysed and run by `TypedModel.run`. In {fixed} cases that pass, inputs that decide a shape (sizes, axes, pads)
are given as constants: the shape of the result would not be known before it is computed otherwise.

A case is *plain* where it is one operator, *expanded* where it spells out an operator's function body.
`tests/conformance/node_skips.py` has the list of operators that must run, and why a case is not run.
"""


def share(found: Sequence[Outcome]) -> str:
    """Passed of all; empty where there are none."""
    return f"{sum(one.status == 'passed' for one in found)} / {len(found)}" if found else ""


def totals(found: Sequence[Outcome]) -> str:
    """How many pass, by kind."""
    kinds = {
        "plain cases of the operators that must run": [one for one in found if one.must],
        "all plain cases": [one for one in found if not one.case.expanded],
        "all expanded cases": [one for one in found if one.case.expanded],
        "all": list(found),
    }
    rows: list[list[object]] = []
    for name, ones in kinds.items():
        count = Counter(one.status for one in ones)
        rows.append(
            [
                name,
                len(ones),
                count["passed"],
                count["skipped"],
                len(ones) - count["passed"] - count["skipped"],
            ]
        )
    return table(["cases", "total", "pass", "not run", "do not pass"], rows)


def _skips(found: Sequence[Outcome]) -> str:
    counts = Counter(one.reason for one in found if one.status == "skipped")
    must = Counter(one.reason for one in found if one.status == "skipped" and one.must)
    rows = [(reason, counts[reason], must[reason] or "") for reason, _ in SKIPS if counts[reason]]
    return table(["not run because", "cases", "of them must"], rows)


def _operators(found: Sequence[Outcome]) -> str:
    plain: dict[str, list[Outcome]] = defaultdict(list)
    bodies: dict[str, list[Outcome]] = defaultdict(list)
    names = {one.case.name: one.case.operator for one in found if not one.case.expanded}
    for one in found:
        if one.case.expanded:
            bodies[names.get(one.case.name.split(EXPANDED)[0], "")].append(one)
        else:
            plain[one.case.operator].append(one)
    rows = [
        (name or "several", "yes" if name in MUST else "", share(plain[name]), share(bodies[name]))
        for name in sorted({*plain, *bodies}, key=lambda name: (not name, name))
    ]
    return table(["operator", "must", "plain", "expanded"], rows)


def _failures(found: Iterable[Outcome]) -> str:
    kinds = Counter((one.case.operator or "several", one.status) for one in found)
    return table(["operator", "how", "cases"], [(*kind, count) for kind, count in sorted(kinds.items())])


def document(found: Sequence[Outcome] | None = None) -> str:
    """The whole document."""
    found = outcomes() if found is None else found
    fixed = sum(one.fixed for one in found if one.status == "passed")
    failures = [one for one in found if one.status not in ("passed", "skipped")]
    parts = [
        HEAD.format(version=onnx.__version__, fixed=fixed),
        totals(found),
        "## Not run",
        _skips(found),
        *(["## Do not pass", _failures(failures)] if failures else []),
        "## Operators",
        "Passed of all, by operator.",
        _operators(found),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"
