"""Lengths as expressions of C, and how long a stream may be so that they fit into 64 bits."""

from pulse.dim.atoms import Div, Eq, Ge, Max, Min
from pulse.dim.tdim import Atom, Symbol, TDim
from pulse.errors import WriteError
from pulse.support.bounds import FAR_FRAMES, UNBOUNDED
from pulse.support.wording import spell


def expression(length: TDim, variable: str = "n") -> str:
    """Return a length of one symbol as C, by the functions of ``shell.c``. Raises WriteError: no C for a part."""
    terms = [f"INT64_C({length.const})"] if length.const or not length.terms else []
    for monomial, coefficient in length.terms:
        factors = [f"INT64_C({coefficient})"] if coefficient != 1 else []
        terms.append(" * ".join([*factors, *(_atom(atom, variable) for atom in monomial)]))
    return " + ".join(terms)


def _atom(atom: Atom, variable: str) -> str:
    if isinstance(atom, Symbol):
        return variable
    if isinstance(atom, Div):
        return f"floor_div({expression(atom.num, variable)}, {atom.k})"
    if isinstance(atom, Min | Max):
        name, (first, *others) = "min_i64" if isinstance(atom, Min) else "max_i64", atom.options
        text = expression(first, variable)
        for other in others:
            text = f"{name}({text}, {expression(other, variable)})"
        return text
    if isinstance(atom, Ge | Eq):
        return f"({expression(atom.diff, variable)} {atom.sign} 0)"
    raise WriteError(
        f"the length {atom.text} is not known before the sizes agree: give the other symbols a number with "
        f"{spell('inputs')}"
    )


def longest(lengths: list[TDim]) -> int:
    """Return a number of frames up to which all lengths and intermediate results fit into 64 bits."""
    frames = FAR_FRAMES
    while frames > 1 and any(_magnitude(length, frames) >= UNBOUNDED for length in lengths):
        frames //= 2
    return frames


def _magnitude(length: TDim, frames: int) -> int:
    """Return a bound of every number in the computation of a length, for up to that many frames."""
    total = abs(length.const)
    for monomial, coefficient in length.terms:
        size = abs(coefficient)
        for atom in monomial:
            size *= max(1, _atom_magnitude(atom, frames))
        total += size
    return total


def _atom_magnitude(atom: Atom, frames: int) -> int:
    if isinstance(atom, Symbol):
        return frames
    return max((_magnitude(arg, frames) for arg in atom.args), default=0)
