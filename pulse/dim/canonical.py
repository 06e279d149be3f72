"""The constructors of dims. Only this module brings dims to canonical form.

The identities used, all exact for negative values too (floor division):

    floor((k*Q + R)/k)        = Q + floor(R/k)
    floor((g*R + c)/(g*k))    = floor((R + floor(c/g))/k)
    floor((X + floor(N/m))/k) = floor((m*X + N)/(m*k))
    floor((X - floor(N/m))/k) = floor((m*X - N + m-1)/(m*k))
    floor(N/k)                = -floor((k-1-N)/k)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from math import gcd

from pulse.dim.atoms import Broadcast, Div, Eq, Ge, Indicator, Max, Min
from pulse.dim.interval import certainly_ge, interval
from pulse.dim.tdim import Atom, DimLike, DimScope, Monomial, Symbol, TDim, constant
from pulse.errors import DimError

MAX_TERMS, MAX_FACTORS, MAX_BITS = 1 << 12, 64, 1024
"""Maximum number of terms, factors and bits of a product; a larger one is not a length and would fill the memory."""
MAX_UNCHECKED = 1 << MAX_BITS // 2
"""Numbers below this are multiplied without a check: their product is never too large."""

ZERO, ONE = constant(0), constant(1)


def common_scope(*dims: TDim) -> DimScope | None:
    """Return the scope of the operands; None if all are constants. Raises DimError: they belong to two."""
    first: TDim | None = None
    for dim in dims:
        if dim.scope is None:
            continue
        if first is not None and first.scope is not dim.scope:
            raise DimError(f"{first} and {dim} belong to different symbol scopes; build both from one scope")
        first = dim
    return None if first is None else first.scope


def build(terms: dict[Monomial, int], const: int, scope: DimScope | None) -> TDim:
    """Return the canonical dim of a sum; takes ownership of the dict."""
    terms = {monomial: coefficient for monomial, coefficient in terms.items() if coefficient}
    const = _join_min_and_max(terms, const)
    _mirror_quotients(terms)
    sorted_terms = tuple(sorted(terms.items(), key=_term_key))
    return TDim(sorted_terms, const, scope if sorted_terms else None)


def combine(left: TDim, a: int, right: TDim, b: int) -> TDim:
    """Return a*left + b*right."""
    if not left.terms and not right.terms:
        return constant(a * left.const + b * right.const)
    if not right.terms and a == 1:
        return TDim(left.terms, left.const + b * right.const, left.scope)
    scope = common_scope(left, right)
    terms = {monomial: a * coefficient for monomial, coefficient in left.terms}
    for monomial, coefficient in right.terms:
        terms[monomial] = terms.get(monomial, 0) + b * coefficient
    return build(terms, a * left.const + b * right.const, scope)


def multiply(left: TDim, right: TDim) -> TDim:
    """Return the product. Raises DimError: it is too large to be a length."""
    if (
        not left.terms
        and not right.terms
        and -MAX_UNCHECKED < left.const < MAX_UNCHECKED
        and -MAX_UNCHECKED < right.const < MAX_UNCHECKED
    ):
        return constant(left.const * right.const)
    if right.terms and left == ONE:
        return right
    if left.terms and right == ONE:
        return left
    scope = common_scope(left, right)
    factors = sum(max((len(monomial) for monomial, _ in dim.terms), default=0) for dim in (left, right))
    bits = left.const.bit_length() + right.const.bit_length()
    if len(left.terms) * len(right.terms) > MAX_TERMS or factors > MAX_FACTORS or bits > MAX_BITS:
        raise DimError("a product of dims has grown too large; fix one of them to a number")
    if scope is None:
        return constant(left.const * right.const)
    terms: dict[Monomial, int] = {}
    for a, m in ((left.const, ()), *((c, m) for m, c in left.terms)):
        for b, n in ((right.const, ()), *((c, n) for n, c in right.terms)):
            product = _multiply_monomials(m, n) if m and n else m or n
            terms[product] = terms.get(product, 0) + a * b
    return build(terms, terms.pop((), 0), scope)


def floor_div(dim: TDim, k: int) -> TDim:
    """Return floor(dim / k) for k >= 1."""
    if k == 1:
        return dim
    if dim.scope is None:
        return TDim((), dim.const // k, None)
    cache = dim.scope.cache.quotients
    quotient = cache.get((dim, k))
    if quotient is None:
        quotient = cache[dim, k] = _reduce_quotient(dim, k, dim.scope)
    return quotient


def ceil_div(dim: DimLike, k: int) -> TDim:
    """Return ceil(dim / k) for a positive int k."""
    return (TDim.of(dim) + (k - 1)) // k


def dim_min(*dims: DimLike) -> TDim:
    """Return the smallest of one or more dims."""
    return _min_or_max(Min, dims, lambda a, b: certainly_ge(b - a))


def dim_max(*dims: DimLike) -> TDim:
    """Return the greatest of one or more dims."""
    return _min_or_max(Max, dims, lambda a, b: certainly_ge(a - b))


def broadcast(*dims: DimLike) -> TDim:
    """Return the common size of dims that are 1 or equal. Raises DimError: two are different numbers."""
    options = _flatten_operands(Broadcast, dims)
    scope = common_scope(*options)
    sizes = sorted({int(option) for option in options if option.is_const} - {1})
    if len(sizes) > 1:
        raise DimError(f"cannot broadcast {', '.join(map(str, dims))}: {sizes} differ and none is 1")
    others = sorted({option for option in options if interval(option) != (1, 1)}, key=str)
    return (
        (others[0] if others else ONE) if len(others) < 2 else _dim_of_atom(Broadcast(tuple(others)), scope)
    )


def ge(left: DimLike, right: DimLike) -> TDim:
    """Return 1 where left >= right, else 0."""
    diff = _without_quotient(_drop_shared_factor(TDim.of(left) - TDim.of(right)))
    if certainly_ge(diff):
        return ONE
    if certainly_ge(-1 - diff):
        return ZERO
    opposite = -1 - diff
    if _comes_first(diff, opposite):
        return _dim_of_atom(Ge(diff), diff.scope)
    return 1 - _dim_of_atom(Ge(opposite), diff.scope)


def gt(left: DimLike, right: DimLike) -> TDim:
    """Return 1 where left > right, else 0."""
    return ge(left, TDim.of(right) + 1)


def eq(left: DimLike, right: DimLike) -> TDim:
    """Return 1 where left == right, else 0."""
    diff = TDim.of(left) - TDim.of(right)
    if not diff.terms:
        return ZERO if diff.const else ONE
    if diff.const % gcd(*(c for _, c in diff.terms)):
        return ZERO
    diff = _drop_shared_factor(diff)
    if certainly_ge(diff - 1) or certainly_ge(-1 - diff):
        return ZERO
    if certainly_ge(diff) and certainly_ge(-diff):
        return ONE
    return _dim_of_atom(Eq(diff if _comes_first(diff, -diff) else -diff), diff.scope)


def _comes_first(diff: TDim, opposite: TDim) -> bool:
    """Return whether ``diff``, rather than its opposite (``-1 - diff`` or ``-diff``), is the canonical one.

    The first coefficient is positive. The texts decide if it is so in both or in none: as in ``m - 2*(m/2)``, whose
    negative is ``m - 2*((m+1)/2)``.
    """
    is_positive = diff.terms[0][1] > 0
    if is_positive != (opposite.terms[0][1] > 0):
        return is_positive
    return str(diff) < str(opposite)


def rebuild(atom: Atom, args: tuple[TDim, ...]) -> TDim:
    """Return the same kind of atom with other arguments."""
    match atom:
        case Div():
            return floor_div(args[0], atom.k)
        case Min():
            return dim_min(*args)
        case Max():
            return dim_max(*args)
        case Broadcast():
            return broadcast(*args)
        case Ge():
            return ge(args[0], 0)
        case Eq():
            return eq(args[0], 0)
        case _:
            raise TypeError(f"{type(atom).__name__} has no arguments to rebuild from")


def replace_atoms(dim: TDim, image: Callable[[Atom], TDim]) -> TDim:
    """Replace every atom of the dim's terms by ``image(atom)``."""
    total = TDim.of(dim.const)
    for monomial, coefficient in dim.terms:
        product = TDim.of(coefficient)
        for atom in monomial:
            product = product * image(atom)
        total = total + product
    return total


def substitute(dim: TDim, values: dict[Symbol, TDim]) -> TDim:
    def image(atom: Atom) -> TDim:
        if isinstance(atom, Symbol):
            return values.get(atom, TDim.of(atom))
        return rebuild(atom, tuple(substitute(arg, values) for arg in atom.args))

    return dim if dim.symbols.isdisjoint(values) else replace_atoms(dim, image)


def _term_key(term: tuple[Monomial, int]) -> tuple[tuple[int, str], ...]:
    return tuple([atom.key for atom in term[0]])


def _dim_of_atom(atom: Atom, scope: DimScope | None) -> TDim:
    return TDim((((atom,), 1),), 0, scope)


def _multiply_monomials(left: Monomial, right: Monomial) -> Monomial:
    """Return the product of monomials; a 0/1 value is its own square."""
    atoms = sorted(left + right, key=lambda atom: atom.key)
    return tuple(
        a for i, a in enumerate(atoms) if not isinstance(a, Indicator) or i == 0 or atoms[i - 1] != a
    )


def _join_min_and_max(terms: dict[Monomial, int], const: int) -> int:
    """Replace ``min(a, b) + max(a + c, b + c)`` by ``a + b + c``, in place; return the new constant."""
    atoms = [monomial[0] for monomial in terms if len(monomial) == 1]
    for low, high in product(*([a for a in atoms if isinstance(a, kind)] for kind in (Min, Max))):
        shift = _shift(low, high)
        counts = terms.get((low,), 0), terms.get((high,), 0)
        if shift is None or counts[0] * counts[1] <= 0:
            continue
        count = min(counts, key=abs)
        total = low.args[0] + low.args[1] + shift
        const += count * total.const
        for monomial, c in (*total.terms, ((low,), -1), ((high,), -1)):
            terms[monomial] = terms.get(monomial, 0) + count * c
            if not terms[monomial]:
                del terms[monomial]
    return const


def _shift(low: Atom, high: Atom) -> int | None:
    """Return the constant c with which ``low`` is ``min(a, b)`` and ``high`` is ``max(a + c, b + c)``, or None."""
    if len(low.args) != 2 or len(high.args) != 2:
        return None
    left, right = low.args
    for first, second in (high.args, high.args[::-1]):
        shift = first - left
        if shift.is_const and second - right == shift:
            return shift.const
    return None


def _mirror_quotients(terms: dict[Monomial, int]) -> None:
    """Rewrite quotients as ``sum of monomials - mirror`` if that makes the sum simpler, in place.

    First, of each quotient and its mirror the one with the smaller key is used, so that equal sums get equal terms.
    Then a quotient is replaced by its mirror if the first monomial of its numerator then has a smaller coefficient
    (of two equal ones, the positive): S - S/2 becomes (S+1)/2. Each replacement lowers one coefficient before it
    changes those of later monomials, so the loop ends.
    """
    quotients = _quotients(terms)
    if not quotients or (len(quotients) == 1 and quotients[0].num.terms[0][0] not in terms):
        return
    while (pair := next(_quotients_by_key(terms), None)) is not None:
        _replace_by_mirror(terms, *pair)
    while (pair := next(_quotients_to_simplify(terms), None)) is not None:
        _replace_by_mirror(terms, *pair)


def _quotients(terms: dict[Monomial, int]) -> list[Div]:
    quotients = [m[0] for m in terms if len(m) == 1 and isinstance(m[0], Div)]
    return quotients if len(quotients) < 2 else sorted(quotients, key=lambda atom: atom.key)


def _quotients_by_key(terms: dict[Monomial, int]) -> Iterator[tuple[Div, Div]]:
    for atom in _quotients(terms):
        mirror = _mirror(atom)
        if mirror is not None and mirror.key < atom.key:
            yield atom, mirror


def _quotients_to_simplify(terms: dict[Monomial, int]) -> Iterator[tuple[Div, Div]]:
    for atom in _quotients(terms):
        coefficient = terms.get(atom.num.terms[0][0], 0)
        new_coefficient = coefficient + terms[atom,]
        if abs(new_coefficient) < abs(coefficient) or (new_coefficient == -coefficient and coefficient < 0):
            mirror = _mirror(atom)
            if mirror is not None:
                yield atom, mirror


def _replace_by_mirror(terms: dict[Monomial, int], atom: Div, mirror: Div) -> None:
    count = terms.pop((atom,))
    for monomial, c in (*((m, count) for m, _ in atom.num.terms), ((mirror,), -count)):
        terms[monomial] = terms.get(monomial, 0) + c
        if not terms[monomial]:
            del terms[monomial]


def _mirror(atom: Div) -> Div | None:
    """Return the quotient of k-1-N: N/k = (sum of N's monomials) - mirror.

    None if N contains quotients: they would enter the sum without a choice between them and their mirrors.
    """
    scope = atom.num.scope
    assert scope is not None
    cache = scope.cache.mirrors
    if atom not in cache:
        terms = {m: atom.k - c for m, c in atom.num.terms}
        nested = any(len(m) == 1 and isinstance(m[0], Div) for m in terms)
        opposite = None if nested else floor_div(build(terms, atom.k - 1 - atom.num.const, scope), atom.k)
        bare_atom = None if opposite is None else opposite.bare_atom
        cache[atom] = bare_atom if isinstance(bare_atom, Div) else None
    return cache[atom]


def _reduce_quotient(dim: TDim, k: int, scope: DimScope) -> TDim:
    quotient = ZERO
    while True:
        low, high = interval(dim)
        if low is not None and high is not None and low // k == high // k:
            return quotient + low // k
        quotient = quotient + build({m: c // k for m, c in dim.terms}, dim.const // k, scope)
        remainder = {m: c % k for m, c in dim.terms if c % k}
        if not remainder:
            return quotient
        shared = gcd(k, *remainder.values())
        const, k = dim.const % k // shared, k // shared
        remainder = {m: c // shared for m, c in remainder.items()}
        terms = sorted(remainder.items(), key=_term_key)
        inner = next((m for m, c in terms if len(m) == 1 and isinstance(m[0], Div) and c in (1, k - 1)), None)
        if inner is None:
            dim = build(dict(remainder), const, scope)
            if dict(dim.terms) == remainder:
                return quotient + _dim_of_atom(Div(dim, k), scope)
            continue
        atom, positive = inner[0], remainder.pop(inner) == 1
        assert isinstance(atom, Div)
        dim = build(remainder, const, scope) * atom.k
        if positive:
            dim = dim + atom.num
        else:  # (k-1)*atom = k*atom - atom
            dim = dim - atom.num + (atom.k - 1)
            quotient = quotient + _dim_of_atom(atom, scope)
        k *= atom.k


def _flatten_operands(atom_class: type[Min | Max | Broadcast], dims: Iterable[DimLike]) -> list[TDim]:
    """Return the operands; those of a nested atom of the same kind replace it, each plus the constant added to it."""
    options: list[TDim] = []
    for dim in map(TDim.of, dims):
        atom = dim.bare_atom if atom_class is Broadcast else dim.only_atom
        options.extend(
            [option + dim.const for option in atom.options] if isinstance(atom, atom_class) else [dim]
        )
    if not options:
        raise DimError(f"{atom_class.name} of no dimensions; give one or more")
    return options


def _min_or_max(
    atom_class: type[Min | Max], dims: Iterable[DimLike], covers: Callable[[TDim, TDim], bool]
) -> TDim:
    options = _flatten_operands(atom_class, dims)
    if not any(option.terms for option in options):
        return constant((min if atom_class is Min else max)(option.const for option in options))
    options = sorted(set(options), key=str)
    scope = common_scope(*options)
    uncovered: list[TDim] = []
    for option in options:
        if not any(covers(other, option) for other in uncovered):
            uncovered = [other for other in uncovered if not covers(option, other)] + [option]
    return uncovered[0] if len(uncovered) == 1 else _dim_of_atom(atom_class(tuple(uncovered)), scope)


def _drop_shared_factor(diff: TDim) -> TDim:
    """Return ``diff >= 0`` (and ``diff == 0``) without the common factor of the terms."""
    shared = gcd(*(c for _, c in diff.terms))
    if shared < 2:
        return diff
    return build({m: c // shared for m, c in diff.terms}, diff.const // shared, diff.scope)


def _without_quotient(diff: TDim) -> TDim:
    """Remove a quotient: ``N/k + c >= 0`` is ``N + k*c >= 0``, and ``c - N/k >= 0`` is ``k*c + k-1 - N >= 0``."""
    while len(diff.terms) == 1 and len(diff.terms[0][0]) == 1:
        (atom,), sign = diff.terms[0]
        if not isinstance(atom, Div):
            break
        diff = sign * atom.num + atom.k * diff.const + (0 if sign > 0 else atom.k - 1)
        diff = _drop_shared_factor(diff)
    return diff
