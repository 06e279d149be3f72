"""Branches that are functions."""

from functools import partial

from pulse.graph import OutletId
from pulse.infer.unrolling import choose_branch, inline
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op
from pulse.typed import known_value

BRANCHES = ("then_branch", "else_branch")


@tensorflow_op("If", "StatelessIf")
def if_(node: TensorflowNode) -> list[OutletId]:
    """Wire the taken branch; both, and a choice, if the condition is only known at run time.

    The next values of the variables that a branch assigns follow the results.
    """
    condition = node.as_scalar(node.input(0), "condition")
    value = known_value(node.graph, condition)
    if value is not None:
        return _branch(node, bool(value))
    return choose_branch(node, condition, partial(_branch, node), node.outputs)


def _branch(node: TensorflowNode, value: bool) -> list[OutletId]:
    name = BRANCHES[0] if value else BRANCHES[1]
    function = node.function(name)
    operands = node.given_inputs()[1:]
    facts = [node.graph.fact(outlet) for outlet in operands]
    model = node.functions.to_typed(function, facts, node.scope, f"{node.wire_name}.{name}")
    definition = node.functions.find(function)
    outlets = inline(node.graph, model, dict(zip(definition.inputs, operands)))
    effects = dict(zip(model.graph.output_names, outlets))
    later = node.functions.assignments(function)
    either = sorted({index for side in BRANCHES for index in node.functions.assignments(node.function(side))})
    return [
        *outlets[: len(definition.outputs)],
        *(effects.get(later.get(index, ""), operands[index]) for index in either),
    ]
