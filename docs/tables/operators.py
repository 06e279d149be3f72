"""docs/operators.md: how each ONNX operator streams, and its supported versions.

For each operator of the reader, its cases are loaded with each axis of each input as the stream, and what the
pulsifier finds is collected.
"""

import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import defs

from docs.tables.markdown import table
from pulse.errors import CompileError, PulseError, PulsifyError
from pulse.facts import Array, dtype_name
from pulse.loading.format import read_onnx as load
from pulse.onnx.read.opsets import OPSETS
from pulse.onnx.registry import TRANSLATORS, operator_name
from pulse.ops.op import Pointwise, relation_name
from pulse.program.compiler import compile_model
from pulse.pulsify.driver import pulsify
from pulse.pulsify.stream_relations import relate
from tests.conformance.node_outcomes import outcomes
from tests.conformance.node_skips import nodes
from tests.pulse.cases.families import all_cases

CASES_FOR_EACH = 6
MANY = 8
"""A case of more operators speaks for those only that no other case has."""
HEAD = """# Operators

Made by `python -m docs.tables` from the reader, the cases of the tests and the pulsifier; a test keeps it
true. For each ONNX operator: how it streams, over the axes on which it does (*pointwise*, *window*, *ends*,
*positional*, *cumulative*, *banded*, *tail*; see `pulse/ops/op.py`), whether it is refused over some axis
(*whole*), and whether all that it becomes has kernels for f32 (else it runs with `backend="numpy"`).

*versions* are the opsets at which the operator changed, from the one that opset 7 has up to opset {last} (those that
onnx {onnx} knows); in parentheses where no case, of the tests or of `onnx.backend.test`, has that version. *no
streaming case* means that the tests have no case of it with an axis that can stream: an operator on shapes or
constants, mostly.
"""


@dataclass
class OperatorFindings:
    """How the cases of an operator stream; ``compiled`` is None if none came to that."""

    relations: set[str] = field(default_factory=set)
    refused: bool = False
    compiled: bool | None = None


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


def findings() -> dict[str, OperatorFindings]:
    """How the cases of each operator stream."""
    findings_of: dict[str, OperatorFindings] = defaultdict(OperatorFindings)
    tried: dict[str, int] = defaultdict(int)
    tried_models: set[bytes] = set()
    for _, proto, feeds in all_cases():
        nodes_as_bytes = b"".join(part.SerializeToString() for part in proto.graph.node)
        if nodes_as_bytes in tried_models:
            continue
        tried_models.add(nodes_as_bytes)
        operators = {operator_name(node.domain, node.op_type) for node in proto.graph.node}
        max_cases = 1 if len(operators) > MANY else CASES_FOR_EACH
        main = [operator for operator in operators if tried[operator] < max_cases]
        if not main or not any(array.ndim for array in feeds.values()):
            continue
        for operator in operators:
            tried[operator] += 1
        for specs in axes_of(feeds):
            streams, refusal, kernels = attempt(proto, specs)
            for operator in main:
                finding = findings_of[operator]
                finding.relations |= streams
                finding.refused |= refusal
                if kernels is not None:
                    finding.compiled = finding.compiled is not False and kernels
    return findings_of


def attempt(proto: Any, specs: dict[str, str]) -> tuple[set[str], bool, bool | None]:
    """The result of a case over an axis: relations, whether refused, whether compiled (None: not attempted)."""
    try:
        model = pulsify(load(proto, inputs=specs).analyse())
        relations = relate(model.typed, model.symbol).relations.values()
    except PulsifyError:
        return set(), True, None
    except PulseError:
        return set(), False, None
    names = {relation_name(relation) for relation in relations if not isinstance(relation, Pointwise)}
    try:
        compile_model(model)
    except CompileError:
        return names or {"pointwise"}, False, False
    return names or {"pointwise"}, False, True


def versions() -> dict[str, list[int]]:
    """Operator of the default domain -> the opsets at which it changed, from the one that the first opset has."""
    versions_of: dict[str, set[int]] = defaultdict(set)
    for schema in defs.get_all_schemas_with_history():
        if not schema.domain and schema.since_version <= OPSETS[-1]:
            versions_of[schema.name].add(schema.since_version)
    first = {name: max((at for at in ats if at <= OPSETS[0]), default=0) for name, ats in versions_of.items()}
    return {name: sorted(at for at in ats if at >= first[name]) for name, ats in versions_of.items()}


def proven_versions() -> dict[str, set[int]]:
    """Operator -> the versions of which a case runs."""
    versions_of: dict[str, set[int]] = defaultdict(set)
    models = [proto for _, proto, _ in all_cases()]
    models += [result.case.model for result in outcomes() if result.status == "passed"]
    for model in models:
        opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
        for node in nodes(model.graph):
            if not node.domain and defs.has(node.op_type, ""):
                versions_of[node.op_type].add(defs.get_schema(node.op_type, opset, "").since_version)
    return versions_of


def document() -> str:
    """The whole document."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        findings_of = findings()
    versions_of, proven_of = versions(), proven_versions()
    rows: list[list[object]] = []
    for name in sorted(TRANSLATORS):
        finding = findings_of[name]
        streams = ", ".join(sorted(finding.relations)) or "no streaming case"
        kernels = "" if finding.compiled is None else "yes" if finding.compiled else "partly"
        listed = ", ".join(
            str(at) if at in proven_of[name] else f"({at})" for at in versions_of.get(name, [])
        )
        rows.append([name, listed, streams, "yes" if finding.refused else "", kernels])
    missing = sorted(set(versions_of) - set(TRANSLATORS))
    parts = [
        HEAD.format(last=OPSETS[-1], onnx=onnx.__version__),
        table(["operator", "versions", "streams as", "refused over some axis", "kernels"], rows),
        f"{len(rows)} operators.",
        f"Of the {len(versions_of)} operators of the standard, {len(missing)} are not supported: {', '.join(missing)}. "
        "A model with one of them loads; it runs as far as nothing needs that operator, or a "
        "[plugin](extend.md) brings it.",
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"
