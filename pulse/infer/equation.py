"""Equations between dims with one unknown, which is at least 0."""

from pulse.dim import Symbol, TDim, ge, scope_of

TRIED_SIZES = 256
"""Smaller sizes are tried one by one if an equation is not linear; clamps at short sizes do not affect larger ones."""


def quotient(total: TDim, divisor: int) -> TDim | None:
    """Return ``total / divisor`` if it leaves no remainder for any value of the symbols; otherwise None."""
    if divisor < 0:
        total, divisor = -total, -divisor
    if divisor == 0:
        return None
    result = total // divisor
    return result if result * divisor == total else None


def solve(left: TDim, right: TDim, unknown: Symbol) -> TDim | None:
    """Return the value of ``unknown`` that solves ``left == right``; None if it is not proved to be unique.

    ``right`` must not depend on the unknown. A negative result means that no size solves the equation.
    """
    solution = _solve_linear(left, right, unknown)
    if solution is not None or left.symbols != frozenset((unknown,)) or not right.is_const:
        return solution
    beyond = _solution_above(left, right, unknown)
    if beyond is None:
        return None
    sizes = [size for size in range(TRIED_SIZES) if left.eval({unknown: size}) == int(right)]
    sizes += [beyond + TRIED_SIZES] if beyond >= 0 else []
    return TDim.of(sizes[0]) if len(sizes) == 1 else None


def _solve_linear(left: TDim, right: TDim, unknown: Symbol) -> TDim | None:
    """Return the solution if ``left`` is a multiple of the unknown plus a part without it; otherwise None."""
    factor = next((count for monomial, count in left.terms if monomial == (unknown,)), None)
    constant_terms = left.subs({unknown: 0})
    if factor is None or left - factor * TDim.of(unknown) != constant_terms:
        return None
    return quotient(right - constant_terms, factor)


def _solution_above(left: TDim, right: TDim, unknown: Symbol) -> int | None:
    """Return the solution above ``TRIED_SIZES``, minus ``TRIED_SIZES``; negative if there is none, None if unknown."""
    scope = scope_of(unknown)
    with scope.trial():
        scope.assume(ge(TDim.of(unknown), TDim.of(0)))
        shifted = left.subs({unknown: TDim.of(unknown) + TRIED_SIZES})
        if shifted.is_const:
            return None if shifted == right else -1
        solution = _solve_linear(shifted, right, unknown)
    return None if solution is None else int(solution)
