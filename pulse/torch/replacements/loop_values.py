"""What the values of an exported loop are: marked frames, results of steps, constants, equal nodes."""

from collections.abc import Sequence
from operator import is_
from typing import Any

import numpy as np

from pulse.torch.replacements.loop_steps import LOOP_DOMAIN, FrameLoop


class MadeOfSteps:
    """What a body has for values, or nodes, of successive steps.

    Two states may begin with the same values, as after ``x1 = x2 = zeros``, so all steps tell them apart. One that
    depends on earlier steps has fewer steps, and is looked up by those that it has.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[int, int], list[tuple[tuple[Any, ...], Any]]] = {}

    def find(self, steps: Sequence[Any]) -> list[Any]:
        """Return what was made of these steps: several if other steps, which are not given, tell them apart."""
        known = self._made.get((id(steps[0]), id(steps[1])), [])
        return [inner for others, inner in known if all(map(is_, steps, others))]

    def keep(self, steps: Sequence[Any], inner: Any) -> None:
        self._made.setdefault((id(steps[0]), id(steps[1])), []).append((tuple(steps), inner))

    def list_all(self) -> list[tuple[tuple[Any, ...], Any]]:
        """Return all steps with what was made of them."""
        return [entry for entries in self._made.values() for entry in entries]


def is_frame(value: Any) -> bool:
    node = value.producer()
    return node is not None and node.domain == LOOP_DOMAIN and node.op_type == "Frame"


def find_levels(graph: Any, loop: FrameLoop, peeled: int) -> dict[int, int]:
    """Return the last step whose frames a value depends on, by the value's identity; joined frames have no step.

    peeled  the number of first steps that do not count: what depends only on their frames has no step either
    """
    levels: dict[int, int] = {}
    for node in graph:
        if node.domain == LOOP_DOMAIN and node.attributes["loop"].value == loop.loop_index:
            if node.op_type == "Frame" and node.attributes["step"].value >= peeled:
                levels[id(node.outputs[0])] = node.attributes["step"].value - peeled
            continue
        input_levels = [levels[id(value)] for value in node.inputs if id(value) in levels]
        if input_levels:
            levels.update({id(value): max(input_levels) for value in node.outputs})
    return levels


def depends_on(value: Any, source: Any) -> bool:
    """Return whether a value is computed from another one."""
    todo, visited = [value], set[int]()
    while todo:
        node = todo.pop().producer()
        if node is None or id(node) in visited:
            continue
        if any(input_value is source for input_value in node.inputs):
            return True
        visited.add(id(node))
        todo += [input_value for input_value in node.inputs if input_value is not None]
    return False


def constant_numbers(value: Any) -> Any:
    """Return the numbers of a constant, or None for other values."""
    if value.const_value is not None:
        return value.const_value.numpy()
    node = value.producer()
    if node is None or node.op_type != "Constant":
        return None
    attribute: Any = next(iter(node.attributes.values()))
    return attribute.value.numpy() if hasattr(attribute.value, "numpy") else np.array(attribute.value)


def are_equal(left: Any, right: Any) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and np.array_equal(left, right)


def are_alike(left: Any, right: Any) -> bool:
    """Return whether two nodes compute the same of their inputs."""
    names = ("domain", "op_type", "overload")
    if any(getattr(left, name) != getattr(right, name) for name in names) or len(left.inputs) != len(
        right.inputs
    ):
        return False
    if left.attributes.keys() != right.attributes.keys():
        return False
    return all(
        _same_attribute(left.attributes[name].value, right.attributes[name].value) for name in left.attributes
    )


def first_step_computes(values: Sequence[Any]) -> bool:
    """Return whether the first value is computed as the later ones are; if not, it is the state before the loop."""
    first, *others = [value.producer() for value in values]
    if first is None or first.domain == LOOP_DOMAIN or not first.inputs:
        return False
    if not all(node is not None and are_alike(first, node) for node in others):
        return False
    pairs = zip(first.inputs, others[0].inputs)
    return all(
        (left is None) == (right is None) and (left is None or left.shape == right.shape)
        for left, right in pairs
    )


def _same_attribute(left: Any, right: Any) -> bool:
    if hasattr(left, "numpy") and hasattr(right, "numpy"):
        return are_equal(left.numpy(), right.numpy())
    return type(left) is type(right) and left == right


def use_instead(graph: Any, old: Any, new: Any) -> None:
    """Let readers of a value, and the outputs of the graph, take another one."""
    for user, index in tuple(old.uses()):
        user.replace_input_with(index, new)
    _replace_output(graph, old, new)


def _replace_output(graph: Any, old: Any, new: Any) -> None:
    for index, output in enumerate(graph.outputs):
        if output is old:
            name, old.name = old.name, f"{old.name}_step"
            graph.outputs[index] = new
            new.name = name
