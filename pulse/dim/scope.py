"""SymbolScope: the symbols of one model and the assumptions on them."""

from __future__ import annotations

from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from pulse.dim.atoms import Eq, Ge
from pulse.dim.cases import extent_under
from pulse.dim.parse import parse
from pulse.dim.tdim import Cache, DimScope, Symbol, TDim
from pulse.errors import DimError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

P = ParamSpec("P")
R = TypeVar("R")


def cache_in_scope(function: Callable[Concatenate[TDim, P], R]) -> Callable[Concatenate[TDim, P], R]:
    """Cache results per dim and arguments; a new assumption clears the cache."""

    @wraps(function)
    def find(dim: TDim, *args: P.args, **kwargs: P.kwargs) -> R:
        if dim.scope is None:
            return function(dim, *args, **kwargs)
        others, key = dim.scope.cache.others, (function, dim, args, tuple(kwargs.items()))
        if key not in others:
            others[key] = function(dim, *args, **kwargs)
        return others[key]

    return find


class SymbolScope(DimScope):
    """Symbols by name, and the assumptions that every dim of the scope may rely on."""

    def __init__(self) -> None:
        super().__init__()
        self._symbols: dict[str, Symbol] = {}
        self._assumptions: tuple[TDim, ...] = ()

    def symbol(self, name: str) -> Symbol:
        if name not in self._symbols:
            if not name or "`" in name:
                raise DimError(f"{name!r} cannot name a symbol; it must not be empty or contain a backquote")
            self._symbols[name] = Symbol(name, self)
        return self._symbols[name]

    def knows(self, name: str) -> bool:
        """Return whether there is a symbol of that name."""
        return name in self._symbols

    def parse(self, text: str) -> TDim:
        """Read an expression such as ``(S+23)/2-1``; unknown names become symbols."""
        return parse(text, self)

    @property
    def assumptions(self) -> tuple[TDim, ...]:
        """The assumptions that were not implied by earlier ones, as 0/1-valued dims."""
        return self._assumptions

    def assume(self, condition: str | TDim) -> None:
        test = self.parse(condition) if isinstance(condition, str) else condition
        if test == 1:
            return
        new_premises = _as_premises(test) if test != 0 else None
        if new_premises is None:
            raise self._contradiction(condition)
        premises = self.premises + new_premises
        ranges = dict(self.ranges)
        for symbol in sorted(_find_connected(test.symbols, premises), key=str):
            extent = extent_under(TDim.of(symbol), premises)
            if extent is None:
                raise self._contradiction(condition)
            ranges[symbol] = extent.low, extent.high
        self._assumptions += (test,)
        self.premises, self.ranges, self.cache = premises, ranges, Cache()
        self.joint = tuple(p for p in premises if len(p.symbols) > 1 and _is_linear(p))

    def with_assumption(self, condition: str | TDim) -> SymbolScope:
        """Return a scope of the same symbols with one more assumption; this one does not change.

        Raises DimError as ``assume``.
        """
        scope = SymbolScope()
        scope._symbols, scope._assumptions = dict(self._symbols), self._assumptions
        scope.premises, scope.joint, scope.ranges = self.premises, self.joint, dict(self.ranges)
        scope.assume(condition)
        return scope

    @contextmanager
    def trial(self) -> Generator[None]:
        """Undo, on exit, the assumptions and symbols made inside."""
        symbols = dict(self._symbols)
        previous = self._assumptions, self.premises, self.joint, self.ranges, self.cache
        try:
            yield
        finally:
            self._assumptions, self.premises, self.joint, self.ranges, self.cache = previous
            self._symbols = symbols

    def _contradiction(self, condition: str | TDim) -> DimError:
        assumptions = ", ".join(map(str, self._assumptions)) or "nothing"
        return DimError(
            f"assumption {condition} can never hold (already assumed: {assumptions}); drop one of them"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        own_names = tuple(name for name, symbol in self._symbols.items() if symbol.scope is self)
        others = tuple(symbol for symbol in self._symbols.values() if symbol.scope is not self)
        return _restore, (own_names, tuple(map(str, self._assumptions)), others)

    def __copy__(self) -> SymbolScope:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> SymbolScope:
        return self


def scope_of(symbol: Symbol) -> SymbolScope:
    """Return the scope that made a symbol."""
    assert isinstance(symbol.scope, SymbolScope)
    return symbol.scope


def _restore(names: tuple[str, ...], assumptions: tuple[str, ...], others: tuple[Symbol, ...]) -> SymbolScope:
    """Unpickle a scope; ``others`` are the symbols that it shares with the scope from which it was derived."""
    scope = SymbolScope()
    scope._symbols.update((symbol.name, symbol) for symbol in others)  # pyright: ignore[reportPrivateUsage]
    for name in names:
        scope.symbol(name)
    for assumption in assumptions:
        scope.assume(assumption)
    return scope


def _as_premises(test: TDim) -> tuple[TDim, ...]:
    """Return dims that are all >= 0 exactly if the 0/1-valued dim is 1."""
    if len(test.terms) == 1 and len(test.terms[0][0]) == 1:
        (atom,), coefficient = test.terms[0]
        match atom, coefficient, test.const:
            case Ge(), 1, 0:
                return (atom.diff,)
            case Ge(), -1, 1:
                return (-1 - atom.diff,)
            case Eq(), 1, 0:
                return atom.diff, -atom.diff
            case _:
                pass
    raise DimError(f"cannot assume {test}; give one comparison with >=, >, <=, < or ==")


def _is_linear(dim: TDim) -> bool:
    return all(len(monomial) == 1 and isinstance(monomial[0], Symbol) for monomial, _ in dim.terms)


def _find_connected(symbols: Iterable[Symbol], premises: tuple[TDim, ...]) -> set[Symbol]:
    """Return the symbols that premises tie to the given ones."""
    connected = set(symbols)
    while True:
        wider = connected.union(*(p.symbols for p in premises if p.symbols & connected))
        if wider == connected:
            return connected
        connected = wider
