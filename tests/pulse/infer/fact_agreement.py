"""Facts that inference must find, and those that it may leave open."""

from pulse.infer.fact import InferenceFact
from pulse.models import Model


def facts_by_name(model: Model) -> dict[str, InferenceFact]:
    """The inferred fact of each wire, by name."""
    graph = model.infer().graph
    names = {}
    for node in graph.nodes:
        for slot, outlet in enumerate(node.outputs):
            names[f"{node.name}:{slot}"] = outlet.fact
    return names


def assert_agrees(less: dict[str, InferenceFact], more: dict[str, InferenceFact]) -> None:
    """All that is known on the one side is known on the other; dims by name, as each model has its own symbols."""
    for name, fact in less.items():
        whole = more[name]
        message = f"{name}: {fact} against {whole}"
        assert fact.dtype in (None, whole.dtype), message
        assert fact.rank in (None, whole.rank), message
        assert len(fact.dims) <= len(whole.dims), message
        assert all(dim is None or str(dim) == str(other) for dim, other in zip(fact.dims, whole.dims)), (
            message
        )
        if fact.value is not None:
            assert whole.value is not None, message
            entries = zip(fact.value.ravel().tolist(), whole.value.ravel().tolist())
            assert all(entry is None or str(entry) == str(other) for entry, other in entries), message
