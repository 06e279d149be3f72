# pyright: basic
"""Complex arithmetic as arithmetic of its real and imaginary parts, which PyTorch's exporter supports."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from pulse.torch.replacements.stable_functions import angle_of

ComplexPair = tuple[Any, Any]
"""The real and the imaginary part: tensors or numbers."""


def complex_result(torch: Any, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return the result of a function of PyTorch, computed with real tensors; None if no argument is complex."""
    name = getattr(function, "__name__", "")
    result = _result(torch, name.strip("_"), function, args, named)
    if result is None or not name.endswith("_") or name.endswith("__"):
        return result
    if result.shape != args[0].shape:
        return None
    torch.view_as_real(args[0]).copy_(torch.view_as_real(result))  # in place, as in z.mul_(2)
    return args[0]


def _result(torch: Any, name: str, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    first = args[0] if args else None
    listed: list[Any] = list(first) if isinstance(first, list | tuple) else []
    if not any(is_complex(torch, value) for value in (*args, *listed)):
        return _new_complex(torch, name, function, args, named)
    if name in NEW_TENSORS and torch.is_tensor(first):
        like = (
            parts(torch, first)[0],
            *args[1:],
        )  # exporters know only the type and the sizes of real tensors
        result = _new_complex(torch, name, function, like, {"dtype": args[0].dtype, **named})
        return function(*like, **named) if result is None else result
    if name in ARITHMETIC and len(args) == 2 and named.keys() <= {"alpha"}:
        left, right = (parts(torch, operand) for operand in args)
        if "alpha" in named:
            right = _product(torch, right, parts(torch, named["alpha"]))
        return join_parts(torch, ARITHMETIC[name](torch, left, right))
    if name in PRODUCTS:
        return _sums_of_products(torch, lambda x, y: function(x, y, *args[2:], **named), args[:2])
    if name == "linear":
        return _linear(torch, function, *args, **named)
    if name == "einsum":
        return _sums_of_products(torch, lambda *factors: function(first, *factors), args[1:])
    if name in TRANSFORMS:
        return _transform(torch, function, *args, **named)
    if name in FUNCTIONS and len(args) == 1 and not named:
        return join_parts(torch, FUNCTIONS[name](torch, parts(torch, first)))
    if name in POLAR:
        return POLAR[name](torch, first, *args[1:])
    if name in NORMS:
        return function(args[0].abs(), *args[1:], **named)
    if name in ("where", "masked_fill") and len(args) == 3:
        condition, new, old = args if name == "where" else (args[1], args[2], first)
        return _choose_parts(torch, condition, parts(torch, new), parts(torch, old))
    if name in PARTWISE and all(map(torch.is_tensor, listed or [first])):
        return _apply_partwise(torch, function, args, named)
    return None


def _new_complex(torch: Any, name: str, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return a complex tensor that is made of real ones; None for other functions."""
    if name == "polar" and len(args) == 2 and not named:
        return torch.complex(args[0] * torch.cos(args[1]), args[0] * torch.sin(args[1]))
    dtype: Any = named.get("dtype")
    if name == "to" and len(args) == 2 and isinstance(args[1], torch.dtype) and not named:
        dtype, args = args[1], args[:1]
    elif name not in NEW_TENSORS or (name == "full" and isinstance(args[-1], complex)):
        return None
    if not isinstance(dtype, torch.dtype) or not dtype.is_complex:
        return None
    if name == "to":
        real = args[0].to(dtype.to_real())
    else:
        real = function(*args, **{**named, "dtype": dtype.to_real()})
    return torch.complex(real, torch.zeros_like(real))


def is_complex(torch: Any, value: Any) -> bool:
    """Return whether a tensor or a number is complex."""
    return value.is_complex() if torch.is_tensor(value) else isinstance(value, complex)


def parts(torch: Any, value: Any) -> ComplexPair:
    """Return the real and the imaginary part, which is the number 0 for a real value."""
    if not torch.is_tensor(value):
        return (value.real, value.imag) if isinstance(value, complex) else (value, 0)
    if not value.is_complex():
        return value, 0
    pairs = torch.view_as_real(value)
    return pairs[..., 0], pairs[..., 1]


def join_parts(torch: Any, pair: ComplexPair) -> Any:
    """Join both parts into a complex tensor; a part may be a number."""
    real, imaginary = pair
    if not torch.is_tensor(real):
        real = torch.full_like(imaginary, real)
    if not torch.is_tensor(imaginary):
        imaginary = torch.full_like(real, imaginary)
    return torch.complex(*torch.broadcast_tensors(real, imaginary))


def _multiply(left: Any, right: Any) -> Any:
    """Return a product in which the number 0 stays a number."""
    exact = (left, right)
    if any(isinstance(number, int | float) and number == 0 for number in exact):
        return 0
    return right if _is_one(left) else left if _is_one(right) else left * right


def _is_one(value: Any) -> bool:
    return isinstance(value, int | float) and value == 1


def _product(torch: Any, x: ComplexPair, y: ComplexPair) -> ComplexPair:
    return _multiply(x[0], y[0]) - _multiply(x[1], y[1]), _multiply(x[0], y[1]) + _multiply(x[1], y[0])


def _sums_of_products(torch: Any, function: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """Return a function of tensors that is linear in each."""
    sums: list[Any] = [0, 0]
    for choice in itertools.product((0, 1), repeat=len(operands)):
        factors = [parts(torch, operand)[part] for operand, part in zip(operands, choice)]
        if all(map(torch.is_tensor, factors)):
            place, turns = sum(choice) % 2, sum(choice) // 2  # i * i = -1
            term = function(*factors)
            sums[place] = sums[place] - term if turns % 2 else sums[place] + term
    return join_parts(torch, (sums[0], sums[1]))


def _linear(torch: Any, function: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    product = _sums_of_products(torch, function, (input, weight))
    if bias is None:
        return product
    real, imaginary = parts(torch, product)
    return join_parts(torch, ARITHMETIC["add"](torch, (real, imaginary), parts(torch, bias)))


def _choose_parts(torch: Any, condition: Any, x: ComplexPair, y: ComplexPair) -> Any:
    return join_parts(torch, (torch.where(condition, x[0], y[0]), torch.where(condition, x[1], y[1])))


def _power(torch: Any, z: Any, exponent: Any) -> Any:
    """Return a power by a number: of small integers by products, else by the angle. None for other exponents."""
    if not isinstance(exponent, int | float) or not torch.is_tensor(z):
        return None
    if exponent in (1, 2, 3, 4):
        result = factor = parts(torch, z)
        for _ in range(int(exponent) - 1):
            result = _product(torch, result, factor)
        return join_parts(torch, result)
    size, angle = z.abs() ** exponent, _angle(torch, z) * exponent
    return torch.complex(size * torch.cos(angle), size * torch.sin(angle))


def _angle(torch: Any, z: Any) -> Any:
    real, imaginary = parts(torch, z)
    return angle_of(torch, imaginary, real)


def _sign(torch: Any, z: Any) -> Any:
    """Return z with the magnitude 1, or 0 where z is 0."""
    size = z.abs()
    real, imaginary = parts(torch, z)
    size = torch.where(size > 0, size, 1)
    return torch.complex(real / size, imaginary / size)


def _quotient(torch: Any, x: ComplexPair, y: ComplexPair) -> ComplexPair:
    if isinstance(y[1], int | float) and y[1] == 0:
        return x[0] / y[0], _multiply(x[1], 1 / y[0])
    square = y[0] * y[0] + y[1] * y[1]
    upper = _product(torch, x, (y[0], -y[1]))
    return upper[0] / square, upper[1] / square


def _exponential(torch: Any, x: ComplexPair) -> ComplexPair:
    size = torch.exp(x[0]) if torch.is_tensor(x[0]) else 1
    return _multiply(size, torch.cos(x[1])), _multiply(size, torch.sin(x[1]))


ARITHMETIC: dict[str, Callable[[Any, ComplexPair, ComplexPair], ComplexPair]] = {
    **dict.fromkeys(("mul", "rmul", "imul", "multiply"), _product),
    **dict.fromkeys(("div", "truediv", "itruediv", "divide"), _quotient),
    "rtruediv": lambda torch, x, y: _quotient(torch, y, x),
    **dict.fromkeys(("add", "radd", "iadd"), lambda torch, x, y: (x[0] + y[0], x[1] + y[1])),
    **dict.fromkeys(("sub", "isub", "subtract"), lambda torch, x, y: (x[0] - y[0], x[1] - y[1])),
    "rsub": lambda torch, x, y: (y[0] - x[0], y[1] - x[1]),
}
"""Complex arithmetic by the names of PyTorch's functions, without underscores."""

FUNCTIONS: dict[str, Callable[[Any, ComplexPair], ComplexPair]] = {
    "exp": _exponential,
    "neg": lambda torch, x: (-x[0], -x[1]),
    "conj": lambda torch, x: (x[0], -x[1]),
    "conj_physical": lambda torch, x: (x[0], -x[1]),
}

NEW_TENSORS = frozenset(["full", "zeros", "ones", "zeros_like", "ones_like", "new_zeros", "new_ones"])
"""Functions that make a tensor of one number; those of a tensor take its type."""

POLAR: dict[str, Callable[..., Any]] = {
    "angle": lambda torch, z: _angle(torch, z),
    "pow": _power,
    "square": lambda torch, z: _power(torch, z, 2),
    "sqrt": lambda torch, z: _power(torch, z, 0.5),
    "log": lambda torch, z: torch.complex(torch.log(z.abs()), _angle(torch, z)),
    "sgn": _sign,
}
"""Functions that need the magnitude or the angle."""

NORMS = frozenset(["norm", "linalg_norm", "linalg_vector_norm"])
"""Functions of magnitudes."""

PRODUCTS = frozenset(["matmul", "rmatmul", "mm", "bmm", "mv", "outer", "inner", "tensordot"])
"""Products of matrices and vectors."""

TRANSFORMS = frozenset(["fft_fft", "fft_ifft"])
"""Functions that pad or cut their frames to a length ``n``."""

PARTWISE = {
    *(
        "pad",
        "cat",
        "concat",
        "stack",
        "transpose",
        "permute",
        "movedim",
        "swapaxes",
        "roll",
        "flip",
        "repeat",
    ),
    *("reshape", "view", "squeeze", "unsqueeze", "flatten", "unflatten", "unfold", "expand"),
    *("view_as", "expand_as", "tile", "repeat_interleave", "swapdims"),
    *("sum", "mean", "cumsum", "clone", "contiguous"),
    *("getitem", "narrow", "chunk", "split", "unbind", "index_select", "select", "gather", "take_along_dim"),
    *("diagonal", "tril", "triu"),
}
"""Functions that apply to the real and the imaginary parts separately."""


def _transform(
    torch: Any, function: Any, input: Any, n: int | None = None, dim: int = -1, norm: str | None = None
) -> Any:
    """Return the transform of frames that have its length; None if they have it already, or one that is not known."""
    size = input.shape[dim]
    if n is None or n == size or not is_complex(torch, input) or not isinstance(size, int):
        return None
    widths = [0, 0] * (-1 - dim if dim < 0 else input.dim() - 1 - dim) + [0, n - size]
    real, imaginary = (torch.nn.functional.pad(part, widths) for part in parts(torch, input))
    return function(torch.complex(real, imaginary), dim=dim, norm=norm)


def pairs_of_write(torch: Any, x: Any, index: Any, value: Any) -> tuple[Any, Any, Any]:
    """Return the write ``x[index] = value`` to a complex tensor as one to its pairs of real numbers."""
    if not is_complex(torch, x):
        return x, index, value
    entries = index if isinstance(index, tuple) else (index,)
    if not torch.is_tensor(index):
        has_ellipsis = any(entry is Ellipsis for entry in entries)
        index = (*entries, slice(None)) if has_ellipsis else (*entries, Ellipsis, slice(None))
    pairs = torch.view_as_real(x)
    if torch.is_tensor(value):
        value = torch.view_as_real(join_parts(torch, parts(torch, value)))
    elif value != 0:
        value = torch.tensor(parts(torch, value), dtype=pairs.dtype)
    return pairs, index, value


def _apply_partwise(torch: Any, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return the function on the parts of its first argument, a tensor or a list of tensors."""
    first = args[0]
    is_sequence = not torch.is_tensor(first)
    split = [parts(torch, tensor) for tensor in (first if is_sequence else [first])]
    real = [pair[0] for pair in split]
    imaginary = [pair[1] if torch.is_tensor(pair[1]) else torch.zeros_like(pair[0]) for pair in split]
    results = [
        function(operands if is_sequence else operands[0], *args[1:], **named)
        for operands in (real, imaginary)
    ]
    if isinstance(results[0], tuple | list):
        return type(results[0])(torch.complex(*pair) for pair in zip(*results))
    return torch.complex(*results)
