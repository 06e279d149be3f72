"""A document to an ONNX model: expressions are evaluated, fragments unfolded, operators read one by one."""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from onnx import ModelProto, ValueInfoProto, helper

from pulse.budget import Budget, Spending
from pulse.dim import SymbolScope, TDim
from pulse.errors import DimError, LoadError
from pulse.facts import Array, DType
from pulse.nnef import operators as operators
from pulse.nnef.read.files import Files
from pulse.nnef.read.node import GraphReader, NodeReader, Value, Wire
from pulse.nnef.read.parser import DEPTH, parse
from pulse.nnef.read.pulses import timing_of
from pulse.nnef.read.signatures import SIGNATURES, Signature, signature_of
from pulse.nnef.read.standard import standard_fragments
from pulse.nnef.registry import READERS
from pulse.nnef.syntax import (
    Assignment,
    Binary,
    Call,
    Choice,
    Comprehension,
    Document,
    Expression,
    Fragment,
    Index,
    Name,
    Subrange,
    Target,
    Unary,
)
from pulse.onnx.tensors import element_type
from pulse.printable import printable

OPSET = 17
EXTERNALS = ("external", "tract_core_external")
KINDS: Mapping[str, type[np.generic]] = {
    "scalar": np.float32,
    "integer": np.int64,
    "logical": np.bool_,
    "": np.float32,
}
LISTS = 1 << 16
"""How long a list of the text may become."""
BETWEEN: Mapping[str, str] = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "^": "pow", "<": "lt", "<=": "le", ">": "gt", ">=": "ge",
    "==": "eq", "!=": "ne", "&&": "and", "||": "or",
}  # fmt: skip
"""Signs between tensors -> operators."""
BEFORE: Mapping[str, str] = {"-": "neg", "!": "not"}
PLAIN: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
SUPPORTED_EXTENSIONS = ("KHR_enable_fragment_definitions", "KHR_enable_operator_expressions")


def read_nnef(files: Files, budget: Mapping[str, float] | None = None) -> ModelProto:
    """The model of files as ONNX.

    budget  limits of what fragments and lists unfold to; see ``pulse.budget``
    Raises  LoadError, naming the line and the operator
    """
    document = parse(files.text(), f"{files.title}: graph.nnef")
    return _Reading(files, document, Spending(Budget.of(budget))).model()


class _Reading:
    """One document on its way to ONNX."""

    def __init__(self, files: Files, document: Document, spending: Spending) -> None:
        self._files = files
        self._document = document
        self._spending = spending
        self._title = f"{files.title}: graph.nnef"
        self._scope = SymbolScope()
        self._symbols: dict[str, TDim] = {}
        self._inputs: list[ValueInfoProto] = []
        self._depth = 0
        self._fragments: dict[str, Fragment] = dict(standard_fragments())
        for fragment in document.fragments:
            if fragment.body is not None:
                self._fragments[fragment.name] = fragment
        self._extensions(document)
        self._timing = timing_of(document, self._title)
        if self._timing.symbol is not None:
            self._symbol(self._timing.symbol)
        self.standard = not any(words[0] == "tract_registry" for words in document.extensions if words)

    def _extensions(self, document: Document) -> None:
        for words in document.extensions:
            kind = words[0] if words else ""
            if kind == "tract_symbol" and len(words) > 1:
                self._symbol("".join(words[1:]))
            elif kind not in ("tract_registry", "tract_assert", *SUPPORTED_EXTENSIONS):
                raise LoadError(
                    f"{self._title}: the extension {printable(' '.join(words))} is not covered; export without it"
                )

    def _symbol(self, name: str) -> None:
        if name not in self._symbols:
            self._symbols[name] = TDim.of(self._scope.symbol(name))

    def model(self) -> ModelProto:
        document = self._document
        graph = GraphReader.begin(OPSET, trims=self._timing.symbol is not None)
        graph.names.taken.update(self._timing.late)
        scope: dict[str, Value] = {}
        self._run(document.body, scope, graph, frozenset(document.inputs))
        missing = [name for name in document.inputs if name not in {value.name for value in self._inputs}]
        if missing:
            raise LoadError(f"{self._title}: the input {printable(missing[0])} has no external; add one")
        inputs = {value.name: value for value in self._inputs}
        outputs: list[ValueInfoProto] = []
        for place, name in enumerate(document.outputs):
            wire = scope.get(name)
            if not isinstance(wire, Wire):
                raise LoadError(f"{self._title}: the output {printable(name)} is no tensor of the graph")
            wire = self._timing.output(graph, place, wire)
            chosen = graph.names.new(name) if wire.name != name or name in inputs else name
            if chosen != wire.name:
                graph.nodes.append(helper.make_node("Identity", [wire.name], [chosen], chosen))
            outputs.append(helper.make_tensor_value_info(chosen, element_type(wire.dtype), None))
        made = helper.make_graph(
            graph.nodes, document.name, [inputs[name] for name in document.inputs], outputs, graph.tensors()
        )
        model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        self._timing.finish(model, [value.name for value in outputs])
        return model

    # bodies

    def _run(
        self,
        body: Sequence[Assignment],
        scope: dict[str, Value],
        graph: GraphReader,
        inputs: frozenset[str] = frozenset(),
    ) -> None:
        for assignment in body:
            targets = _flat(assignment.target)
            for name in targets:
                if name in scope:
                    raise self._error(assignment.line, f"{printable(name)} is assigned twice")
            value = assignment.value
            if isinstance(value, Call) and value.operator in EXTERNALS:
                if not isinstance(assignment.target, str) or assignment.target not in inputs:
                    raise self._error(assignment.line, f"{printable(str(targets))} is no input of the graph")
                scope[assignment.target] = self._external(
                    assignment.target, value, scope, graph, assignment.line
                )
                continue
            found = self._value(value, scope, graph, tuple(targets), assignment.line)
            self._assign(assignment.target, found, scope, assignment.line)

    def _assign(self, target: Target, value: Value, scope: dict[str, Value], line: int) -> None:
        if isinstance(target, str):
            if isinstance(value, tuple) and len(value) == 1:
                value = value[0]
            scope[target] = value
            return
        if not isinstance(value, tuple | list) or len(value) < len(target):
            raise self._error(
                line, f"{len(target)} names stand for {1 if isinstance(value, Wire) else 'other'} results"
            )
        for each, part in zip(target, value):
            self._assign(each, part, scope, line)

    def _error(self, line: int, reason: str) -> LoadError:
        return LoadError(f"{self._title}, line {line}: {reason}")

    def _external(
        self, name: str, call: Call, scope: Mapping[str, Value], graph: GraphReader, line: int
    ) -> Wire:
        node = self._node(call, SIGNATURES[call.operator], scope, graph, (name,), line)
        shape = node.arguments["shape"]
        if not isinstance(shape, list):
            raise node.error("shape must be a list")
        stream = None if self._timing.symbol is None else self._symbols[self._timing.symbol]
        shape = self._timing.dims(node, shape, stream)
        dtype: DType = np.dtype(KINDS.get(call.type, np.float32))
        if call.operator == "tract_core_external":
            dtype = _named_type(node, node.text("datum_type"))
        dims: list[int | str] = []
        for dim in shape:
            if isinstance(dim, TDim) and not dim.is_const:
                for symbol in dim.symbols if dim in self._symbols.values() else ():
                    graph.lengths.places.setdefault(symbol, (name, len(dims)))
                dims.append(str(dim))
                continue
            size = node.plain(dim, "shape")
            if size < 0:
                raise node.error(f"its shape has the size {size}")
            dims.append(size)
        self._inputs.append(helper.make_tensor_value_info(name, element_type(dtype), dims))
        graph.names.taken.add(name)
        return Wire(name, dtype, tuple(dim if isinstance(dim, int) else None for dim in dims))

    # expressions

    def _value(
        self,
        value: Expression,
        scope: Mapping[str, Value],
        graph: GraphReader,
        targets: tuple[str, ...],
        line: int,
    ) -> Value:
        match value:
            case bool() | int() | float() | str():
                return value
            case Name():
                return self._named(value.text, scope, line)
            case list():
                return [
                    self._value(each, scope, graph, _parts(targets, at), line)
                    for at, each in enumerate(value)
                ]
            case tuple():
                return tuple(
                    self._value(each, scope, graph, _parts(targets, at), line)
                    for at, each in enumerate(value)
                )
            case Call():
                return self._call(value, scope, graph, targets, line)
            case Unary():
                return self._unary(value, scope, graph, targets, line)
            case Binary():
                return self._binary(value, scope, graph, targets, line)
            case Choice():
                condition = self._value(value.condition, scope, graph, _parts(targets, 0), line)
                if not isinstance(condition, bool):
                    raise self._error(line, "the condition of if is not known before running; use select")
                return self._value(value.value if condition else value.other, scope, graph, targets, line)
            case Index():
                return self._index(value, scope, graph, targets, line)
            case Subrange():
                found = self._value(value.values, scope, graph, _parts(targets, 0), line)
                bounds = [
                    None
                    if each is None
                    else self._integer(self._value(each, scope, graph, _parts(targets, 1), line), line)
                    for each in (value.start, value.stop)
                ]
                if not isinstance(found, list | tuple | str):
                    raise self._error(line, "only lists have ranges")
                return found[bounds[0] : bounds[1]]
            case Comprehension():
                return self._comprehension(value, scope, graph, targets, line)

    def _named(self, name: str, scope: Mapping[str, Value], line: int) -> Value:
        if name in scope:
            return scope[name]
        if name in self._symbols:
            return self._symbols[name]
        raise self._error(line, f"{printable(name)} is not known; it must be assigned above")

    def _integer(self, value: Value, line: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._error(line, "an integer is expected")
        return value

    def _index(
        self,
        value: Index,
        scope: Mapping[str, Value],
        graph: GraphReader,
        targets: tuple[str, ...],
        line: int,
    ) -> Value:
        found = self._value(value.values, scope, graph, _parts(targets, 0), line)
        at = self._integer(self._value(value.at, scope, graph, _parts(targets, 1), line), line)
        if not isinstance(found, list | tuple) or not -len(found) <= at < len(found):
            raise self._error(line, f"there is no entry {at}")
        return found[at]

    def _unary(
        self,
        value: Unary,
        scope: Mapping[str, Value],
        graph: GraphReader,
        targets: tuple[str, ...],
        line: int,
    ) -> Value:
        x = self._value(value.operand, scope, graph, _parts(targets, 0), line)
        if value.sign == "!" and isinstance(x, bool):
            return not x
        if isinstance(x, int | float | TDim) and not isinstance(x, bool) and value.sign in "+-":
            return -x if value.sign == "-" else x
        if isinstance(x, Wire) and value.sign in "+-!":
            return x if value.sign == "+" else self._operate(BEFORE[value.sign], [x], graph, targets, line)
        raise self._error(line, f"{value.sign} has no meaning before this")

    def _binary(
        self,
        value: Binary,
        scope: Mapping[str, Value],
        graph: GraphReader,
        targets: tuple[str, ...],
        line: int,
    ) -> Value:
        left, right = (
            self._value(each, scope, graph, _parts(targets, at), line)
            for at, each in enumerate((value.left, value.right))
        )
        sign = value.sign
        if isinstance(left, Wire) or isinstance(right, Wire):
            if sign not in BETWEEN:
                raise self._error(line, f"{sign} has no meaning between tensors")
            return self._operate(BETWEEN[sign], [left, right], graph, targets, line)
        try:
            return self._plain(left, sign, right, line)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError, DimError) as error:
            raise self._error(line, f"{sign} cannot be computed here ({printable(str(error))})") from error

    def _plain(self, left: Any, sign: str, right: Any, line: int) -> Value:
        """Between numbers, truths, lists and dims."""
        if sign == "in":
            return left in right
        if sign in ("&&", "||"):
            if not isinstance(left, bool) or not isinstance(right, bool):
                raise TypeError("truths are expected")
            return left and right if sign == "&&" else left or right
        if sign == "*" and _long(left, right) > LISTS:
            raise self._error(line, f"a list is longer than {LISTS}")
        if sign == "/":
            return _quotient(left, right)
        if sign == "^":
            return _power(left, right)
        found = PLAIN[sign](left, right)
        if isinstance(found, int) and abs(found) >= 1 << 63:
            raise OverflowError("more than 64 bits")
        return found

    def _comprehension(
        self,
        value: Comprehension,
        scope: Mapping[str, Value],
        graph: GraphReader,
        targets: tuple[str, ...],
        line: int,
    ) -> list[Value]:
        lists: list[list[Value]] = []
        for _, each in value.loops:
            found = self._value(each, scope, graph, _parts(targets, 0), line)
            if not isinstance(found, list):
                raise self._error(line, "for goes over lists")
            lists.append(found)
        if len({len(each) for each in lists}) != 1:
            raise self._error(line, "the lists of a for have different lengths")
        made: list[Value] = []
        for number, values in enumerate(zip(*lists)):
            self._spending.unfold(1, self._title)
            inner = {**scope, **{name: entry for (name, _), entry in zip(value.loops, values)}}
            if value.condition is not None:
                condition = self._value(value.condition, inner, graph, _parts(targets, number), line)
                if not isinstance(condition, bool):
                    raise self._error(line, "the condition of a for must be true or false")
                if not condition:
                    continue
            made.append(self._value(value.result, inner, graph, _parts(targets, number), line))
        return made

    # operators

    def _operate(
        self, name: str, values: Sequence[Value], graph: GraphReader, targets: tuple[str, ...], line: int
    ) -> Value:
        """An operator of values that are there already."""
        self._spending.unfold(1, self._title)
        arguments = dict(zip(SIGNATURES[name].names, values))
        node = NodeReader(
            graph, name, targets or (name,), arguments, f"{self._title}, line {line}", self.standard
        )
        return _single(READERS[name](node))

    def _call(
        self, call: Call, scope: Mapping[str, Value], graph: GraphReader, targets: tuple[str, ...], line: int
    ) -> Value:
        self._spending.unfold(1, self._title)
        name = call.operator
        if name in BUILTINS and len(call.positional) == 1:
            argument = self._value(call.positional[0], scope, graph, _parts(targets, 0), line)
            found = _builtin(name, argument)
            if found is None:
                raise self._error(line, f"{name} has no value here")
            return found
        fragment = self._fragments.get(name)
        if fragment is not None:
            return self._unfold(fragment, call, scope, graph, targets, line)
        if name in EXTERNALS:
            raise self._error(line, f"{name} stands alone, with a name of an input on the left")
        if name == "tract_core_scan":
            return self._scan(call, scope, graph, targets, line)
        if name == "variable":
            return self._variable(self._node(call, SIGNATURES[name], scope, graph, targets, line))
        if name not in READERS:
            raise self._error(
                line, f"the operator {printable(name)} is not covered; define it as a fragment of others"
            )
        node = self._node(call, SIGNATURES[name], scope, graph, targets, line)
        return _single(READERS[name](node))

    def _variable(self, node: NodeReader) -> Wire:
        value: Array = self._files.tensor(node.text("label"))
        shape = tuple(node.integers("shape")) if node.arguments["shape"] != [] else ()
        if shape != value.shape:
            raise node.error(f"its shape is {list(shape)}, and {list(value.shape)} in the file")
        return node.graph.constant(value, node.targets[0])

    def _node(
        self,
        call: Call,
        signature: Signature,
        scope: Mapping[str, Value],
        graph: GraphReader,
        targets: tuple[str, ...],
        line: int,
    ) -> NodeReader:
        arguments = self._arguments(call, signature, scope, graph, targets, line)
        shown = targets or (call.operator,)
        return NodeReader(
            graph, call.operator, shown, arguments, f"{self._title}, line {line}", self.standard
        )

    def _arguments(
        self,
        call: Call,
        signature: Signature,
        scope: Mapping[str, Value],
        graph: GraphReader,
        targets: tuple[str, ...],
        line: int,
    ) -> dict[str, Value]:
        shown = f"{printable(call.operator)}(…)"
        if len(call.positional) > len(signature.names):
            raise self._error(
                line, f"{shown} takes {len(signature.names)} arguments, not {len(call.positional)}"
            )
        given: dict[str, Expression] = dict(zip(signature.names, call.positional))
        for name, value in call.named:
            if name not in signature.names or name in given:
                raise self._error(
                    line,
                    f"{shown}: the argument {printable(name)} is {'given twice' if name in given else 'not known'}",
                )
            given[name] = value
        found: dict[str, Value] = {}
        for name in signature.names:
            if name in given:
                found[name] = self._value(
                    given[name], scope, graph, tuple(f"{each}.{name}" for each in targets[:1]), line
                )
            elif name in signature.defaults:
                found[name] = signature.defaults[name]
            else:
                raise self._error(line, f"{shown}: the argument {name} is missing")
        return found

    def _unfold(
        self,
        fragment: Fragment,
        call: Call,
        scope: Mapping[str, Value],
        graph: GraphReader,
        targets: tuple[str, ...],
        line: int,
    ) -> Value:
        self._depth += 1
        if self._depth > DEPTH:
            raise self._error(line, f"fragments call each other more than {DEPTH} deep")
        inner: dict[str, Value] = dict(
            self._arguments(call, signature_of(fragment), scope, graph, targets, line)
        )
        assert fragment.body is not None
        renamed = dict(zip((name for name, _ in fragment.results), targets))
        for assignment in fragment.body:
            names = _flat(assignment.target)
            if any(name in inner for name in names):
                raise self._error(assignment.line, f"{printable(str(names))} is assigned twice")
            shown = tuple(
                renamed.get(name, f"{targets[0] if targets else fragment.name}.{name}") for name in names
            )
            found = self._value(assignment.value, inner, graph, shown, assignment.line)
            self._assign(assignment.target, found, inner, assignment.line)
        self._depth -= 1
        missing = [name for name, _ in fragment.results if name not in inner]
        if missing:
            raise self._error(
                line, f"the fragment {printable(fragment.name)} does not assign {printable(missing[0])}"
            )
        made = tuple(inner[name] for name, _ in fragment.results)
        return made[0] if len(made) == 1 else made

    def _scan(
        self, call: Call, scope: Mapping[str, Value], graph: GraphReader, targets: tuple[str, ...], line: int
    ) -> Value:
        from pulse.nnef.read.scan import read_scan

        node = self._node(call, SIGNATURES[call.operator], scope, graph, targets, line)
        name = node.text("body")
        fragment = self._fragments.get(name)
        if fragment is None or fragment.body is None:
            raise node.error(f"there is no fragment {printable(name)}")

        def run(inside: dict[str, Value], body: GraphReader) -> dict[str, Value]:
            self._depth += 1
            if self._depth > DEPTH:
                raise node.error(f"scans are nested more than {DEPTH} deep")
            assert fragment.body is not None
            self._run(fragment.body, inside, body)
            self._depth -= 1
            return inside

        return read_scan(node, fragment, run, self._timing if self._depth == 0 else None)


BUILTINS = frozenset({"length_of", "range_of", "shape_of", "scalar", "integer", "logical", "string"})


def _builtin(name: str, value: Value) -> Value | None:
    if name in ("length_of", "range_of") and isinstance(value, list | tuple | str):
        return len(value) if name == "length_of" else [*range(len(value))]
    if name == "shape_of" and isinstance(value, Wire) and None not in value.sizes:
        return [size for size in value.sizes if size is not None]
    if name == "string" and isinstance(value, bool | int | float | str):
        return str(value)
    if not isinstance(value, bool | int | float):
        return None
    if name == "scalar":
        return float(value)
    if name == "integer" and math.isfinite(value):
        return int(value)
    return bool(value) if name == "logical" else None


def _long(left: Any, right: Any) -> int:
    """The length of a list that is repeated; 0 of numbers."""
    pairs = ((left, right), (right, left))
    return max(
        (len(cast("list[Any]", each)) * times for each, times in pairs if isinstance(each, list | str)),
        default=0,
    )


def _quotient(left: Any, right: Any) -> Value:
    """Of integers and lengths the floor."""
    if isinstance(left, float) or isinstance(right, float):
        return float(left) / float(right)
    found: Value = left // right
    return found


def _power(left: Any, right: Any) -> Value:
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        raise TypeError("numbers are expected")
    if isinstance(left, int) and isinstance(right, int) and 0 <= right < 64 and abs(left) < 1 << 16:
        found = left**right
        if abs(found) >= 1 << 63:
            raise OverflowError("more than 64 bits")
        return found
    power = float(left) ** float(right)
    if isinstance(power, complex):
        raise ValueError("a root of a negative number")
    return power


def _named_type(node: NodeReader, name: str) -> DType:
    from pulse.nnef.operators.elementwise import type_named

    return type_named(node, name)


def _single(made: Wire | Sequence[Wire]) -> Value:
    if isinstance(made, Wire):
        return made
    return list[Value](made) if isinstance(made, list) else tuple(made)


def _flat(target: Target) -> list[str]:
    return [target] if isinstance(target, str) else [name for each in target for name in _flat(each)]


def _parts(targets: tuple[str, ...], at: int) -> tuple[str, ...]:
    """Names for a part of an expression."""
    return (f"{targets[0]}.{at}",) if targets else ()
