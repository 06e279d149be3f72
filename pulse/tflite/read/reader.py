"""Read a .tflite file into a FileNetwork."""

import os
import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from pulse.dim import SymbolScope
from pulse.errors import LoadError, PulseWarning
from pulse.facts import F32, Array, TypedFact
from pulse.graph import OutletId
from pulse.infer.fact import InferenceFact
from pulse.infer.inputs import DeclaredInput, check_given, input_facts
from pulse.infer.network import FileNetwork, InferenceGraph, Input, add_model_constant
from pulse.metadata import Codes, codes_entry
from pulse.support.budget import Budget, Spending, count_spending, current_spending
from pulse.support.file_bytes import MAX_MODEL_BYTES, file_bytes
from pulse.support.naming import require_name
from pulse.support.wording import count_of, spell
from pulse.tflite.node import subtract_zero
from pulse.tflite.read.dilation import merge_dilation
from pulse.tflite.read.file import Operator, Subgraph, SubgraphSignature, Tensor, TfliteFile, parse
from pulse.tflite.read.op import FromWire, TfliteOp, ToWire, is_converted
from pulse.tflite.registry import STATES
from pulse.typed import TypedNetwork, Variable, known_value

BATCH, TIME = "N", "T"
"""Names of sizes that a file leaves open: of the batch, and of the first one after it."""
_HANDLES = ("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE")


def load(
    source: "str | PathLike[str] | bytes",
    inputs: Mapping[str, str] | None = None,
    constants: Mapping[str, Any] | None = None,
    budget: Mapping[str, float] | None = None,
    signature: str | None = None,
) -> FileNetwork:
    """Read a TFLite model from a path or its bytes; its variables are among its inputs and outputs.

    inputs, constants, budget   as in ``pulse.load``
    signature   which one of the file's to read; the first by default
    Raises   LoadError: the file cannot be read, or ``inputs``, ``constants`` or ``signature`` does not fit it
    """
    check_given(inputs, constants)
    if isinstance(source, bytes):
        data, title = source, "model"
    else:
        path = Path(os.fspath(source))
        data, title = file_bytes(path, MAX_MODEL_BYTES, "a TFLite file has less than 2 GiB"), path.stem
    with count_spending(Spending(Budget.of(budget))):
        return read(data, title, inputs or {}, constants or {}, signature)


def read(
    data: bytes, title: str, inputs: Mapping[str, str], constants: Mapping[str, Any], key: str | None = None
) -> FileNetwork:
    """Return the model of the bytes of a .tflite file, by the signature of a key.

    Raises LoadError: the file is damaged or not supported.
    """
    file = parse(data, title)
    signature = _choose(file.signatures, key, title)
    index = 0 if signature is None else signature.subgraph
    scope = SymbolScope()
    names = _port_names(file.subgraphs[index], signature, title)
    declared = [
        _declared_input(file.subgraphs[index].tensors[number], name, name in inputs)
        for number, name in names[0].items()
    ]
    facts = input_facts(declared, inputs, scope, constants)
    builder = _Builder(file, index, scope, title)
    return builder.model(facts, *names)


def _choose(signatures: Sequence[SubgraphSignature], key: str | None, title: str) -> SubgraphSignature | None:
    """Return the signature of a key, or the first one; warns if the file has others."""
    by_key = {signature.key: signature for signature in signatures}
    if key is not None:
        return by_key[require_name("signature", key, by_key, LoadError, title)]
    if len(signatures) > 1:
        warnings.warn(
            f"{title}: has the signatures {', '.join(by_key)}, and the first is read; "
            f"{spell('signature', 'NAME')} selects another",
            PulseWarning,
            stacklevel=5,
        )
    return signatures[0] if signatures else None


def _port_names(
    graph: Subgraph, signature: SubgraphSignature | None, title: str
) -> tuple[Mapping[int, str], Mapping[int, str]]:
    """Return names of inputs and outputs by the numbers of their tensors: the signature's, else the tensors'."""
    none: Mapping[int, str] = {}
    mappings = (none, none) if signature is None else (signature.inputs, signature.outputs)
    names_by_signature: list[Mapping[int, str]] = []
    for ports, names in zip((graph.inputs, graph.outputs), mappings):
        port_names = {index: names.get(index, graph.tensors[index].name) for index in ports}
        if len(set(port_names.values())) < len(port_names):
            raise LoadError(
                f"{title}: two ports have one name: {', '.join(port_names.values())}; convert the model again"
            )
        names_by_signature.append(port_names)
    return names_by_signature[0], names_by_signature[1]


def _declared_input(tensor: Tensor, name: str, sized: bool) -> DeclaredInput:
    """Return an input as the file declares it; if it is ``sized``, the caller sets its sizes."""
    if tensor.dtype is None or tensor.is_complex:
        raise LoadError(f"input {name}: type {tensor.type_name} is not supported")
    return DeclaredInput(name, tensor.dtype, None if tensor.shape is None else _dims(tensor.shape, sized))


def _dims(shape: Sequence[int], sized: bool) -> tuple[int | str, ...]:
    """Return sizes, with names for open ones.

    Unless the caller sets it, an open batch (the first of several axes) is 1 as in LiteRT.
    """
    free = [axis for axis, size in enumerate(shape) if size < 0 and (axis > 0 or len(shape) == 1)]
    symbols = {axis: f"{TIME}{count or ''}" for count, axis in enumerate(free)}
    if sized and shape and shape[0] < 0:
        symbols.setdefault(0, BATCH)
    return tuple(symbols.get(axis, abs(size)) for axis, size in enumerate(shape))


def _variable_name(handle: Operator, index: int) -> str:
    """Return the name of the variable that a tensor is a handle of."""
    names = (handle.options.get(key, "") for key in ("Container", "SharedName"))
    return "/".join(filter(None, names)) or f"variable{index}"


def _steady_variables(graph: Subgraph) -> frozenset[str]:
    """Return the variables that a subgraph has handles of and never assigns: they keep their first values."""
    names = {
        index: _variable_name(operator, index)
        for operator in graph.operators
        if operator.op_type == "VAR_HANDLE"
        for index in operator.outputs
    }
    assigned = {
        names.get(index)
        for operator in graph.operators
        if operator.op_type == "ASSIGN_VARIABLE"
        for index in operator.inputs[:1]
    }
    return frozenset({*names.values()} - assigned)


class _Builder:
    """Grows the graph of a FileNetwork from a subgraph.

    _running  the numbers of the subgraph and of those that run it, the outermost first
    _current  the value of each variable at this point of the program
    _begins   its value before
    _steady   the variables that are constants
    _open     the first state of a layer over any number of frames: one call is the whole stream
    """

    def __init__(
        self, file: TfliteFile, index: int, scope: SymbolScope, title: str, callers: tuple[int, ...] = ()
    ) -> None:
        self.graph = InferenceGraph()
        self._running = (*callers, index)
        self._file, self._scope, self._title = file, scope, title
        self._subgraph = merge_dilation(file.subgraphs[index])
        self._values: dict[int, OutletId] = {}
        self._handles: dict[int, str] = {}
        self._initial: dict[str, Array] = {}
        self._current: dict[str, OutletId] = {}
        self._tensor_of_variable: dict[str, Tensor] = {}
        self._begins: dict[str, OutletId] = {}
        self._steady = frozenset[str]()
        self._open = False

    def model(
        self, facts: Mapping[str, InferenceFact], inputs: Mapping[int, str], outputs: Mapping[int, str]
    ) -> FileNetwork:
        """Read the subgraph as a separate model, its variables among inputs and outputs."""
        self._steady = _steady_variables(self._subgraph)
        self._open = any(
            dim is None or not dim.is_const for fact in facts.values() for dim in fact.shape or ()
        )
        for index, name in inputs.items():
            self._add_port(index, name, facts[name])
        self._walk()
        names = [*outputs.values()]
        results = [self._result(index, name) for index, name in outputs.items()]
        variables = [self._variable(name, names) for name in self._begins]
        next_states = [self._current[variable.input] for variable in variables]
        self.graph.set_outputs(
            [*results, *next_states], [*names, *(variable.output for variable in variables)]
        )
        ports = [(name, self._subgraph.tensors[index]) for index, name in ({**inputs, **outputs}).items()]
        codes = dict(
            codes_entry(name, Codes(float(tensor.quantization.scale[0]), int(tensor.quantization.zero[0])))
            for name, tensor in ports
            if tensor.quantization is not None and tensor.has_codes and tensor.quantization.scale.size == 1
        )
        return FileNetwork(self.graph, self._scope, self._title, codes, variables=tuple(variables))

    def body(self, facts: Mapping[int, TypedFact]) -> FileNetwork:
        """Read the subgraph as a body that another one runs: its codes stay centred, and it has no variables."""
        for port, index in enumerate(self._subgraph.inputs):
            fact = facts[port]
            if fact.value is not None:
                self._define_constant(index, fact.value)
                continue
            known_fact = InferenceFact(fact.dtype, fact.shape)
            (outlet,) = self.graph.add(f"in{port}", Input(known_fact), (), [known_fact])
            self.graph.inputs.append(outlet)
            self._values[index] = outlet
        self._walk()
        results = [self._value(index, "the list of outputs") for index in self._subgraph.outputs]
        if self._current:
            raise LoadError(
                f"{self._title}: {self._subgraph.name} uses variables ({', '.join(self._current)}) inside a loop "
                "or branch, which is not supported; read and assign them outside it"
            )
        self.graph.set_outputs(results, [f"out{index}" for index in range(len(results))])
        return FileNetwork(self.graph, self._scope, self._title)

    def _add_port(self, index: int, name: str, fact: InferenceFact) -> None:
        tensor = self._subgraph.tensors[index]
        if fact.value is not None:
            outlet = self._add_constant(name, fact.value)
        else:
            (outlet,) = self.graph.add(name, Input(fact), (), [fact])
            self.graph.inputs.append(outlet)
        if is_converted(tensor):
            (outlet,) = self.graph.add(f"{name}.entered", ToWire(tensor), [outlet], [InferenceFact()])
        self._values[index] = outlet

    def _result(self, index: int, name: str) -> OutletId:
        outlet, tensor = self._value(index, "the list of outputs"), self._subgraph.tensors[index]
        if is_converted(tensor) and tensor.data is None:
            (outlet,) = self.graph.add(name, FromWire(tensor), [outlet], [InferenceFact()])
        return outlet

    def _walk(self) -> None:
        for index, operator in enumerate(self._subgraph.operators):
            if operator.op_type == "CALL_ONCE":
                self._call_once(operator.options.get("InitSubgraphIndex", 0))
            elif operator.op_type in _HANDLES:
                self._access(index)
            else:
                self._add_node(index)

    def _call_once(self, index: int) -> None:
        """Store the first values of variables, from a subgraph that assigns them."""
        builder = self._require_builder(index, "CALL_ONCE", self._title)
        builder._walk()
        builder.graph.set_outputs(list(builder._current.values()), list(builder._current))
        typed = FileNetwork(builder.graph, builder._scope, builder._title).analyse()
        for name, outlet in zip(typed.graph.output_names, typed.graph.outputs):
            value = known_value(typed.graph, outlet)
            if value is None:
                raise LoadError(f"{self._title}: the first value of variable {name} is not a constant")
            tensor = builder._tensor_of_variable[name]
            self._initial[name] = (
                subtract_zero(tensor).astype(np.float32)
                if tensor.has_codes and tensor.data is not None
                else value
            )

    def _require_builder(self, index: int, reader: str, title: str) -> "_Builder":
        """Return the builder of a subgraph that an operator runs.

        Raises LoadError: there is no such subgraph, or it would run itself
        """
        if not 0 <= index < len(self._file.subgraphs):
            raise LoadError(
                f"{self._title}: {reader} runs subgraph {index} of {len(self._file.subgraphs)}; "
                "convert the model again"
            )
        if index in self._running:
            raise LoadError(
                f"{self._title}: {reader} runs subgraph {index}, which contains it; a recursion never ends, so convert "
                "the model again"
            )
        return _Builder(self._file, index, self._scope, title, self._running)

    def _access(self, index: int) -> None:
        """Note a handle of a variable, a read of it or an assignment."""
        operator = self._subgraph.operators[index]
        if operator.op_type == "VAR_HANDLE":
            self._handles.update((index, _variable_name(operator, index)) for index in operator.outputs)
            return
        count = 1 if operator.op_type == "READ_VARIABLE" else 2
        if len(operator.inputs) != count or operator.inputs[0] not in self._handles:
            raise LoadError(
                f"{self._title}: {operator.op_type} {index} of {self._subgraph.name} has no variable"
            )
        name = self._handles[operator.inputs[0]]
        if operator.op_type == "ASSIGN_VARIABLE":
            self._require_same_codes(name, self._subgraph.tensors[operator.inputs[1]])
            self._current[name] = self._value(operator.inputs[1], name)
            return
        for index in operator.outputs:
            self._require_same_codes(name, self._subgraph.tensors[index])
            self._values[index] = self._value_of_variable(name, self._subgraph.tensors[index])

    def _require_same_codes(self, name: str, tensor: Tensor) -> None:
        """Require that all readers and writers of a variable mean the same by its codes.

        Raises LoadError: two of them differ
        """
        known_as = self._tensor_of_variable.setdefault(name, tensor)
        ours, other = known_as.quantization, tensor.quantization
        if (
            known_as.dtype != tensor.dtype
            or (ours is None) != (other is None)
            or (ours is not None and other is not None and not np.array_equal(ours.zero, other.zero))
        ):
            raise LoadError(
                f"{self._title}: variable {name} is used as {known_as.type_name} and as {tensor.type_name}, or with "
                "two zero points; convert the model again"
            )

    def _value_of_variable(self, name: str, tensor: Tensor) -> OutletId:
        """Return the value of a variable; that before the call if nothing has assigned it yet."""
        if name not in self._current:
            self._begin(name, tensor)
        return self._current[name]

    def _begin(self, name: str, tensor: Tensor) -> None:
        value = self._initial.get(name)
        if value is None:
            if tensor.shape is None or any(size < 0 for size in tensor.shape) or tensor.dtype is None:
                raise LoadError(f"{self._title}: variable {name} has no first value and no fixed shape")
            value = np.zeros(tensor.shape, F32 if tensor.has_codes else tensor.dtype)
            self._initial[name] = value
        if (tensor.variable and self._open) or name in self._steady:
            self._current[name] = self._add_constant(name, value)
            return
        fact = InferenceFact.like(value)
        (outlet,) = self.graph.add(name, Input(fact), (), [fact])
        self.graph.inputs.append(outlet)
        self._begins[name] = self._current[name] = outlet

    def _variable(self, name: str, names: Sequence[str]) -> Variable:
        output = f"{name}.next"
        while output in names:
            output += "_"
        return Variable(name, output, self._initial[name])

    def _add_constant(self, name: str, value: Array) -> OutletId:
        current_spending().stored += value.size
        return add_model_constant(self.graph, name, value)

    def _define_constant(self, index: int, value: Array) -> None:
        self._values[index] = self._add_constant(self._subgraph.tensors[index].name, value)

    def _value(self, index: int, reader: str) -> OutletId:
        if index not in self._values:
            tensor = self._subgraph.tensors[index]
            if tensor.data is None:
                if tensor.shape is not None and 0 in tensor.shape and tensor.dtype is not None:
                    self._define_constant(
                        index,
                        np.zeros(
                            [max(size, 0) for size in tensor.shape], F32 if tensor.has_codes else tensor.dtype
                        ),
                    )
                    return self._values[index]
                raise LoadError(
                    f"{self._title}: {reader} reads {tensor.name}, which no node before it defines; "
                    "convert the model again"
                )
            self._define_constant(
                index, tensor.data.astype(np.int64) if tensor.type_name == "INT32" else tensor.data
            )
        return self._values[index]

    def _add_node(self, node: int) -> None:
        operator, tensors = self._subgraph.operators[node], self._subgraph.tensors
        subject = f"{operator.op_type} {node} of {self._subgraph.name}"
        if not operator.outputs or any(index < 0 for index in operator.outputs):
            raise LoadError(f"{self._title}: {subject} has no output; convert the model again")
        states = [
            operator.inputs[slot]
            for slot in STATES.get(operator.op_type, ())
            if slot < len(operator.inputs) and operator.inputs[slot] >= 0
        ]
        for index in states:
            self._values[index] = self._value_of_variable(tensors[index].name, tensors[index])
            self._tensor_of_variable.setdefault(tensors[index].name, tensors[index])
        indices = [index for index in operator.inputs if index >= 0]
        slots = iter(range(len(indices)))
        op = TfliteOp(
            operator.op_type,
            operator.options,
            tuple(next(slots) if index >= 0 else None for index in operator.inputs),
            tuple(tensors[index] if index >= 0 else None for index in operator.inputs),
            tuple(tensors[index] for index in operator.outputs),
            self._body,
            tuple(tensors[index] for index in operator.inner if index >= 0),
        )
        reads = [self._value(index, subject) for index in indices]
        count = len(operator.outputs) + len(STATES.get(operator.op_type, ()))
        outlets = self.graph.add(tensors[operator.outputs[0]].name, op, reads, [InferenceFact()] * count)
        self._values.update(zip(operator.outputs, outlets))
        for index, outlet in zip(states, outlets[len(operator.outputs) :]):
            self._values[index] = self._current[tensors[index].name] = outlet

    def _body(self, index: int, facts: Mapping[int, TypedFact], title: str) -> TypedNetwork:
        builder = self._require_builder(index, title, title)
        current_spending().take_nodes(len(builder._subgraph.operators), title)
        if len(facts) != len(builder._subgraph.inputs):
            raise LoadError(
                f"{title}: passes {count_of(len(facts), 'tensor')} to a body of "
                f"{count_of(len(builder._subgraph.inputs), 'input')}"
            )
        return builder.body(facts).analyse()
