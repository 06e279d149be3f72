"""The inputs of a model file: what the file declares of them, and what the caller gives instead."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np

from pulse.dim import SymbolScope, TDim, ge
from pulse.errors import DimError, LoadError, PulseError
from pulse.facts import DTYPES, Array, DType, convert_numbers, dtype_name
from pulse.infer.fact import InferenceFact
from pulse.support.naming import require_name
from pulse.support.record import record
from pulse.support.wording import count_of

Fixed: TypeAlias = dict[str, TDim]
"""Name of a size in the file -> the caller's dim."""


@record
class DeclaredInput:
    """An input as a file declares it.

    name   its name
    dtype  its type; None if the file leaves it open
    dims   for each axis the size, its name or expression, or None; None if the number of axes is open
    """

    name: str
    dtype: DType | None
    dims: "tuple[int | str | None, ...] | None"

    @property
    def has_expression(self) -> bool:
        """Whether a size is not a name: it may be an expression of the names of other inputs, ``32*T``."""
        return any(isinstance(dim, str) and not dim.isidentifier() for dim in self.dims or ())

    def fact(self, fixed: Fixed, scope: SymbolScope) -> InferenceFact:
        """Return type and shape; the caller's dims replace names in ``fixed``."""
        if self.dims is None:
            return InferenceFact(self.dtype)
        return InferenceFact(self.dtype, tuple(_dim(dim, fixed, scope) for dim in self.dims))

    def constant(self, source: Any, ones: Collection[str] = ()) -> Array:
        """Return the input's constant value: an array of its type; a single number fills the array.

        ones    names of sizes that are 1 if the value is a single number
        Raises LoadError: the value has another type, or the type or a size is open
        """
        if self.dtype is None:
            raise LoadError(f"input {self.name}: the file has no type for a constant; feed it instead")
        array = convert_numbers(source, self.dtype)
        if array is None:
            raise LoadError(
                f"constant {self.name}: {source!r} is not of type {dtype_name(self.dtype)}; give a number, a list or "
                "an array"
            )
        if array.ndim or not self.dims:
            return array
        sizes = [1 if dim in ones else dim for dim in self.dims]
        numbers = [dim for dim in sizes if isinstance(dim, int)]
        if len(numbers) < len(sizes):
            open_sizes = ", ".join(str(dim) for dim in sizes if not isinstance(dim, int))
            raise LoadError(
                f"constant {self.name}: {source!r} is one number, but the size {open_sizes} of the input is open; give "
                "a list or an array of its shape"
            )
        return np.full(numbers, array)


def check_given(inputs: Any, constants: Any) -> None:
    """Require the caller's inputs and constants by name.

    Raises LoadError: they are not mappings, or a shape is not text
    """
    shapes = cast("Mapping[str, Any]", inputs) if isinstance(inputs, Mapping) else None
    if inputs and (shapes is None or not all(isinstance(text, str) for text in shapes.values())):
        raise LoadError(f'inputs must map names to shapes, such as {{"x": "1,80,T,f32"}}, not {inputs!r}')
    if constants is not None and not isinstance(constants, Mapping):
        raise LoadError(f'constants must map names to values, such as {{"sr": 16000}}, not {constants!r}')


def input_facts(
    inputs: Iterable[DeclaredInput],
    shapes: Mapping[str, str],
    scope: SymbolScope,
    constants: Mapping[str, Any] | None = None,
) -> dict[str, InferenceFact]:
    """Return the fact of each input, with its value if ``constants`` has one.

    Raises LoadError: ``shapes`` or ``constants`` does not fit the file.
    """
    declared = {value.name: value for value in inputs}
    for name in (*shapes, *(constants or {})):
        require_name("input", name, declared, LoadError)
    fixed: Fixed = {}
    arrays = {
        name: declared[name].constant(value, _sizes_of_one(name, declared.values()))
        for name, value in (constants or {}).items()
    }
    shapes = {**shapes, **{name: ",".join(map(str, array.shape)) for name, array in arrays.items()}}
    specs = {name: _GivenShape(declared[name], text, scope) for name, text in shapes.items()}
    for spec in specs.values():
        spec.match_names(fixed)
    parsed = {
        name: specs[name].fact if name in specs else declared[name].fact(fixed, scope)
        for name in sorted(declared, key=lambda name: declared[name].has_expression)
    }
    facts = {name: parsed[name] for name in declared}
    facts |= {name: replace(facts[name], value=array) for name, array in arrays.items()}
    for fact in facts.values():
        assume_sizes(fact.shape or (), scope)
    return facts


def counts_streams(name: str) -> bool:
    """Return whether a size is called like the number of streams: n, b, bs, or with batch in it."""
    return re.fullmatch(r"(n|b|bs|.*batch.*)", name, re.IGNORECASE) is not None


def _sizes_of_one(name: str, inputs: Iterable[DeclaredInput]) -> list[str]:
    """Return the names of sizes in an input's shape that are 1 if its value is a single number.

    These are names that no other input has, and those of streams by name that come first in another input.
    """
    shapes = {value.name: value.dims or () for value in inputs}
    others = [shape for other, shape in shapes.items() if other != name]

    def is_one(size: int | str | None) -> bool:
        if not isinstance(size, str) or not size.isidentifier():
            return False
        if all(size not in shape for shape in others):
            return True
        open_sizes = [[dim for dim in shape if not isinstance(dim, int)] for shape in others]
        return counts_streams(size) and any(
            shape[:1] == (size,) and len(sizes) > 1 for shape, sizes in zip(others, open_sizes)
        )

    return [size for size in shapes[name] if isinstance(size, str) and is_one(size)]


def assume_sizes(dims: Sequence[TDim | None], scope: SymbolScope) -> None:
    """Assume that no symbol of a size is negative."""
    for dim in dims:
        for symbol in () if dim is None else sorted(dim.symbols, key=str):
            scope.assume(ge(TDim.of(symbol), TDim.of(0)))


def _dim(dim: int | str | None, fixed: Fixed, scope: SymbolScope) -> TDim | None:
    if isinstance(dim, str):
        return fixed.get(dim, named_dim(dim, scope))
    return None if dim is None else TDim.of(dim)


def named_dim(name: str, scope: SymbolScope) -> TDim:
    """Return the dim of a name in a file: an expression if all names in it are known symbols, otherwise a new symbol.

    So ``time-axis`` is one symbol, and ``T-1`` is a difference if the file has T before it.
    """
    try:
        with scope.trial():
            names = {symbol.name for symbol in scope.parse(name).symbols}
        if all(part == name or scope.knows(part) for part in names):
            return scope.parse(name)
    except DimError:
        pass
    cleaned = "".join(letter if letter.isalnum() else "_" for letter in name)
    return TDim.of(scope.symbol(cleaned if not cleaned[:1].isdigit() else f"_{cleaned}"))


class _GivenShape:
    """The caller's shape of one input."""

    def __init__(self, declared: DeclaredInput, text: str, scope: SymbolScope) -> None:
        self.name, self.text = declared.name, text
        self.dims = declared.dims or ()
        self.fact = self._parse(declared.dtype, scope)
        shape = self.fact.shape or ()
        if declared.dims is not None and len(declared.dims) != len(shape):
            raise LoadError(
                f"input {self.name}: {text!r} has {count_of(len(shape), 'dim')}; give {len(self.dims)}, as in the file"
            )

    def _parse(self, dtype: DType | None, scope: SymbolScope) -> InferenceFact:
        parts = [part.strip() for part in self.text.split(",")] if self.text.strip() else []
        if parts and parts[-1] in DTYPES:
            own_dtype = DTYPES[parts.pop()]
            if dtype is not None and own_dtype != dtype:
                raise LoadError(
                    f"input {self.name}: {self.text!r} asks for {dtype_name(own_dtype)}, "
                    f"the file has {dtype_name(dtype)}"
                )
            dtype = own_dtype
        try:
            dims = tuple(scope.parse(part) for part in parts)
        except PulseError as error:
            raise LoadError(
                f"input {self.name}: {self.text!r} is not a shape such as '1,80,T,f32': {error}"
            ) from error
        if any(dim.is_const and int(dim) < 0 for dim in dims):
            raise LoadError(f"input {self.name}: {self.text!r} has a negative dim; give it a name such as T")
        return InferenceFact(dtype, dims)

    def match_names(self, fixed: Fixed) -> None:
        """Match the caller's dims with the file's names. Raises LoadError: they contradict."""
        for axis, (file_dim, dim) in enumerate(zip(self.dims, self.fact.shape or ())):
            assert dim is not None
            if isinstance(file_dim, int):
                if dim.is_const and int(dim) != file_dim:
                    raise LoadError(
                        f"input {self.name}: {self.text!r} has axis {axis} as {dim}, the file fixes it to {file_dim}"
                    )
            elif file_dim is not None and fixed.setdefault(file_dim, dim) != dim:
                raise LoadError(
                    f"inputs: {file_dim} is given as {fixed[file_dim]} and as {dim} ({self.name}: {self.text!r})"
                )
