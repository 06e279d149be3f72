"""Loops over frames in a module's code, and the positions of their steps."""

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

_OPERATOR: Any = operator
"""The module, whose functions take numbers and tensors."""
EXPORTED_STEPS = 8
"""Steps of a loop that are exported."""
LOOP_DOMAIN = "pulse.loops"
"""The domain of the marks: ``Frame`` is one frame, ``Stack`` joins frames, ``Store`` writes one to a tensor, and
``Step`` is the number of a step.
"""


STEP_ATTRIBUTE = "_pulse_loop_step"
"""The attribute of a tensor that has the loop and the step it depends on."""

CHANGED_CONDITION = (
    "a condition on the number of the step is otherwise from step {step} on, and only {exported} steps are exported; "
    "choose with torch.where by a tensor of positions (torch.arange), whose frames the loop takes"
)
CHANGED_NUMBER = (
    "an integer that is computed from the number of the step, as in t // 16, selects by its value, and changes from "
    "step {step} on; only {exported} steps are exported"
)
NO_ARITHMETIC = (
    "it computes with a number of the step that is not arithmetic with a tensor, such as 0.9 ** t or "
    "math.sqrt(t); leave out float(t), since t / 2 is a float, and take such numbers from a tensor of positions, as "
    "in decay = 0.9 ** torch.arange(x.shape[1]) before the loop, and decay[t] in it"
)


_TRIED_STEPS = np.unique(
    np.concatenate([np.arange(1 << 16), *(2**power + np.arange(-2, 3) for power in range(16, 50))])
)
"""Indices of steps in which what depends on the step's number is tried."""


class FrameLoop(NamedTuple):
    """A loop over frames.

    loop_index  the index of the loop among all loops
    frames      the number of frames, a size
    origin      the file and the line of the loop
    failures    why it cannot be exported, by its index; shared by all loops
    first       the position of the first step's frame: ``range(1, T)`` begins with frame 1
    step        how many positions a step is after the one before: 2 in ``range(0, T, 2)``
    stop        the position before which the loop ends, a size: T
    """

    loop_index: int
    frames: Any
    origin: str
    failures: dict[int, str]
    first: int = 0
    step: int = 1
    stop: Any = None

    def fail(self, reason: str) -> None:
        """Note why the loop cannot be exported; the first reason stays."""
        self.failures.setdefault(self.loop_index, reason)

    def refusal(self, reason: str) -> str:
        """Return the message of a refused loop."""
        return f"the loop over frames in {self.origin} cannot be exported for every length: {reason}"


class StepNumber:
    """A number that a loop computes from the number of its step, such as ``1 / (t + 1)`` and ``t % 4``.

    It is not a number of Python, whose own operators (``0.5 * t``) would return one that is the same in all steps.

    loop      the loop
    index     the index of the step
    value     the number in this step
    formula   the number by the index of a step: for numbers, for arrays of numpy and for tensors
    is_exact  whether a tensor of f32 computes it within rounding
    """

    __array_ufunc__ = None

    def __init__(
        self, loop: FrameLoop, index: int, value: Any, formula: Callable[[Any], Any], is_exact: bool = True
    ) -> None:
        self.loop, self.index, self.value = loop, index, value
        self.formula, self.is_exact = formula, is_exact

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Let PyTorch's functions take the number: an export replaces it (``mark_numbers``)."""
        return NotImplemented

    def __index__(self) -> int:
        _check_later(self.loop, self.index, self.formula, CHANGED_NUMBER)
        return self.value.__index__()

    def __int__(self) -> int:
        return int(truncate(self).__index__())

    def __float__(self) -> float:
        self.loop.fail(NO_ARITHMETIC)
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(_comparison(_OPERATOR.ne)(self, 0))

    def __pos__(self) -> Any:
        return self.value

    def __neg__(self) -> Any:
        return _arithmetic(_OPERATOR.sub, True)(self, 0)

    def __abs__(self) -> Any:
        return choose_number(False, self, -self)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return repr(self.value)

    def __format__(self, format_spec: str) -> str:
        return format(self.value, format_spec)


class LoopStep(StepNumber):
    """A position in a step of a loop: an integer that grows by the same number from step to step.

    rate    by how many positions it grows
    offset  the position in the step of index 0
    """

    value: int

    def __init__(self, loop: FrameLoop, index: int, offset: int, rate: int) -> None:
        self.rate, self.offset = rate, offset
        super().__init__(loop, index, offset + rate * index, self._position_at)

    @classmethod
    def of(
        cls, loop: FrameLoop, index: int, position: int | None = None, rate: int | None = None
    ) -> "LoopStep":
        """Return the position in a step: by default that of its own frame, and with the rate of the loop's steps."""
        rate = loop.step if rate is None else rate
        position = loop.first + index * loop.step if position is None else position
        return cls(loop, index, position - rate * index, rate)

    def _position_at(self, index: Any) -> Any:
        return self.offset + (index if self.rate == 1 else index * self.rate)

    def __index__(self) -> int:
        return self.value

    __int__ = __index__


def _is_tensor(value: Any) -> bool:
    """Return whether a value is a tensor, whose own operators then take the number of a step."""
    return hasattr(value, "layout")


def _formula_of(value: Any) -> Callable[[Any], Any]:
    return value.formula if isinstance(value, StepNumber) else lambda index: value


def _are_of_one_step(values: tuple[Any, ...]) -> bool:
    """Return whether all values that depend on a step depend on the same one, and the others are numbers."""
    steps = [value for value in values if isinstance(value, StepNumber)]
    return all(step.loop is steps[0].loop and step.index == steps[0].index for step in steps) and all(
        isinstance(value, int | float | StepNumber) for value in values
    )


def plain_number(value: Any) -> Any:
    """Return the number of a step, also in a slice, as a number of this step alone; other values as they are."""
    if isinstance(value, slice):
        bounds = cast("Any", value)
        return slice(*map(plain_number, (bounds.start, bounds.stop, bounds.step)))
    return value.value if isinstance(value, StepNumber) else value


def combine_numbers(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Return the result of an operation on a step's number and another number, as a number of the step."""
    operands = left, right
    value = operation(plain_number(left), plain_number(right))
    step = next(number for number in operands if isinstance(number, StepNumber))
    if not _are_of_one_step(operands):
        return value
    formulas = _formula_of(left), _formula_of(right)
    is_exact = all(getattr(number, "is_exact", True) for number in operands)
    if operation in _INTEGER_OPERATIONS:
        is_exact = is_exact and not any(isinstance(plain_number(number), float) for number in operands)
    if operation is pow:
        is_exact = is_exact and isinstance(right, int) and right >= 0
    return StepNumber(
        step.loop,
        step.index,
        value,
        lambda index: operation(*(formula(index) for formula in formulas)),
        is_exact,
    )


_INTEGER_OPERATIONS = (_OPERATOR.floordiv, _OPERATOR.mod, pow)
"""The operations that are within rounding in f32 only for integers."""


def truncate(number: StepNumber) -> Any:
    """Return ``int(number)``."""
    if isinstance(number.value, int):
        return number

    def formula(index: Any) -> Any:
        value = number.formula(index)
        return value.long() if _is_tensor(value) else np.trunc(value).astype(np.int64)

    return StepNumber(number.loop, number.index, int(number.value), formula, False)


def choose_number(is_minimum: bool, left: Any, right: Any) -> Any:
    """Return ``min`` or ``max`` of a step's number and another one: one of both if it is that in all steps."""
    choose = partial(_choose, "minimum" if is_minimum else "maximum")
    if not _are_of_one_step((left, right)):
        return choose(plain_number(left), plain_number(right))
    lefts, rights = (_formula_of(number)(_TRIED_STEPS) for number in (left, right))
    chosen = choose(lefts, rights)
    if np.all(chosen == lefts) or np.all(chosen == rights):
        return left if np.all(chosen == lefts) else right
    return combine_numbers(choose, left, right)


def _choose(method: str, left: Any, right: Any) -> Any:
    """Return the smaller or the larger operand: of numbers, of arrays, or of tensors."""
    tensors = [value for value in (left, right) if _is_tensor(value)]
    if not tensors:
        chosen = getattr(np, method)(left, right)
        return chosen if chosen.ndim else chosen.item()
    are_floats = any(
        value.is_floating_point() if _is_tensor(value) else isinstance(value, float)
        for value in (left, right)
    )
    like = tensors[0].float() if are_floats else tensors[0]
    left, right = (
        value.to(like.dtype) if _is_tensor(value) else like.new_tensor(value) for value in (left, right)
    )
    return getattr(left, method)(right)


def _position(operation: Any, left: Any, right: Any) -> Any:
    """Return a result that is a position, or the same number in all steps; None for others."""
    operands = left, right
    if not all(isinstance(value, int | LoopStep) for value in operands) or not _are_of_one_step(operands):
        return None
    step = left if isinstance(left, LoopStep) else right
    first, second = (value.rate if isinstance(value, LoopStep) else 0 for value in operands)
    if operation in (_OPERATOR.add, _OPERATOR.sub):
        rate = operation(first, second)
    elif operation is _OPERATOR.mul and 0 in (first, second):
        rate = first * plain_number(right) + second * plain_number(left)
    elif operation in (_OPERATOR.floordiv, _OPERATOR.mod) and not second and right > 0 and first % right == 0:
        rate = first // right if operation is _OPERATOR.floordiv else 0
    else:
        return None
    position = operation(plain_number(left), plain_number(right))
    if not rate:
        return position
    return LoopStep.of(step.loop, step.index, position, rate) if rate > 0 else None


def _arithmetic(operation: Callable[[Any, Any], Any], swap: bool) -> Callable[[Any, Any], Any]:
    def compute(self: Any, other: Any, *more: Any) -> Any:
        if _is_tensor(other):
            return NotImplemented
        operands = (other, self) if swap else (self, other)
        position = _position(operation, *operands)
        return combine_numbers(operation, *operands) if position is None else position

    return compute


def _comparison(operation: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    """Return a comparison, which notes a loop in which it is otherwise in a later step than the exported ones."""

    def compare(self: Any, other: Any) -> Any:
        if _is_tensor(other):
            return NotImplemented
        if _are_of_one_step((self, other)):
            formulas = _formula_of(self), _formula_of(other)
            _check_later(
                self.loop,
                self.index,
                lambda index: operation(*(formula(index) for formula in formulas)),
                CHANGED_CONDITION,
            )
        return operation(plain_number(self), plain_number(other))

    return compare


def _check_later(loop: FrameLoop, index: int, outcome: Callable[[Any], Any], reason: str) -> None:
    """Note the loop if the outcome in the last exported step is not that of all later ones."""
    if index != EXPORTED_STEPS - 1:
        return
    later = _TRIED_STEPS[EXPORTED_STEPS - 1 :]
    with np.errstate(all="ignore"):
        outcomes = np.broadcast_to(outcome(later), later.shape)
    changes = np.flatnonzero(outcomes != outcomes[0])
    if changes.size:
        loop.fail(reason.format(step=int(later[changes[0]]), exported=EXPORTED_STEPS))


_ARITHMETIC = (
    *(_OPERATOR.add, _OPERATOR.sub, _OPERATOR.mul, pow),
    *(_OPERATOR.truediv, _OPERATOR.floordiv, _OPERATOR.mod),
    *(_OPERATOR.and_, _OPERATOR.or_, _OPERATOR.xor, _OPERATOR.lshift, _OPERATOR.rshift),
)
_COMPARISONS = tuple(getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne"))
for _operation in _ARITHMETIC:
    _name = _operation.__name__.strip("_")
    setattr(StepNumber, f"__{_name}__", _arithmetic(_operation, False))
    setattr(StepNumber, f"__r{_name}__", _arithmetic(_operation, True))
for _operation in _COMPARISONS:
    setattr(StepNumber, f"__{_operation.__name__}__", _comparison(_operation))
