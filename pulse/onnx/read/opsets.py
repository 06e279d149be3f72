"""The versions of operators that a file uses."""

from pulse.errors import LoadError
from pulse.onnx.proto import ModelProto, NodeProto
from pulse.onnx.registry import DEFAULT_DOMAINS
from pulse.onnx.subgraph import graphs_of

OPSETS = range(7, 29)
"""The versions of the default domain that the translators support."""


def opset_versions(proto: ModelProto, title: str) -> dict[str, int]:
    """Return the version of each domain. Raises LoadError: the default domain's is not supported.

    Versions before the first one of OPSETS are, as long as the file uses only operators that were already the same.
    """
    versions = {entry.domain: entry.version for entry in proto.opset_import}
    version = versions.get("", versions.get("ai.onnx"))
    if version is not None and version not in OPSETS:
        nodes = (node for graph in graphs_of(proto.graph) for node in graph.node)
        op_types = sorted({node.op_type for node in nodes if _has_changed(node, version)})
        if version < 1 or version > OPSETS[-1] or op_types:
            because = f" ({', '.join(op_types)} changed since)" if op_types else ""
            raise LoadError(
                f"{title}: opset {version} is not supported{because}; convert it to one of {OPSETS[0]} to "
                f"{OPSETS[-1]}, with onnx.version_converter or by exporting again"
            )
    for domain in DEFAULT_DOMAINS:
        versions.setdefault(domain, version or OPSETS[0])
    return versions


def _has_changed(node: NodeProto, version: int) -> bool:
    """Return whether an old version of an operator differs from the first one that the translators support."""
    if node.domain not in DEFAULT_DOMAINS or not 1 <= version < OPSETS[0]:
        return False
    from onnx import defs

    try:
        old, supported = (
            defs.get_schema(node.op_type, opset, "").since_version for opset in (version, OPSETS[0])
        )
    except defs.SchemaError:
        return True
    return old != supported
