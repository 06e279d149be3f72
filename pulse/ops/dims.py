"""What ops require of the dims and axes of their inputs, and the shapes that follow."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from pulse.dim import Symbol, TDim, dim_max, dim_min
from pulse.errors import FactError
from pulse.facts import Shape, TypedFact


def dims_value(shape: Sequence[TDim], env: Mapping[Symbol, int]) -> tuple[int, ...]:
    """Return a symbolic shape in numbers."""
    return tuple(dim.eval(env) for dim in shape)


def unify(left: TDim, right: TDim, subject: str) -> TDim:
    """Return the one dim that two wires must share.

    An equality that is neither proved nor disproved becomes an assumption of the scope, checked at run time.
    Raises FactError: they always differ.
    """
    if left == right:
        return left
    proof = left.prove_eq(right)
    if proof.no:
        raise FactError(f"{subject}: {left} and {right} differ")
    if proof.unknown:
        symbol = next(iter(left.symbols | right.symbols))
        symbol.scope.assume(f"{left} == {right}")
    return min(left, right, key=lambda dim: len(str(dim)))


def require_at_least(dim: TDim, minimum: TDim, subject: str) -> None:
    """Require a minimum size; an assumption of the scope if it depends on a length.

    Raises FactError: it is never met
    """
    proof = dim.prove_ge(minimum)
    if proof.no:
        raise FactError(f"{subject}: needs at least {minimum}, got {dim}")
    if proof.unknown:
        next(iter(dim.symbols | minimum.symbols)).scope.assume(f"{dim} >= {minimum}")


def broadcast_shapes(shapes: Sequence[Shape], subject: str) -> Shape:
    """Return the shape to which numpy broadcasts these.

    An axis of at most one frame, such as ``min(1, T)``, broadcasts against others; that it has one frame becomes an
    assumption of the scope. Raises FactError: the shapes do not fit.
    """
    rank = max(len(shape) for shape in shapes)
    return tuple(
        _broadcast(
            [shape[axis - rank] for shape in shapes if rank - axis <= len(shape)], f"{subject}, axis {axis}"
        )
        for axis in range(rank)
    )


def _broadcast(dims: Sequence[TDim], subject: str) -> TDim:
    longer = [dim for dim in dims if dim != 1]
    if any(dim != longer[0] for dim in longer):
        ones = [dim for dim in longer if any(at_most_one(dim, other) for other in dims)]
        for dim in ones:
            longer = [other for other in longer if other != dim]
            require_at_least(dim, TDim.of(1), subject)
            if len(set(longer)) < 2:
                break
    result = TDim.of(1)
    for dim in longer:
        result = dim if result == 1 else unify(result, dim, subject)
    return result


def constant_quotient(length: TDim, frames: TDim) -> Fraction | None:
    """Return ``length / frames`` if that is the same number for all values of the symbols."""
    if length.is_const and frames.is_const:
        return Fraction(int(length), int(frames)) if int(frames) and int(length) else None
    shared = length.symbols & frames.symbols
    if len(shared) != 1:
        return None
    (symbol,) = shared
    slope = frames.slope(symbol)
    ratio = length.slope(symbol) / slope if slope else Fraction(0)
    same = ratio > 0 and length * ratio.denominator == frames * ratio.numerator
    return ratio if same else None


def is_floored_symbol(dim: TDim) -> bool:
    """Return whether a length is the largest multiple of a number that is at most a symbol: ``k * (T // k)``, or T."""
    if len(dim.terms) != 1 or len(dim.symbols) != 1 or dim.const:
        return False
    (symbol,), factor = dim.symbols, dim.terms[0][1]
    return factor > 0 and dim == TDim.of(symbol) // factor * factor


def simplest_min(dim: TDim, limit: TDim) -> TDim:
    """Return the smaller dim, in its simplest form."""
    if limit.prove_ge(dim).yes:
        return dim
    return limit if dim.prove_ge(limit).yes else dim_min(dim, limit)


def simplest_max(dim: TDim, limit: TDim) -> TDim:
    """Return the larger dim, in its simplest form."""
    if dim.prove_ge(limit).yes:
        return dim
    return limit if limit.prove_ge(dim).yes else dim_max(dim, limit)


def at_most_one(dim: TDim, other: TDim) -> bool:
    """Return whether the first dim is at most 1, and not certainly equal to the other."""
    is_zero_or_one = dim.prove_le(1).yes and dim.prove_ge(0).yes and not dim.prove_eq(0).yes
    return is_zero_or_one and not dim.prove_eq(other).yes


def normal_axis(axis: int, rank: int, subject: str) -> int:
    """Return an axis counted from the front. Raises FactError: it is out of range."""
    if not -rank <= axis < rank:
        raise FactError(f"{subject}: axis {axis} is out of range for rank {rank}")
    return axis % rank


def require_axis(axis: int, fact: TypedFact) -> None:
    """Raise FactError if a tensor has no such axis, counted from the front."""
    if not 0 <= axis < fact.rank:
        raise FactError(f"axis {axis} is out of range for rank {fact.rank}")
