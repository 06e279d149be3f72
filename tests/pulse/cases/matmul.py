"""Matrix products."""

from collections.abc import Iterator

from tests.pulse.cases.build import Case, cases, floats, node


def matmul() -> Iterator[Case]:
    """Every mix of ranks; Gemm with all of its attributes."""
    shapes = [
        ((4,), (4,)),
        ((3, 4), (4,)),
        ((4,), (4, 5)),
        ((3, 4), (4, 5)),
        ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (4,)),
        ((3, 4), (2, 4, 5)),
        ((6, 1, 3, 4), (2, 4, 5)),
        ((4,), (2, 4, 5)),
    ]
    for left, right in shapes:
        a, b = floats("a", *left), floats("b", *right)
        stream = {"x": len(left) - 2} if len(left) > 1 else None
        yield from cases(
            f"MatMul_{left}_{right}", [node("MatMul", "x w")], {"x": a}, {"w": b}, (7, 13), stream
        )
    both = {"x": floats("a", 5, 3, 4), "z": floats("b", 5, 4, 2)}
    yield from cases("MatMul_batch", [node("MatMul", "x z")], both, stream={"x": 0, "z": 0})
    product = {"x": floats("a", 2, 7, 4), "z": floats("b", 2, 4, 7)}
    yield from cases("MatMul_scores", [node("MatMul", "x z")], product, stream={"x": 1, "z": 2})
    for trans_a in (0, 1):
        for trans_b in (0, 1):
            a = floats("a", 5, 3) if trans_a else floats("a", 3, 5)
            constants = {"w": floats("w", 4, 5) if trans_b else floats("w", 5, 4), "c": floats("c", 4)}
            operator = node("Gemm", "x w c", transA=trans_a, transB=trans_b, alpha=0.5, beta=2.0)
            stream = {"x": trans_a}
            yield from cases(f"Gemm_{trans_a}{trans_b}", [operator], {"x": a}, constants, (7, 9, 13), stream)
    weights = {"w": floats("w", 5, 4)}
    yield from cases(
        "Gemm_no_bias", [node("Gemm", "x w")], {"x": floats("a", 3, 5)}, weights, (11, 13), {"x": 0}
    )


ALL = (matmul,)
