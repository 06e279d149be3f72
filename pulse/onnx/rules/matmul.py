"""Matrix products."""

from collections.abc import Iterator

from pulse.infer.relations import HasRank, Relation, SameSize, SameType
from pulse.infer.shapes import Broadcast
from pulse.infer.wire_facts import Axis
from pulse.onnx.rules.clues import Clues
from pulse.onnx.rules.registry import rule


@rule("MatMul")
def matmul(clues: Clues) -> Iterator[Relation]:
    """Of a [..., M, K], b [..., K, N] -> y [..., M, N]; a vector has K alone, and its other axis is not in y."""
    a, b, y = clues.input(0), clues.input(1), clues.output
    yield SameType([a, b, y])
    yield from _ranks(clues)
    first, second = clues.rank(a), clues.rank(b)
    if first is None or second is None:
        return
    yield SameSize([Axis(a, -1), Axis(b, -2 if second > 1 else -1)])
    if first > 1:
        yield SameSize([Axis(a, -2), Axis(y, -2 if second > 1 else -1)])
    if second > 1:
        yield SameSize([Axis(b, -1), Axis(y, -1)])
    if first > 1 and second > 1:
        yield Broadcast(y, [a, b], end=2)


def _ranks(clues: Clues) -> Iterator[Relation]:
    a, b, y = clues.input(0), clues.input(1), clues.output
    first, second, rank = clues.rank(a), clues.rank(b), clues.rank(y)
    if first is not None and second is not None:
        yield HasRank([y], max(first, second, 2) - (first == 1) - (second == 1))
    elif rank is not None:
        for known, other in ((first, b), (second, a)):
            if known == 1:
                yield HasRank([other], rank + 1)
            elif known is not None and (known < rank or known == rank == 2):
                yield HasRank([other], rank)
            elif known is not None and known == rank + 1:
                yield HasRank([other], 1)


@rule("Gemm")
def gemm(clues: Clues) -> Iterator[Relation]:
    """Of a [M, K], b [K, N], either transposed, c broadcast to y [M, N]."""
    a, b, y = clues.input(0), clues.input(1), clues.output
    across, down = clues.flag("transA"), clues.flag("transB")
    yield SameType([*clues.given(), y])
    yield HasRank([a, b, y], 2)
    yield SameSize([Axis(a, 0 if across else 1), Axis(b, 1 if down else 0)])
    yield SameSize([Axis(a, 1 if across else 0), Axis(y, 0)])
    yield SameSize([Axis(b, 0 if down else 1), Axis(y, 1)])
