"""Random expressions against plain Python integers."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from math import lcm

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pulse.dim import SymbolScope, TDim, broadcast, dim_max, dim_min, eq, ge, gt
from pulse.dim.atoms import Broadcast, Div, Eq, Ge, Max, Min
from pulse.errors import DimError

Tree = int | str | tuple
Env = dict[str, int]
GRID = [dict(zip("ST", values)) for values in product(range(-13, 14), repeat=2)]

ASSUMPTIONS: dict[str, Callable[[int, int], bool]] = {
    "S >= 0": lambda s, t: s >= 0,
    "S > 8": lambda s, t: s > 8,
    "S <= 7": lambda s, t: s <= 7,
    "T >= 1": lambda s, t: t >= 1,
    "S >= 2*T": lambda s, t: s >= 2 * t,
    "S + T == 3": lambda s, t: s + t == 3,
    "2*(S/2) == S": lambda s, t: s % 2 == 0,
    "T % 3 == 1": lambda s, t: t % 3 == 1,
    "S/3 <= T": lambda s, t: s // 3 <= t,
    "max(S, T) >= 3": lambda s, t: max(s, t) >= 3,
    "S*T >= 1": lambda s, t: s * t >= 1,
}


def agreed_size(a: int, b: int) -> int:
    if 1 not in (a, b) and a != b:
        raise ArithmeticError
    return b if a == 1 else a


BINARY: dict[str, tuple[Callable[[int, int], int], Callable[[TDim, TDim], TDim]]] = {
    "+": (lambda a, b: a + b, lambda a, b: a + b),
    "-": (lambda a, b: a - b, lambda a, b: a - b),
    "*": (lambda a, b: a * b, lambda a, b: a * b),
    "//": (lambda a, b: a // b, lambda a, b: a // b),
    "%": (lambda a, b: a % b, lambda a, b: a % b),
    "min": (min, dim_min),
    "max": (max, dim_max),
    "broadcast": (agreed_size, broadcast),
    "ge": (lambda a, b: int(a >= b), ge),
    "gt": (lambda a, b: int(a > b), gt),
    "eq": (lambda a, b: int(a == b), eq),
}


def python_value(tree: Tree, env: Env) -> int:
    """The value by Python integers. Raises ArithmeticError: a broadcast has none."""
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return env[tree]
    return BINARY[tree[0]][0](python_value(tree[1], env), python_value(tree[2], env))


def build_dim(tree: Tree, scope: SymbolScope) -> TDim:
    if isinstance(tree, int):
        return TDim.of(tree)
    if isinstance(tree, str):
        return TDim.of(scope.symbol(tree))
    return BINARY[tree[0]][1](build_dim(tree[1], scope), build_dim(tree[2], scope))


def defined_values(tree: Tree, points: list[Env]) -> Iterator[tuple[Env, int]]:
    for env in points:
        try:
            yield env, python_value(tree, env)
        except ArithmeticError:
            continue


def atoms(dim: TDim, depth: int = 0) -> Iterator[tuple[object, int]]:
    """Every atom with the number of quotients around it."""
    for monomial, _ in dim.terms:
        for atom in monomial:
            yield atom, depth
            for arg in atom.args:
                yield from atoms(arg, depth + isinstance(atom, Div))


LEAVES = st.sampled_from(["S", "T", "S", "T"]) | st.integers(-5, 5)
STEPS = st.integers(2, 6)


def _wider(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    linear = st.tuples(st.sampled_from(["+", "-"]), inner, inner)
    scaled = st.tuples(st.just("*"), inner, st.integers(-4, 4))
    quotient = st.tuples(st.sampled_from(["//", "//", "//", "%"]), inner, STEPS)
    other = st.tuples(st.sampled_from(["min", "max", "broadcast", "ge", "gt", "eq", "*"]), inner, inner)
    return linear | linear | scaled | quotient | quotient | other


SMALL = LEAVES | _wider(LEAVES) | _wider(LEAVES | _wider(LEAVES))
QUOTIENTS = st.tuples(st.just("//"), SMALL, STEPS)
SCALED = st.tuples(st.just("*"), QUOTIENTS, st.integers(-4, 4))
NESTED = st.tuples(st.just("//"), st.tuples(st.sampled_from(["+", "-"]), LEAVES, SCALED), STEPS)
TREES = _wider(_wider(_wider(LEAVES) | LEAVES)) | NESTED | _wider(NESTED)
CHOSEN = st.lists(st.sampled_from(sorted(ASSUMPTIONS)), max_size=3, unique=True)

QUICK = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)

MANY = pytest.param(2000, marks=pytest.mark.slow)
budgets = pytest.mark.parametrize("examples", [200, MANY])


def scope_under(texts: list[str]) -> tuple[SymbolScope, list[Env]] | None:
    """A scope under assumptions, and the points of the grid that they allow; None if they contradict."""
    scope = SymbolScope()
    points = [env for env in GRID if all(ASSUMPTIONS[text](env["S"], env["T"]) for text in texts)]
    try:
        for text in texts:
            scope.assume(text)
    except DimError:
        assert not points
        return None
    return scope, points


def built_or_undefined(tree: Tree, scope: SymbolScope, points: list[Env]) -> TDim | None:
    try:
        return build_dim(tree, scope)
    except DimError:
        assert not list(defined_values(tree, points)), tree
        return None


def values(scope: SymbolScope, env: Env) -> dict:
    return {scope.symbol(name): value for name, value in env.items()}


def assert_reached(reached: Counter, *faces: str) -> None:
    missing = [face for face in faces if not reached[face]]
    assert not missing, (missing, reached)


@pytest.mark.parametrize("examples", [250, MANY])
def test_canonical_forms_keep_the_value_and_the_text(examples: int) -> None:
    reached: Counter = Counter()

    @settings(QUICK, max_examples=examples)
    @given(TREES, CHOSEN)
    def check_form(tree: Tree, texts: list[str]) -> None:
        setting = scope_under(texts)
        if setting is None:
            reached["contradiction"] += 1
            return
        scope, points = setting
        dim = built_or_undefined(tree, scope, points)
        if dim is None:
            reached["no broadcast"] += 1
            return
        for env, value in defined_values(tree, points):
            assert dim.eval(values(scope, env)) == value, (tree, str(dim), env)
        again = scope.parse(str(dim))
        assert again == dim
        assert hash(again) == hash(dim)
        assert dim + 1 - 1 == dim
        assert dim + scope.symbol("T") - scope.symbol("T") == dim
        assert 0 - (0 - dim) == dim
        for atom, depth in atoms(dim):
            reached[type(atom).__name__] += 1
            reached["nested Div"] += isinstance(atom, Div) and depth > 0
        reached["collapsed"] += isinstance(tree, tuple) and not list(atoms(dim))
        reached["negative"] += any(value < 0 for _, value in defined_values(tree, points))
        reached["product"] += any(len(monomial) > 1 for monomial, _ in dim.terms)

    check_form()
    kinds = (Div, Min, Max, Broadcast, Ge, Eq)
    faces = ("nested Div", "collapsed", "negative", "product", "contradiction")
    assert_reached(reached, *(kind.__name__ for kind in kinds), *faces)


@budgets
def test_equal_forms_have_equal_hashes_and_valid_proofs(examples: int) -> None:
    reached: Counter = Counter()

    @settings(QUICK, max_examples=examples)
    @given(SMALL, SMALL, CHOSEN)
    def check_proofs(left: Tree, right: Tree, texts: list[str]) -> None:
        setting = scope_under(texts)
        if setting is None:
            return
        scope, points = setting
        a, b = built_or_undefined(left, scope, points), built_or_undefined(right, scope, points)
        if a is None or b is None:
            return
        if a == b:
            reached["equal"] += 1
            assert hash(a) == hash(b)
            assert a.prove_eq(b).yes
        left_values = {tuple(env.items()): value for env, value in defined_values(left, points)}
        right_values = {tuple(env.items()): value for env, value in defined_values(right, points)}
        pairs = [
            (left_values[point], right_values[point]) for point in left_values.keys() & right_values.keys()
        ]
        relations: dict[str, Callable[[int, int], bool]] = {
            "ge": lambda x, y: x >= y,
            "gt": lambda x, y: x > y,
            "le": lambda x, y: x <= y,
            "lt": lambda x, y: x < y,
            "eq": lambda x, y: x == y,
        }
        for name, holds in relations.items():
            proof = getattr(a, f"prove_{name}")(b)
            reached[f"{name} {proof.verdict}"] += 1
            divided = any(isinstance(atom, Div) for atom, _ in atoms(a - b))
            reached[f"{proof.verdict} with quotients"] += divided
            if not proof.unknown:
                assert all(holds(x, y) == proof.yes for x, y in pairs), (proof, texts)
        low, high = a.bounds()
        assert low is None or all(low <= x for x in left_values.values()), (a, low, texts)
        assert high is None or all(x <= high for x in left_values.values()), (a, high, texts)
        reached["bounded"] += low is not None and high is not None and not a.is_const

    check_proofs()
    verdicts = ("yes", "no", "unknown")
    assert_reached(reached, "equal", "bounded")
    assert_reached(reached, *(f"{r} {v}" for r in ("ge", "gt", "le", "lt", "eq") for v in verdicts))
    assert_reached(reached, *(f"{v} with quotients" for v in verdicts))


@budgets
def test_proofs_decide_quasi_affine_dims_of_one_symbol(examples: int) -> None:
    reached: Counter = Counter()
    small = st.integers(-3, 3)
    piece = st.tuples(small, small, st.integers(-7, 7), st.integers(1, 6))
    terms = st.tuples(st.lists(piece, max_size=4), st.integers(-3, 3), st.sampled_from([None, 0, -5]))

    @settings(QUICK, max_examples=examples)
    @given(terms)
    def check_decision(parameters: tuple) -> None:
        parts, const, minimum = parameters
        scope = SymbolScope()
        symbol = scope.symbol("S")
        if minimum is not None:
            scope.assume(f"S >= {minimum}")
        dim = sum((c * ((a * symbol + b) // k) for c, a, b, k in parts), TDim.of(const))
        period = lcm(*(k for *_, k in parts))
        span = range(-20 * period - 40 if minimum is None else minimum, 20 * period + 40)
        values = [sum(c * ((a * s + b) // k) for c, a, b, k in parts) + const for s in span]
        ge_is = "yes" if min(values) >= 0 else "no" if max(values) < 0 else "unknown"
        eq_is = "yes" if not any(values) else "no" if 0 not in values else "unknown"
        assert dim.prove_ge(0).verdict == ge_is, (str(dim), minimum)
        assert dim.prove_eq(0).verdict == eq_is, (str(dim), minimum)
        falls = (dim.slope(symbol) > 0 and minimum is None) or dim.slope(symbol) < 0
        assert dim.bounds()[0] == (None if falls else min(values)), (str(dim), minimum)
        reached[f"ge {ge_is}"] += 1
        reached[f"eq {eq_is}"] += 1

    check_decision()
    assert_reached(reached, *(f"{r} {v}" for r in ("ge", "eq") for v in ("yes", "no", "unknown")))


@budgets
def test_subs_commutes_with_eval(examples: int) -> None:
    reached: Counter = Counter()

    @settings(QUICK, max_examples=examples)
    @given(TREES, SMALL, SMALL)
    def check_substitution(tree: Tree, for_s: Tree, for_t: Tree) -> None:
        scope = SymbolScope()
        try:
            dim, new = build_dim(tree, scope), {"S": build_dim(for_s, scope), "T": build_dim(for_t, scope)}
            replaced = dim.subs(values(scope, new))
        except DimError:
            reached["undefined"] += 1
            return
        for env in GRID[::5]:
            try:
                inner = {"S": python_value(for_s, env), "T": python_value(for_t, env)}
                expected = python_value(tree, inner)
            except ArithmeticError:
                continue
            assert replaced.eval(values(scope, env)) == expected, (tree, for_s, for_t, env)
            reached["compared"] += 1

    check_substitution()
    assert_reached(reached, "compared", "undefined")


@budgets
def test_slope_is_the_growth_at_large_values(examples: int) -> None:
    reached: Counter = Counter()

    @settings(QUICK, max_examples=examples)
    @given(TREES, st.integers(-6, 6))
    def check_slope(tree: Tree, t: int) -> None:
        scope = SymbolScope()
        try:
            dim = build_dim(tree, scope)
            slope = dim.slope(scope.symbol("S"))
        except DimError:
            reached["refused"] += 1
            return
        # the drift from slope * S stays as it is however far out
        drifts = []
        for start in (10**6, 10**9, 10**12):
            near = [{"S": start + i, "T": t} for i in range(60)]
            drifts.append([value - slope * env["S"] for env, value in defined_values(tree, near)])
        for drift in drifts:
            assert all(abs(d) < 10**5 for d in drift), (tree, str(dim), slope)
        reached["fraction"] += slope.denominator > 1
        reached["zero"] += slope == 0
        reached["piecewise"] += any(isinstance(atom, Min | Max | Ge | Eq) for atom, _ in atoms(dim))

    check_slope()
    assert_reached(reached, "refused", "fraction", "zero", "piecewise")
