# pyright: basic
"""Complex arithmetic as arithmetic of its real and imaginary parts, which PyTorch's exporter supports."""

from collections.abc import Callable
from typing import Any

from pulse.torch.replacements.stable_functions import angle_of

ComplexPair = tuple[Any, Any]
"""The real and the imaginary part: tensors or numbers."""


def complex_result(torch: Any, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return the result of a function of PyTorch, computed with real tensors; None if no argument is complex."""
    full_name = getattr(function, "__name__", "")
    name, in_place = full_name.strip("_"), full_name.endswith("_") and not full_name.endswith("__")
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
        return _store(torch, first, in_place, join_parts(torch, ARITHMETIC[name](torch, left, right)))
    if name in PRODUCTS and len(args) == 2 and not named:
        return join_parts(torch, _sums_of_products(function, *(parts(torch, operand) for operand in args)))
    if name == "einsum" and len(args) == 3 and not listed:
        equation, *operands = args
        return join_parts(
            torch,
            _sums_of_products(
                lambda x, y: function(equation, x, y), *(parts(torch, operand) for operand in operands)
            ),
        )
    if name in TRANSFORMS:
        return _transform(torch, function, *args, **named)
    if name in FUNCTIONS and len(args) == 1 and not named:
        return _store(torch, first, in_place, join_parts(torch, FUNCTIONS[name](torch, parts(torch, first))))
    if name == "angle":
        return angle_of(torch, *reversed(parts(torch, first)))
    if name in PARTWISE and not in_place and all(map(torch.is_tensor, listed or [first])):
        return _apply_partwise(torch, function, args, named)
    return None


def _store(torch: Any, tensor: Any, in_place: bool, result: Any) -> Any:
    """Return a result; first write it to the tensor if the function changes that."""
    if not in_place:
        return result
    torch.view_as_real(tensor).copy_(torch.view_as_real(result))
    return tensor


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


def _sums_of_products(function: Callable[[Any, Any], Any], x: ComplexPair, y: ComplexPair) -> ComplexPair:
    """Return a function of two tensors that is linear in each."""

    def value(left: Any, right: Any) -> Any:
        return 0 if isinstance(left, int) or isinstance(right, int) else function(left, right)

    return value(x[0], y[0]) - value(x[1], y[1]), value(x[0], y[1]) + value(x[1], y[0])


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

PRODUCTS = frozenset(["matmul", "mm", "bmm"])
"""Products of matrices."""

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
    *("sum", "mean", "cumsum", "clone", "contiguous"),
    *("getitem", "narrow", "chunk", "split", "unbind", "index_select"),
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
