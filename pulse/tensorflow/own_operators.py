"""Operators of users, declared and implemented separately, as TensorFlow's documentation describes.

An operator is a name with typed inputs and outputs, and a function from shapes to shapes. Its kernel is a function of
arrays. Together they are an op and its translator, which ``pulse.operator`` registers like any other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np

from pulse.errors import FactError, InputError, LoadError
from pulse.facts import (
    DTYPES,
    Array,
    DType,
    Shape,
    TypedFact,
    convert_numbers,
    dtype_name,
    shape_of,
    shape_text,
)
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.onnx.registry import operator
from pulse.ops.dims import dims_value
from pulse.ops.op import Env, Op, Relation, Whole
from pulse.support.record import record
from pulse.support.wording import count_of
from pulse.tensorflow.registry import own_name
from pulse.wiring import wire

NumpyKernel: TypeAlias = Callable[..., Any]
Shapes: TypeAlias = Callable[..., Any]
Streaming: TypeAlias = Callable[[Sequence[TypedFact], Sequence[int | None]], Relation]
ANY = "any"
"""In place of a type: the type of the first input of this kind."""
BACKENDS = ("numpy", "numba")


@record
class OperatorPort:
    """One input or output: its name, and its type by the short name, or ``any``."""

    name: str
    type: str


@dataclass(eq=False)
class OwnOperator:
    """An operator that was declared; a function of arrays once it has a kernel.

    name        its name in graphs
    inputs      its inputs
    outputs     its outputs
    shape       shapes of the inputs, tuples of dims -> the output's shape, or a list of shapes
    attributes  names of attributes of the node, which kernels take by name, with their defaults
    stream      how outputs depend on time, as ``Op.relation``; refused in streams if there is none
    kernels     backend -> function of the inputs' arrays that returns an array, or several
    """

    name: str
    inputs: tuple[OperatorPort, ...]
    outputs: tuple[OperatorPort, ...]
    shape: Shapes | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stream: Streaming | None = None
    kernels: dict[str, NumpyKernel] = field(default_factory=dict[str, NumpyKernel])

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the outputs, as inputs in the body of a function write them."""
        return tuple(port.name for port in self.outputs)

    def __call__(self, *inputs: Any, **attributes: Any) -> Any:
        """Run the kernel on arrays: an array, or a list for several outputs.

        Raises InputError: it has no kernel, or returns other arrays than declared; FactError: the inputs do not fit.
        """
        if len(inputs) != len(self.inputs):
            raise InputError(
                f"{self.name}: {count_of(len(inputs), 'input')} for {', '.join(port.name for port in self.inputs)}"
            )
        arrays: list[Array] = []
        for port, value in zip(self.inputs, inputs):
            dtype = np.asarray(value).dtype if port.type == ANY else DTYPES[port.type]
            array = convert_numbers(value, dtype)
            if array is None:
                raise InputError(f"{self.name}: {port.name} {value!r:.60} is not of type {port.type}")
            arrays.append(array)
        op = OwnCall(self, tuple(sorted({**self.attributes, **attributes}.items())))
        op.facts([TypedFact.of(array) for array in arrays])
        results = op.eval(arrays, {})
        return results[0] if len(results) == 1 else results


OWN_OPERATORS: dict[str, OwnOperator] = {}
"""Name -> operator, of all that were declared."""


@record(eq=False)
class OwnCall(Op):
    """The op of a declared operator.

    Inputs, outputs   the operator's
    Stream            the operator's declaration; else refused
    Raises            FactError: other types or numbers of inputs than declared; shapes that do not fit
    Source            TensorFlow, "Create an op"
    """

    operator: OwnOperator
    attributes: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        return self.operator.name

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        operator = self.operator
        if len(inputs) != len(operator.inputs):
            raise FactError(
                f"{operator.name}: {count_of(len(inputs), 'input')}, {len(operator.inputs)} are declared"
            )
        free: DType | None = next(
            (fact.dtype for port, fact in zip(operator.inputs, inputs) if port.type == ANY), None
        )
        for port, fact in zip(operator.inputs, inputs):
            port_dtype = free if port.type == ANY else DTYPES[port.type]
            if fact.dtype != port_dtype:
                type_name = port.type if port_dtype is None else dtype_name(port_dtype)
                raise FactError(f"{operator.name}: {port.name} is {fact}, and {type_name} is declared")
        shapes = self._shapes([fact.shape for fact in inputs])
        types = [
            free or inputs[0].dtype if port.type == ANY else DTYPES[port.type] for port in operator.outputs
        ]
        return [TypedFact(dtype, shape) for dtype, shape in zip(types, shapes)]

    def _shapes(self, shapes: Sequence[Shape]) -> list[Shape]:
        operator = self.operator
        if operator.shape is None:
            return [shapes[0]] * len(operator.outputs)
        answer = operator.shape(*shapes, **dict(self.attributes))
        shapes_out: list[Any] = [answer] if isinstance(answer, tuple) else list(answer)
        if len(shapes_out) != len(operator.outputs):
            raise FactError(
                f"{operator.name}: its shape function returns {count_of(len(shapes_out), 'shape')} "
                f"for {count_of(len(operator.outputs), 'output')}"
            )
        return [shape_of(*shape) for shape in shapes_out]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        operator = self.operator
        kernel = next(
            (operator.kernels[backend] for backend in reversed(BACKENDS) if backend in operator.kernels), None
        )
        if kernel is None:
            raise InputError(
                f"{operator.name}: it has no kernel; give one with pulse.tensorflow.register_kernel"
            )
        answer = kernel(*inputs, **dict(self.attributes))
        values = cast("Sequence[Any]", answer) if isinstance(answer, tuple | list) else [answer]
        results: list[Array] = [np.asarray(value) for value in values]
        facts = self.facts([TypedFact(array.dtype, shape_of(*array.shape)) for array in inputs])
        if len(results) != len(facts):
            raise InputError(
                f"{operator.name}: its kernel returns {len(results)} arrays for {count_of(len(facts), 'output')}"
            )
        for port, fact, array in zip(operator.outputs, facts, results):
            shape = dims_value(fact.shape, env)
            if array.dtype != fact.dtype or array.shape != shape:
                raise InputError(
                    f"{operator.name}: its kernel returns {port.name} as "
                    f"{shape_text(array.shape)},{dtype_name(array.dtype)}, "
                    f"and {shape_text(shape)},{dtype_name(fact.dtype)} is declared"
                )
        return results

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        if self.operator.stream is None:
            return Whole(
                "how it depends on time is not declared",
                "declare it with stream=, such as stream=lambda facts, axes: Pointwise((axes[0],))",
            )
        return self.operator.stream(inputs, axes)

    def detail(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.attributes)


def register_op(
    name: str,
    inputs: str,
    outputs: str,
    shape: Shapes | None = None,
    attributes: Mapping[str, Any] | None = None,
    stream: Streaming | None = None,
) -> OwnOperator:
    """Declare an operator; the result is a function of arrays once it has a kernel, see ``register_kernel``.

    inputs, outputs  names and types: ``"to_zero:i32, mask:bool"``; ``any`` is the type of the first input of any type
    shape       function of the inputs' shapes, and of the attributes by name, that returns the output's shape, or a
                list of shapes; by default the first input's shape. Dims may be symbols
    attributes  name -> default
    stream      the relation, see ``Op.relation`` in docs/extend.md; without it the operator is refused in streams
    Raises      LoadError: the declaration cannot be read, or a built-in operator has this name
    """
    registered = OwnOperator(
        name, _ports(name, inputs), _ports(name, outputs), shape, dict(attributes or {}), stream
    )

    def translate(node: NodeContext) -> list[OutletId]:
        values = {key: node.attributes.get(key, default) for key, default in registered.attributes.items()}
        return wire(
            node.graph,
            node.wire_name,
            OwnCall(registered, tuple(sorted(values.items()))),
            node.given_inputs(),
        )

    translate.__qualname__ = f"{register_op.__qualname__}.{name}"
    operator(own_name(name))(translate)
    OWN_OPERATORS[name] = registered
    return registered


def register_kernel(name: str, backend: str = "numpy") -> Callable[[NumpyKernel], NumpyKernel]:
    """Give a declared operator a kernel: a function from arrays to one or several arrays.

    backend  ``numpy``: called directly; ``numba``: compiled at the first call, and preferred to ``numpy``
    Raises   LoadError: no operator is declared under this name; there is no such backend
    """
    if name not in OWN_OPERATORS:
        raise LoadError(f"{name}: no operator is declared under this name; declare it with register_op")
    if backend not in BACKENDS:
        raise LoadError(f"backend {backend!r}: give one of {', '.join(BACKENDS)}")

    def register(kernel: NumpyKernel) -> NumpyKernel:
        OWN_OPERATORS[name].kernels[backend] = _compile(kernel) if backend == "numba" else kernel
        return kernel

    return register


def _compile(kernel: NumpyKernel) -> NumpyKernel:
    import numba

    return numba.njit(kernel)


def _ports(name: str, text: str) -> tuple[OperatorPort, ...]:
    ports: list[OperatorPort] = []
    for part in text.split(","):
        port, colon, type_ = (word.strip() for word in part.partition(":"))
        if not port or not colon or (type_ not in DTYPES and type_ != ANY):
            types = ", ".join(DTYPES)
            raise LoadError(
                f"{name}: {part.strip()!r} is not a name and a type such as 'x:f32'; types are {types}, any"
            )
        ports.append(OperatorPort(port, type_))
    return tuple(ports)
