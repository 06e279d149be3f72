"""Nodes of any operator, for all functions of this package."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, cast

import numpy as np

from pulse.build.canvas import OpenInput
from pulse.build.drawing import Drawing
from pulse.build.nodes import Node
from pulse.build.schemas import OPSET, check_attributes, schema_of
from pulse.errors import InputError
from pulse.facts import DTYPES, Array, TypedFact
from pulse.graph import OutletId
from pulse.infer.op import InferenceOp
from pulse.onnx.operators import families as families
from pulse.onnx.read.op import OnnxOp
from pulse.onnx.registry import DEFAULT_DOMAINS, operator_name
from pulse.ops.op import Env, Op, Relation, Whole
from pulse.support.record import record
from pulse.support.wording import count_of
from pulse.typed import TypedNetwork
from pulse.wiring import wire as add_op

OperatorInput: TypeAlias = "str | tuple[str, Array] | None"
"""An input of an operator: the name of data, the name and value of a parameter, or omitted."""
Parameters = ParamSpec("Parameters")


def make_node(
    op_type: str,
    inputs: Sequence[OperatorInput],
    name: str = "",
    outputs: int = 1,
    domain: str = "",
    **attributes: Any,
) -> Node:
    """Return a node of an operator, its data inputs open. Raises InputError: no such attribute, or value."""
    node_name = name or op_type.lower()
    onnx_attributes = check_attributes(domain, op_type, attributes, f"{node_name} ({op_type})")
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    numbers = iter(range(len(inputs)))
    op = OnnxOp(
        op_type,
        "" if domain in DEFAULT_DOMAINS else domain,
        OPSET if domain in DEFAULT_DOMAINS else 1,
        "",
        onnx_attributes,
        tuple(None if operand is None else next(numbers) for operand in inputs),
        tuple(f"{node_name}.{slot}" if slot else node_name for slot in range(outputs)),
    )
    return new_node(op, inputs, node_name, outputs)


def new_node(op: InferenceOp, inputs: Sequence[OperatorInput], name: str, outputs: int) -> Node:
    """Return a node in its own graph: open inputs for data, constants for parameters."""
    drawing = Drawing()
    outlets = [
        drawing.add(f"{name}.{operand}", OpenInput(preferred_name=operand))
        if isinstance(operand, str)
        else drawing.add_constant(f"{name}.{operand[0]}", operand[1])
        for operand in inputs
        if operand is not None
    ]
    return Node.of(drawing, drawing.add(name, op, outlets, outputs).node)


def operator_function(make: Callable[Parameters, Node], title: str, about: str) -> Callable[Parameters, Node]:
    """Return a function of this package: ``make`` with a name and a description."""

    @wraps(make)
    def function(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Node:
        return make(*args, **kwargs)

    function.__module__, function.__name__, function.__qualname__ = "pulse.build", title, title
    function.__doc__ = about
    return function


def GenericOperator(
    type: str,
    inputs: int | None = None,
    outputs: int = 1,
    *,
    domain: str = "",
    name: str = "",
    **attributes: Any,
) -> Node:
    """Any operator by its name, its attributes by keyword.

    One of ONNX has its attributes checked. An unknown one is kept: ``GraphView.unsupported_operators`` names it, and
    ``GraphView.replace`` replaces it by something else. ``pulse.operator`` replaces all nodes of that name.

    type     such as ``Clip``; ``domain`` if it is not ONNX's own
    inputs   how many data inputs it has; by default as many as it needs at least
    Raises   InputError: the operator has no such attribute; or ``inputs`` is missing, or a number that it cannot have
    """
    location, schema = f"{name or type.lower()} ({operator_name(domain, type)})", schema_of(domain, type)
    if schema is None:
        if inputs is None:
            raise InputError(
                f"{location}: is unknown; give its number of inputs: GenericOperator({type!r}, inputs=1)"
            )
        return make_node(type, ["x"] * inputs, name, outputs, domain, **attributes)
    count = schema.min_input if inputs is None else inputs
    if (
        not schema.min_input <= count <= schema.max_input
        or not schema.min_output <= outputs <= schema.max_output
    ):
        raise InputError(
            f"{location}: takes {schema.min_input} to {schema.max_input} inputs and has {schema.min_output} to "
            f"{schema.max_output} outputs, not {count} and {outputs}"
        )
    return make_node(type, ["x"] * count, name, outputs, domain, **attributes)


def Producer(value: Any, name: str = "producer") -> Node:
    """Return a constant: its one output is ``value``; floats become f32. Raises InputError: not numbers."""
    array = np.asarray(value)
    if array.dtype == np.float64 and not isinstance(value, np.ndarray | np.generic):
        array = array.astype(np.float32)
    if array.dtype not in DTYPES.values():
        raise InputError(f"{name} (Producer): {value!r} does not consist of numbers")
    drawing = Drawing()
    return Node.of(drawing, drawing.add_constant(name, array).node)


Evaluation: TypeAlias = Callable[..., "Array | Sequence[Array]"]


def _fits(result: object, fact: TypedFact) -> bool:
    """Return whether a value is an array of a shape; its floats may be wider, as when rounding errors are measured."""
    if not isinstance(result, np.ndarray):
        return False
    actual = TypedFact.of(cast("Array", result))
    return actual.dtype.kind == fact.dtype.kind and TypedFact(fact.dtype, actual.shape).agrees(fact)


@record(eq=False)
class FunctionOp(Op):
    """An operation of a user: three functions.

    Stream   the result of ``relate``; whole by default

    title    the name of the op in messages
    compute  the outputs in numpy, from the inputs in order
    infer    the facts of the outputs, from the inputs' facts; the first input's by default
    relate   its ``Op.relation``
    """

    title: str
    compute: Evaluation
    infer: Callable[[Sequence[TypedFact]], Sequence[TypedFact]] | None = None
    relate: Callable[[Sequence[TypedFact], Sequence[int | None]], Relation] | None = None

    @property
    def name(self) -> str:
        return self.title

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        if self.infer is not None:
            return list(self.infer(inputs))
        return [TypedFact(inputs[0].dtype, inputs[0].shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        value: Any = self.compute(*inputs)
        results: list[Any] = [*value] if isinstance(value, list | tuple) else [value]  # pyright: ignore[reportUnknownVariableType]
        facts = self.facts([TypedFact.of(array) for array in inputs])
        if len(results) != len(facts) or not all(map(_fits, results, facts)):
            shapes_and_dtypes = [f"{np.shape(result)} {np.asarray(result).dtype}" for result in results]
            raise InputError(
                f"{self.title} (a function): returns {', '.join(shapes_and_dtypes)}, but its facts say "
                f"{'; '.join(map(str, facts))}: correct one of them"
            )
        return results

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        if self.relate is not None:
            return self.relate(inputs, axes)
        return Whole("a function without a relation", "give Function a relation, such as Pointwise((axis,))")


@record(eq=False)
class Wrapped(InferenceOp):
    """An operation of the typed graph as a node: a function, or any ``pulse.extend.Op``."""

    op: Op

    @property
    def name(self) -> str:
        return self.op.name

    def translate(self, target: TypedNetwork, wire: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        return add_op(target.graph, wire, self.op, inputs)

    def detail(self) -> str:
        return self.op.detail()


def Function(
    eval: "Evaluation | Op",
    *,
    facts: Callable[[Sequence[TypedFact]], Sequence[TypedFact]] | None = None,
    relation: Callable[[Sequence[TypedFact], Sequence[int | None]], Relation] | None = None,
    inputs: int = 1,
    outputs: int = 1,
    name: str = "function",
) -> Node:
    """Return a function as an operator, in numpy: for the numpy backend, as it has no kernel.

    eval      arrays of the inputs -> the output, or a list of outputs; or a ``pulse.extend.Op``, which defines the rest
    facts     facts of the inputs -> facts of the outputs (``TypedFact``); as the first input by default
    relation  the ``pulse.extend.Op.relation`` of the op; refused in a stream by default
    """
    op = eval if isinstance(eval, Op) else FunctionOp(name, eval, facts, relation)
    return new_node(Wrapped(op), ["x"] * inputs, name, outputs)


def as_list(value: "int | Sequence[int]", rank: int, subject: str, location: str) -> list[int]:
    """Return an integer for each axis; a single one applies to all. Raises InputError: no integers, or not one each."""
    numbers: Any = value
    integers: list[Any] = [numbers] if isinstance(numbers, int | float | str) else list(numbers)
    if not all(
        isinstance(integer, int | np.integer) and not isinstance(integer, bool) for integer in integers
    ):
        raise InputError(f"{location}: {subject} must be integers, not {numbers!r}")
    values = [value] * rank if isinstance(value, int) else list(value)
    if len(values) != rank:
        raise InputError(
            f"{location}: {subject} has {count_of(len(values), 'entry', 'entries')} for "
            f"{count_of(rank, 'axis', 'axes')}"
        )
    return values
