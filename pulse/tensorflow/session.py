"""Sessions like TensorFlow's: any tensor may be fed or fetched, and variables keep the values assigned by a run."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np

from pulse.errors import InputError, LoadError
from pulse.facts import BOOL, Array, convert_numbers, dtype_name
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.support.naming import require_name, unknown_name
from pulse.tensorflow.graph_node import GraphNode, NodeOutput, declared_type, graph_nodes
from pulse.tensorflow.messages import GraphDef
from pulse.tensorflow.partial_run import PartialRun
from pulse.tensorflow.plan import PlanKey, RequestPlan
from pulse.tensorflow.read.assignments import ASSIGNMENTS
from pulse.tensorflow.read.building import WITHOUT_RESULT
from pulse.tensorflow.read.checkpoint import CheckpointTensors
from pulse.tensorflow.read.effects import VARIABLES
from pulse.tensorflow.read.file import GraphContents, decode, default_signature
from pulse.tensorflow.read.flat import nodes_before
from pulse.tensorflow.tensors import RESOURCE, TensorType

MAX_PLANS = 64
"""Maximum number of plans that a session keeps; the oldest is dropped."""
_NEEDS_VALUE = ("Placeholder", "PlaceholderV2", "RestoreV2", "Restore", "RestoreSlice")
_TYPES = ("DstT", "out_type", "output_type", "dtype", "T", "Tidx")
"""Attributes that may have the type of a node's first output."""


class Session:
    """A graph with its own variables.

    A run computes in numpy, in the types of the graph: it is the oracle, not the way to stream.
    """

    def __init__(self, contents: GraphContents) -> None:
        self._nodes = {node.name: node for node in contents.nodes}
        self._library = contents.library
        self._title = contents.title
        self._signatures = contents.signatures
        self._first = {name: value.copy() for name, value in contents.values.items()}
        self._values: dict[str, Array] = dict(self._first)
        make_plan = partial(RequestPlan, self._nodes.values(), self._library, self._title)
        self._plan = lru_cache(MAX_PLANS)(make_plan)
        self._unfeedable: set[str] = set()
        self._unfetchable: set[str] = set()
        self.watched: dict[str, Array] = {}

    def run(
        self,
        fetches: str | Sequence[str] = (),
        feeds: Mapping[str, Any] | None = None,
        targets: Sequence[str] = (),
        watch: Sequence[str] = (),
    ) -> Any:
        """Run the nodes that the fetches and targets need.

        fetches  tensors, ``node`` or ``node:1``: one name, or several; None for a node without outputs
        feeds    tensor -> value; nodes before a tensor that is fed do not run
        targets  nodes that run and return nothing
        watch    tensors to record: ``watched`` has them after the run
        Returns  the array of the one name, or a list of them
        Raises   LoadError, FactError: the graph cannot run, naming the node; InputError: a feed does not fit, or is
                 missing, or a variable has no value yet
        """
        names = [fetches] if isinstance(fetches, str) else list(fetches)
        silent = [name for name in names if self._is_silent(name)]
        fetched = {name: self._tensor(name, "fetch") for name in names if name not in silent}
        watched_tensors = {name: self._tensor(name, "watch") for name in watch}
        pairs = {self._tensor(name, "feed"): (name, value) for name, value in (feeds or {}).items()}
        self._require_allowed([*fetched.values()], [*pairs])
        aims = sorted({self._tensor(name, "target").node for name in (*targets, *silent)})
        fed = {tensor: self._convert_feed(tensor, *pair) for tensor, pair in pairs.items()}
        results = self._compute([*fetched.values(), *watched_tensors.values()], fed, aims)
        self.watched = {name: results[str(tensor)] for name, tensor in watched_tensors.items()}
        arrays = [results.get(str(fetched[name])) if name in fetched else None for name in names]
        return arrays[0] if isinstance(fetches, str) else arrays

    def partial_run(
        self, fetches: Sequence[str], feeds: Sequence[str] = (), targets: Sequence[str] = ()
    ) -> "PartialRun":
        """Return a run in parts: each call of its ``run`` takes some of the feeds, and returns some of the fetches.

        Raises InputError: a name is unknown
        """
        for names, subject in ((fetches, "fetch"), (feeds, "feed"), (targets, "target")):
            for name in names:
                self._tensor(name, subject)
        return PartialRun(self.run, tuple(fetches), tuple(feeds), tuple(targets))

    def prevent_feeding(self, name: str) -> None:
        """Forbid feeding a tensor. Raises InputError: it is unknown."""
        self._unfeedable.add(str(self._tensor(name, "feed")))

    def prevent_fetching(self, name: str) -> None:
        """Forbid fetching the results of a node. Raises InputError: it is unknown."""
        self._unfetchable.add(self._tensor(name, "fetch").node)

    def _require_allowed(self, fetched: Sequence[NodeOutput], fed: Sequence[NodeOutput]) -> None:
        for tensor in fed:
            if str(tensor) in self._unfeedable:
                raise InputError(f"feed {tensor}: prevent_feeding was called for it; feed another tensor")
        for tensor in fetched:
            if tensor.node in self._unfetchable:
                raise InputError(f"fetch {tensor}: prevent_fetching was called for it; fetch another tensor")

    def call(self, inputs: Mapping[str, Any], signature: str | None = None) -> dict[str, Array]:
        """Run a signature of a SavedModel, with inputs and outputs by the names of its arguments. Raises as ``run``."""
        signature_name = signature or default_signature(self._signatures)
        require_name("signature", signature_name, self._signatures, InputError, self._title)
        sides = self._signatures[signature_name]
        differences = {
            "missing": sides.inputs.keys() - inputs.keys(),
            "unknown": inputs.keys() - sides.inputs.keys(),
        }
        faults = [f"{fault}: {', '.join(sorted(names))}" for fault, names in differences.items() if names]
        if faults:
            raise InputError(
                f"{signature_name}: its inputs are {', '.join(sides.inputs)}; {'; '.join(faults)}"
            )
        feeds = {str(sides.inputs[name]): value for name, value in inputs.items()}
        values = self.run([str(tensor) for tensor in sides.outputs.values()], feeds)
        return {name: array for name, array in zip(sides.outputs, values) if array is not None}

    def nodes_of(
        self, fetches: Sequence[str], feeds: Iterable[str] = (), targets: Sequence[str] = ()
    ) -> list[str]:
        """Return the nodes of the graph that a run of these would execute, functions inlined."""
        tensors = [self._tensor(name, "fetch") for name in fetches]
        fed = [self._tensor(name, "feed") for name in feeds]
        return self._plan(PlanKey(frozenset(fed), frozenset(tensors), frozenset(targets))).find_running()

    def cache_info(self) -> tuple[int, int, int | None, int]:
        """Return how often plans were found and made, how many are kept, and how many there are: ``functools``' own."""
        return self._plan.cache_info()

    @property
    def variables(self) -> dict[str, Array]:
        """Copies of the values of variables, without the uninitialised ones."""
        return {name: value.copy() for name, value in self._values.items()}

    @property
    def initialisers(self) -> list[str]:
        """The nodes that only run assignments, such as ``global_variables_initializer`` of TensorFlow."""
        names: list[str] = []
        for node in self._nodes.values():
            ops = [self._nodes[name].op_type for name in node.controls if name in self._nodes]
            if (
                node.op_type == "NoOp"
                and ops
                and all(ASSIGNMENTS.get(op) == "" for op in ops)
                and not self._reads_input(node)
            ):
                names.append(node.name)
        return names

    def _reads_input(self, node: GraphNode) -> bool:
        """Return whether the nodes before a node read an input or a checkpoint."""
        return any(before.op_type in _NEEDS_VALUE for before in nodes_before(self._nodes, node))

    def reset(self) -> None:
        """Reset variables to their initial values: from the file, then from the initialisers."""
        self._values = dict(self._first)
        starts = [name for name in self.initialisers if not self._assigns_any(name, self._first)]
        if starts:
            self.run((), targets=starts)

    def _assigns_any(self, name: str, values: Mapping[str, Array]) -> bool:
        """Return whether an initialiser assigns one of the variables in ``values``."""
        assigned = (self._nodes[control] for control in self._nodes[name].controls if control in self._nodes)
        return any(node.inputs and node.inputs[0].node in values for node in assigned)

    def save(self, path: "str | PathLike[str]") -> None:
        """Write all variables to a file of numpy (.npz)."""
        with Path(path).open("wb") as file:
            np.savez(file, **cast("dict[str, Any]", self._values))

    def restore(self, source: "str | PathLike[str] | Mapping[str, Any]") -> None:
        """Set variables from a mapping, from a file that ``save`` wrote, or from a checkpoint by its prefix.

        Raises InputError: a name or a shape does not fit; LoadError: the file cannot be read
        """
        for name, value in self._load_values(source).items():
            node = self._nodes.get(name)
            if node is None or node.op_type not in VARIABLES:
                raise InputError(unknown_name("variable", name, self._variable_names()))
            self._set(node, value)

    def _load_values(self, source: "str | PathLike[str] | Mapping[str, Any]") -> dict[str, Any]:
        if isinstance(source, Mapping):
            return dict(source)
        path = Path(source)
        if path.with_name(f"{path.name}.index").is_file():
            checkpoint = CheckpointTensors(path)
            return {name: checkpoint.tensor(name) for name in self._variable_names() if name in checkpoint}
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        except (OSError, ValueError, EOFError) as error:
            raise LoadError(f"{path}: neither a file of variables nor a checkpoint ({error})") from error

    def _variable_names(self) -> list[str]:
        return [node.name for node in self._nodes.values() if node.op_type in VARIABLES]

    def _set(self, node: GraphNode, value: Any) -> None:
        type_, shape = declared_type(node)
        dtype = None if type_ is None else type_.known_type
        array = None if dtype is None else convert_numbers(value, dtype)
        if array is None:
            raise node.error(f"{value!r:.60} is not of its type")
        if shape is not None and (
            len(shape) != array.ndim or any(dim not in (None, size) for dim, size in zip(shape, array.shape))
        ):
            raise InputError(f"{node.name}: a value of shape {list(array.shape)} does not fit {list(shape)}")
        self._values[node.name] = array

    def extend(self, graph: bytes) -> None:
        """Add the nodes of another GraphDef; variables keep their values. Raises LoadError: a name is taken."""
        proto = decode(GraphDef, graph, "these bytes")
        nodes = graph_nodes(proto.node, "these bytes")
        duplicates = [node.name for node in nodes if node.name in self._nodes]
        if duplicates:
            raise LoadError(f"{duplicates[0]}: the graph has a node of this name already; give another")
        self._nodes.update((node.name, node) for node in nodes)

    def _tensor(self, name: str, subject: str) -> NodeOutput:
        tensor = NodeOutput.parse(name)
        if tensor.node not in self._nodes:
            raise InputError(f"{subject} {name}: {self._title} has no node of this name; check it")
        return tensor

    def _is_silent(self, name: str) -> bool:
        node = self._nodes.get(name)
        return node is not None and (node.op_type in WITHOUT_RESULT or node.op_type in _RESOURCE_ASSIGNMENTS)

    def _convert_feed(self, tensor: NodeOutput, name: str, value: Any) -> Array:
        node = self._nodes[tensor.node]
        if node.op_type == "VarHandleOp":
            raise InputError(f"feed {name}: it is the handle of a variable; feed its ReadVariableOp")
        dtype = self._type(tensor)
        array = np.asarray(value)
        if dtype is not None and array.dtype != dtype:
            cast_ = convert_numbers(value, dtype)
            if cast_ is None:
                raise InputError(f"feed {name}: {value!r:.60} is not of type {dtype_name(dtype)}")
            array = cast_
        _check_shape(node, array, name)
        return array

    def _type(self, tensor: NodeOutput) -> np.dtype[Any] | None:
        """Return the type of a tensor if an attribute of its node states it."""
        node = self._nodes[tensor.node]
        if tensor.slot and node.op_type not in ("Split", "SplitV", "Unpack", "IdentityN"):
            return None
        if node.op_type in _BOOL_OPERATORS:
            return BOOL
        for name in _TYPES:
            value = node.attributes.get(name)
            if isinstance(value, TensorType):
                return value.known_type
        return None

    def _compute(
        self, tensors: Sequence[NodeOutput], feeds: Mapping[NodeOutput, Array], targets: Sequence[str]
    ) -> dict[str, Array]:
        key = PlanKey(frozenset(feeds), frozenset(tensors), frozenset(targets))
        if not key.fetches and not key.targets:
            return {}
        plan = self._plan(key)
        for tensor in key.fetches:
            self._require_tensor(tensor)
        results, assigned = plan.run(feeds, self._values)
        fetches = {str(tensor): self._convert_result(tensor, results[str(tensor)]) for tensor in key.fetches}
        self._values |= assigned
        return fetches

    def _require_tensor(self, tensor: NodeOutput) -> None:
        node = self._nodes[tensor.node]
        if node.op_type == "VarHandleOp" or node.type_number("T") == RESOURCE:
            raise InputError(f"fetch {tensor}: it is the handle of a variable; fetch its ReadVariableOp")

    def _convert_result(self, tensor: NodeOutput, value: Array) -> Array:
        """Return a result in its type in the graph."""
        node = self._nodes[tensor.node]
        if any(
            isinstance(result_type, TensorType) and result_type.is_complex
            for result_type in _result_types(node)
        ):
            return np.asarray(value[..., 0] + 1j * value[..., 1])
        dtype = self._type(tensor)
        if dtype is not None and value.dtype == np.int64 and dtype.kind in "iu":
            return value.astype(dtype)
        return value


_RESOURCE_ASSIGNMENTS = tuple(
    name for name in ASSIGNMENTS if name.startswith("Resource") or name.endswith("VariableOp")
)
_BOOL_OPERATORS = (
    *(name for row in ELEMENTWISE.values() if row.result == "bool" for name in row.names.tensorflow.split()),
    "NotEqual",
)


def _result_types(node: GraphNode) -> list[Any]:
    """Return the attributes with the type of a node's result, complex or its real form."""
    if node.op_type in ("ComplexAbs", "Real", "Imag", "Angle", "IRFFT"):
        return []
    names = ("DstT",) if node.op_type == "Cast" else ("Tcomplex", "Tout", "dtype", "T")
    return [node.attributes.get(name) for name in names]


def _check_shape(node: GraphNode, array: Array, name: str) -> None:
    """Raise InputError if a placeholder declares another shape."""
    shape = declared_type(node)[1] if node.op_type == "Placeholder" else None
    if shape is None:
        return
    fits = len(shape) == array.ndim and all(dim in (None, size) for dim, size in zip(shape, array.shape))
    if not fits and shape != ():
        raise InputError(
            f"feed {name}: shape {list(array.shape)} does not fit {list(shape)} of its Placeholder"
        )
