"""Branches that are functions."""

from pulse.errors import PulseError
from pulse.graph import OutletId
from pulse.infer.unrolling import inline
from pulse.tensorflow.context import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op
from pulse.typed import known_value

SIDES = ("then_branch", "else_branch")


@tensorflow_op("If", "StatelessIf")
def if_(node: TensorflowNode) -> list[OutletId]:
    """Wire the taken branch; both, and a choice, if the condition is only known at run time.

    The next values of the variables that a branch assigns follow the results.
    """
    condition = node.as_scalar(node.input(0), "condition")
    value = known_value(node.graph, condition)
    if value is not None:
        return _branch(node, "then_branch" if bool(value) else "else_branch")
    branches: list[list[OutletId]] = []
    for name in SIDES:
        try:
            branches.append(_branch(node, name))
        except PulseError as error:
            raise node.error(
                f"its condition is only known while running, so both branches are needed, and the {name} does not "
                f"load: {error}; give inputs fixed sizes or values so that the condition is constant"
            ) from error
    outlets: list[OutletId] = []
    for index, (yes, no) in enumerate(zip(*branches)):
        left, right = node.graph.fact(yes), node.graph.fact(no)
        if not left.agrees(right):
            raise node.error(
                f"its condition is only known while running, and the branches differ: {left} and {right}"
            )
        part = node.with_name(node.outputs[index]) if index < len(node.outputs) else node
        outlets.append(part.apply("where", condition, yes, no))
    return outlets


def _branch(node: TensorflowNode, name: str) -> list[OutletId]:
    function = node.function(name)
    operands = node.given_inputs()[1:]
    facts = [node.graph.fact(outlet) for outlet in operands]
    model = node.functions.to_typed(function, facts, node.scope, f"{node.wire_name}.{name}")
    definition = node.functions.find(function)
    outlets = inline(node.graph, model, dict(zip(definition.inputs, operands)))
    effects = dict(zip(model.graph.output_names, outlets))
    later = node.functions.assignments(function)
    either = sorted({index for side in SIDES for index in node.functions.assignments(node.function(side))})
    return [
        *outlets[: len(definition.outputs)],
        *(effects.get(later.get(index, ""), operands[index]) for index in either),
    ]
