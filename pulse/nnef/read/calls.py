"""Calls of a document: fragments are unfolded, operators are read one by one."""

from collections.abc import Callable, Mapping, Sequence

from pulse.dim import TDim
from pulse.errors import LoadError
from pulse.facts import Array
from pulse.nnef.operators import families as families
from pulse.nnef.read.arithmetic import SIZE_FUNCTIONS, apply_function
from pulse.nnef.read.expressions import Evaluator
from pulse.nnef.read.files import NnefFiles
from pulse.nnef.read.node import GraphReader, NnefValue, NnefWire, NodeReader
from pulse.nnef.read.parser import MAX_DEPTH
from pulse.nnef.read.position import Position
from pulse.nnef.read.pulses import StreamTiming
from pulse.nnef.read.scan import read_scan
from pulse.nnef.read.signatures import SIGNATURES, OperatorSignature, signature_of
from pulse.nnef.registry import READERS
from pulse.nnef.syntax import Assignment, AssignmentTarget, Call, Expression, Fragment
from pulse.support.budget import Spending
from pulse.support.printable import printable
from pulse.support.record import record
from pulse.support.wording import count_of

EXTERNALS = ("external", "tract_core_external")


@record(eq=False)
class Definitions:
    """The definitions of a document except its graph: files, fragments and symbols.

    title      the document, for errors
    files      the files, with the stored tensors
    fragments  fragments with a body, by name
    symbols    symbols by name
    standard   whether the file is plain NNEF: tract stores some things otherwise
    timing     the timing of a model in pulses; empty if it is offline
    """

    title: str
    files: NnefFiles
    fragments: Mapping[str, Fragment]
    symbols: Mapping[str, TDim]
    standard: bool
    timing: StreamTiming


class AssignmentReader:
    """Reads calls into the graph of their position; ``spending`` counts the nodes that they unfold to."""

    def __init__(self, definitions: Definitions, spending: Spending) -> None:
        self._definitions, self._spending = definitions, spending
        self._expressions = Evaluator(definitions.symbols, spending, self._operate, self._call)
        self._depth = 0

    def run(
        self,
        body: Sequence[Assignment],
        scope: dict[str, NnefValue],
        graph: GraphReader,
        new_name: Callable[[str], str] = str,
    ) -> None:
        """Assign values to names in ``scope``; ``new_name`` makes the names of their results.

        Raises LoadError: a name has a value already, or a value cannot be computed
        """
        for assignment in body:
            names = flat_names(assignment.target)
            position = Position(
                scope, graph, tuple(map(new_name, names)), self._definitions.title, assignment.line
            )
            require_unassigned(names, position)
            _assign(assignment.target, self._expressions.value(assignment.value, position), scope, position)

    def node(self, call: Call, position: Position) -> NodeReader:
        """Return a call of an operator, its arguments evaluated. Raises LoadError: they do not fit it."""
        arguments = self._arguments(call, SIGNATURES[call.operator], position)
        return self._node(call.operator, position.targets or (call.operator,), arguments, position)

    def _node(
        self, operator: str, targets: tuple[str, ...], arguments: Mapping[str, NnefValue], position: Position
    ) -> NodeReader:
        return NodeReader(
            position.graph, operator, targets, arguments, position.text, self._definitions.standard
        )

    def _operate(self, operator: str, operands: Sequence[NnefValue], position: Position) -> NnefValue:
        """Return the result of an operator between tensors."""
        self._spending.take_nodes(1, position.title)
        arguments = dict(zip(SIGNATURES[operator].names, operands))
        return _to_value(
            READERS[operator](self._node(operator, position.targets or (operator,), arguments, position))
        )

    def _call(self, call: Call, position: Position) -> NnefValue:
        self._spending.take_nodes(1, position.title)
        name = call.operator
        if name in SIZE_FUNCTIONS and len(call.positional) == 1:
            value = apply_function(name, self._expressions.value(call.positional[0], position.part(0)))
            if value is None:
                raise position.error(f"{name} has no value here")
            return value
        fragment = self._definitions.fragments.get(name)
        if fragment is not None:
            return self._unfold(fragment, call, position)
        if name in EXTERNALS:
            raise position.error(
                f"{name} must be the whole right side, with the name of an input on the left"
            )
        if name == "tract_core_scan":
            return self._scan(self.node(call, position))
        if name == "variable":
            return self._variable(self.node(call, position))
        if name not in READERS:
            raise position.error(
                f"the operator {printable(name)} is not supported; define it as a fragment of others"
            )
        return _to_value(READERS[name](self.node(call, position)))

    def _variable(self, node: NodeReader) -> NnefWire:
        value: Array = self._definitions.files.tensor(node.text("label"))
        shape = tuple(node.integers("shape")) if node.arguments["shape"] != [] else ()
        if shape != value.shape:
            raise node.error(f"its shape is {list(shape)}, and {list(value.shape)} in the file")
        return node.graph.constant(value, node.targets[0])

    def _arguments(
        self, call: Call, signature: OperatorSignature, position: Position
    ) -> dict[str, NnefValue]:
        title = f"{printable(call.operator)}(…)"
        if len(call.positional) > len(signature.names):
            raise position.error(
                f"{title} takes {count_of(len(signature.names), 'argument')}, not {len(call.positional)}"
            )
        expressions: dict[str, Expression] = dict(zip(signature.names, call.positional))
        for name, expression in call.named:
            if name not in signature.names or name in expressions:
                reason = "given twice" if name in expressions else "not known"
                raise position.error(f"{title}: the argument {printable(name)} is {reason}")
            expressions[name] = expression
        arguments: dict[str, NnefValue] = {}
        for name in signature.names:
            if name in expressions:
                arguments[name] = self._expressions.value(expressions[name], position.part(name))
            elif name in signature.defaults:
                arguments[name] = signature.defaults[name]
            else:
                raise position.error(f"{title}: the argument {name} is missing")
        return arguments

    def _unfold(self, fragment: Fragment, call: Call, position: Position) -> NnefValue:
        scope = self._arguments(call, signature_of(fragment), position)
        results = [name for name, _ in fragment.results]
        renamed = dict(zip(results, position.targets))
        prefix = position.targets[0] if position.targets else fragment.name
        self._run_fragment(
            fragment,
            scope,
            position.graph,
            lambda name: renamed.get(name, f"{prefix}.{name}"),
            position.error(f"fragments call each other more than {MAX_DEPTH} deep"),
        )
        missing = [name for name in results if name not in scope]
        if missing:
            raise position.error(
                f"the fragment {printable(fragment.name)} does not assign {printable(missing[0])}"
            )
        values = tuple(scope[name] for name in results)
        return values[0] if len(values) == 1 else values

    def _scan(self, node: NodeReader) -> NnefValue:
        name = node.text("body")
        fragment = self._definitions.fragments.get(name)
        if fragment is None or fragment.body is None:
            raise node.error(f"there is no fragment {printable(name)}")
        too_deep = node.error(f"scans are nested more than {MAX_DEPTH} deep")

        def run(scope: dict[str, NnefValue], body: GraphReader) -> dict[str, NnefValue]:
            self._run_fragment(fragment, scope, body, str, too_deep)
            return scope

        return read_scan(node, fragment, run, self._definitions.timing if self._depth == 0 else None)

    def _run_fragment(
        self,
        fragment: Fragment,
        scope: dict[str, NnefValue],
        graph: GraphReader,
        new_name: Callable[[str], str],
        too_deep: LoadError,
    ) -> None:
        assert fragment.body is not None
        if self._depth >= MAX_DEPTH:
            raise too_deep
        self._depth += 1
        self.run(fragment.body, scope, graph, new_name)
        self._depth -= 1


def flat_names(target: AssignmentTarget) -> list[str]:
    """Return all names of the left side of an assignment."""
    return [target] if isinstance(target, str) else [name for part in target for name in flat_names(part)]


def require_unassigned(names: Sequence[str], position: Position) -> None:
    """Raise LoadError if one of the names has a value already."""
    for name in names:
        if name in position.scope:
            raise position.error(f"{printable(name)} is assigned twice")


def _assign(
    target: AssignmentTarget, value: NnefValue, scope: dict[str, NnefValue], position: Position
) -> None:
    if isinstance(target, str):
        if isinstance(value, tuple) and len(value) == 1:
            value = value[0]
        scope[target] = value
        return
    if not isinstance(value, tuple | list) or len(value) < len(target):
        results = 1 if isinstance(value, NnefWire) else "other"
        raise position.error(f"{len(target)} names stand for {count_of(results, 'result')}")
    for name, item in zip(target, value):
        _assign(name, item, scope, position)


def _to_value(results: NnefWire | Sequence[NnefWire]) -> NnefValue:
    if isinstance(results, NnefWire):
        return results
    return list[NnefValue](results) if isinstance(results, list) else tuple(results)
