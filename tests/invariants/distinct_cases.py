"""A streaming case of each set of operators and each stream axis."""

from collections.abc import Iterator

from tests.invariants.shifted_cases import StreamingCase, assignments, shiftable_cases, streaming_case


def distinct_cases() -> Iterator[StreamingCase]:
    """A case for each set of operators, number of streaming inputs, and axis counted from the end."""
    kinds: set[object] = set()
    for case in shiftable_cases():
        operators = frozenset(node.op_type for node in case[1].graph.node)
        for axes in assignments(case[2]):
            name, axis = next(iter(axes.items()))
            kind = operators, len(axes), axis - case[2][name].ndim
            streaming = streaming_case(case, axes) if kind not in kinds else None
            if streaming is not None:
                kinds.add(kind)
                yield streaming
