"""The number of a loop's step as an operand: ``mean + (x[:, t] - mean) / (t + 1)``."""

from collections.abc import Iterator, Sequence
from typing import Any

from pulse.torch.replacements.loop_nodes import NodeInserter
from pulse.torch.replacements.loop_steps import LOOP_DOMAIN, STEP_ATTRIBUTE, FrameLoop, LoopStep, StepNumber

ARITHMETIC = {
    *("add", "sub", "subtract", "rsub", "mul", "multiply", "remainder"),
    *("div", "divide", "true_divide", "rdiv", "pow", "rpow"),
    *("lt", "le", "gt", "ge", "eq", "ne", "less", "less_equal", "greater", "greater_equal", "not_equal"),
}
"""The functions of tensors that may take the number of a step, without the underscores of their names."""


def mark_numbers(torch: Any, name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of arithmetic with a tensor, with a marked scalar for each number of a step."""
    x = next((argument for argument in args if torch.is_tensor(argument)), None)
    if name.strip("_") not in ARITHMETIC or x is None:
        return args
    return tuple(
        _as_tensor(torch, argument, x) if isinstance(argument, StepNumber) else argument for argument in args
    )


def _as_tensor(torch: Any, number: StepNumber, x: Any) -> Any:
    """Return the number of a step as a scalar for a function of x; only in this step if f32 is not exact enough."""
    if isinstance(number, LoopStep) and number.rate == 1:
        dtype = x.dtype if x.is_floating_point() else torch.int64
        return _make_mark(torch, number.loop, number.index, number.offset, dtype)
    if not number.is_exact:
        return number.value
    result = number.formula(_make_mark(torch, number.loop, number.index, 0, torch.int64))
    if x.is_floating_point() or result.is_floating_point():
        result = result.to(x.dtype if x.is_floating_point() else result.dtype)
    setattr(result, STEP_ATTRIBUTE, (number.loop.loop_index, number.index))
    return result


def _make_mark(torch: Any, loop: FrameLoop, index: int, offset: int, dtype: Any) -> Any:
    attributes = {"step": index, "loop": loop.loop_index, "offset": offset}
    number = torch.onnx.ops.symbolic(f"{LOOP_DOMAIN}::Step", [], attributes, dtype=dtype, shape=[])
    setattr(number, STEP_ATTRIBUTE, (loop.loop_index, index))
    return number


def is_step_number(value: Any) -> bool:
    node = value.producer()
    return node is not None and node.domain == LOOP_DOMAIN and node.op_type == "Step"


def step_number(mark: Any) -> int:
    """Return the number of a step by its mark."""
    return mark.attributes["step"].value + mark.attributes["offset"].value


class StepNumbers:
    """The inputs of a Scan's body that are numbers of steps.

    inputs  number of the first step, and type -> the input of the body
    """

    def __init__(self) -> None:
        self.inputs: dict[tuple[int, Any], Any] = {}

    def find(self, values: Sequence[Any]) -> tuple[int, Any] | None:
        """Return the key of marked numbers of successive steps; None if they do not count the steps."""
        numbers = [step_number(value.producer()) for value in values]
        counts = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        return (numbers[0], values[0].dtype) if counts else None

    def add(self, key: tuple[int, Any], new_input: Any) -> Any:
        """Return the input of a key: the new one if it has none."""
        return self.inputs.setdefault(key, new_input)

    def insert(self, inserter: NodeInserter, place: Any, frames: Any, axis: int) -> Iterator[Any]:
        """Yield the numbers of all steps for each input, by nodes before ``place``; frames, axis: what counts them."""
        for (first, dtype), number in self.inputs.items():
            start, one = inserter.constant(place, first), inserter.constant(place, 1)
            sizes = inserter.insert(place, "Shape", [frames], start.type)
            count = inserter.insert(
                place, "Gather", [sizes, inserter.constant(place, axis)], start.type, axis=0
            )
            stop = inserter.insert(place, "Add", [start, count], start.type)
            numbers = inserter.insert(place, "Range", [start, stop, one], start.type)
            yield inserter.insert(place, "Cast", [numbers], number.type, to=int(dtype))
