"""Read a GraphDef or a SavedModel into a FileNetwork."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pulse.dim import SymbolScope
from pulse.errors import LoadError
from pulse.infer.inputs import DeclaredInput, input_facts
from pulse.infer.network import FileNetwork
from pulse.support.naming import require_name, unknown_name
from pulse.tensorflow.graph_node import GraphNode, NodeOutput, declared_type
from pulse.tensorflow.read.assignments import ASSIGNMENTS
from pulse.tensorflow.read.branch_effects import branch_places
from pulse.tensorflow.read.building import WITHOUT_RESULT, Request, build_model, prepare_graph
from pulse.tensorflow.read.effects import VARIABLES
from pulse.tensorflow.read.file import GraphContents, Signature, default_signature, readable_signatures
from pulse.tensorflow.read.flat import FlatGraph
from pulse.tensorflow.read.loops import EXIT, inside_loops, with_readers
from pulse.tensorflow.tensors import RESOURCE, STRING, TensorType

PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
CHECKPOINT_OPERATORS = ("SaveV2", "RestoreV2", "MergeV2Checkpoints", "ShardedFilename", "StringJoin")
"""Operators that write and read checkpoints, which produce no output of a model."""
WAV_DECODER = "DecodeWav"
"""The operator that reads an audio file: its outputs become inputs."""
_TIME_SYMBOL = "T"
_STREAMS_SYMBOL = "N"


def read_model(
    contents: GraphContents,
    inputs: Mapping[str, str],
    constants: Mapping[str, Any],
    signature: str | None,
    outputs: Sequence[str] | None,
) -> tuple[FileNetwork, FlatGraph]:
    """Return the model of a file, and its nodes; ``outputs`` are any of its tensors.

    Raises LoadError: it has no such signature or output, or a node cannot be read
    """
    if contents.signatures:
        side = _signature(contents, signature)
        selection = side.outputs if outputs is None else _select_outputs(contents, side, outputs)
        return _read_signature(contents, inputs, constants, replace(side, outputs=selection))
    if signature is not None:
        raise LoadError(f"{contents.title}: a GraphDef has no signatures; omit signature {signature!r}")
    return _read_graph(contents, inputs, constants, outputs)


def _select_outputs(
    contents: GraphContents, signature: Signature, outputs: Sequence[str]
) -> dict[str, NodeOutput]:
    known = signature.outputs
    return {name: known[require_name("output", name, known, LoadError, contents.title)] for name in outputs}


def _signature(contents: GraphContents, name: str | None) -> Signature:
    signatures = readable_signatures(contents.signatures)
    name = default_signature(signatures) if name is None else name
    return signatures[require_name("signature", name, signatures, LoadError, contents.title)]


def _read_signature(
    contents: GraphContents, inputs: Mapping[str, str], constants: Mapping[str, Any], signature: Signature
) -> tuple[FileNetwork, FlatGraph]:
    nodes = {node.name: node for node in contents.nodes}
    for name, tensor in (*signature.inputs.items(), *signature.outputs.items()):
        if tensor.node not in nodes:
            raise LoadError(
                f"{contents.title}: {name} of the signature is {str(tensor)!r}, but no node has this name; the file "
                "is damaged, get it again"
            )
    return _model(
        contents,
        nodes,
        signature.inputs,
        signature.outputs,
        _without_slots(inputs),
        _without_slots(constants),
    )


def _read_graph(
    contents: GraphContents,
    inputs: Mapping[str, str],
    constants: Mapping[str, Any],
    outputs: Sequence[str] | None,
) -> tuple[FileNetwork, FlatGraph]:
    nodes = {node.name: node for node in contents.nodes}
    input_values, constant_values = _without_slots(inputs), _without_slots(constants)
    names = (
        _find_outputs(contents.nodes) if outputs is None else [name.removesuffix(":0") for name in outputs]
    )
    fetches = {name: NodeOutput.parse(name) for name in names}
    if not fetches:
        raise LoadError(f"{contents.title}: every tensor is read by some node, so there is no output")
    requested = {name: NodeOutput.parse(name) for name in (*input_values, *constant_values)}
    for name, tensor in requested.items():
        if tensor.node not in nodes:
            known_names = [node.name for node in contents.nodes if node.op_type in PLACEHOLDERS]
            raise LoadError(unknown_name("input", name, known_names))
    decoders = [node.name for node in contents.nodes if node.op_type == WAV_DECODER]
    decoded = [NodeOutput(name, slot) for name in decoders for slot in range(2)]
    fed = {str(tensor): tensor for tensor in decoded} | requested
    flat = prepare_graph(
        contents.nodes, contents.library, contents.title, _names(fetches), list(fed.values())
    )
    effects = [
        node.name for node in flat if node.op_type in ASSIGNMENTS or branch_places(node, contents.library)
    ]
    needed = flat.find_needed([*_names(fetches), *effects], list(fed.values()), controls=False)
    placeholders = {
        node.name: NodeOutput(node.name) for node in needed.values() if node.op_type in PLACEHOLDERS
    }
    tensors_read = {tensor for node in needed.values() for tensor in node.inputs} | set(fetches.values())
    used = {
        name: tensor
        for name, tensor in (placeholders | fed).items()
        if tensor in tensors_read or name in requested
    }
    return _model(contents, nodes, _in_file_order(used, nodes), fetches, input_values, constant_values)


def _in_file_order(tensors: Mapping[str, NodeOutput], nodes: Iterable[str]) -> dict[str, NodeOutput]:
    """Return the tensors in the order of their nodes."""
    positions = {name: index for index, name in enumerate(nodes)}
    return dict(sorted(tensors.items(), key=lambda item: (positions[item[1].node], item[1].slot)))


def _names(fetches: Mapping[str, NodeOutput]) -> list[str]:
    return list(dict.fromkeys(tensor.node for tensor in fetches.values()))


def _without_slots(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``x:0`` as ``x``."""
    return {name.removesuffix(":0"): value for name, value in values.items()}


def _find_outputs(nodes: Sequence[GraphNode]) -> list[str]:
    """Return the nodes whose results are not read, and that depend on more than constants: the outputs."""
    tensors_read = {tensor.node for node in nodes for tensor in node.inputs}
    silent = (
        *WITHOUT_RESULT,
        *ASSIGNMENTS,
        *VARIABLES,
        *PLACEHOLDERS,
        *CHECKPOINT_OPERATORS,
        *EXIT,
        "Const",
        "VarIsInitializedOp",
        "IsVariableInitialized",
    )
    candidates = [
        node for node in nodes if node.name not in tensors_read and node.op_type not in silent and node.inputs
    ]
    candidates = [
        node for node in candidates if node.type_number("T", "dtype", "out_type") not in (STRING, RESOURCE)
    ]
    moving = _find_variable_nodes(nodes)
    loops = inside_loops(nodes)
    candidates = [node for node in candidates if node.name not in loops]
    return [node.name for node in candidates if node.name in moving] or [node.name for node in candidates]


def _find_variable_nodes(nodes: Sequence[GraphNode]) -> set[str]:
    """Return the nodes that depend on inputs, on variables, or on nodes that the file does not contain."""
    readers: dict[str, list[str]] = {}
    for node in nodes:
        for tensor in node.inputs:
            readers.setdefault(tensor.node, []).append(node.name)
    names = {node.name for node in nodes}
    open_ = [node.name for node in nodes if any(tensor.node not in names for tensor in node.inputs)]
    sources = [node.name for node in nodes if node.op_type in (*PLACEHOLDERS, *VARIABLES)]
    return with_readers([*open_, *sources], readers)


def _model(
    contents: GraphContents,
    nodes: Mapping[str, GraphNode],
    tensors: Mapping[str, NodeOutput],
    fetches: Mapping[str, NodeOutput],
    inputs: Mapping[str, str],
    constants: Mapping[str, Any],
) -> tuple[FileNetwork, FlatGraph]:
    scope = SymbolScope()
    declared = [_declared_input(name, tensor, nodes[tensor.node]) for name, tensor in tensors.items()]
    facts = input_facts(declared, inputs, scope, constants)
    fed = {tensor: facts[name] for name, tensor in tensors.items()}
    names = [tensor.node for tensor in fetches.values()]
    graph = prepare_graph(contents.nodes, contents.library, contents.title, names, list(fed))
    request = Request(fetches, feeds=fed, values=contents.values)
    labels = {tensor: name for name, tensor in tensors.items()}
    return build_model(graph, contents.library, request, scope, labels), graph


def _declared_input(name: str, tensor: NodeOutput, node: GraphNode) -> DeclaredInput:
    """Return an input with the type and shape that its node states."""
    type_, dims = _stated_type(node, tensor)
    if type_ is not None and (type_.known_type is None or type_.is_complex):
        raise LoadError(
            f"input {name}: a tensor of {type_} is not supported; give a tensor after it as the input"
        )
    sizes = None if dims is None else tuple(_dim(dims, axis) for axis in range(len(dims)))
    return DeclaredInput(name, None if type_ is None else type_.known_type, sizes)


def _stated_type(
    node: GraphNode, tensor: NodeOutput
) -> tuple[TensorType | None, "tuple[int | None, ...] | None"]:
    if node.op_type == WAV_DECODER:
        if tensor.slot:
            return TensorType(3), ()
        sizes = (node.attributes.get("desired_samples"), node.attributes.get("desired_channels"))
        return TensorType(1), tuple(size if isinstance(size, int) and size > 0 else None for size in sizes)
    return declared_type(node) if node.op_type in PLACEHOLDERS else (None, None)


def _dim(dims: "tuple[int | None, ...]", axis: int) -> int | str | None:
    """Return a size, or the name of an unknown one: of streams before frames, of frames; none for others."""
    if dims[axis] is not None:
        return dims[axis]
    unknown = [index for index, dim in enumerate(dims) if dim is None]
    if len(unknown) > 1 and axis == 0:
        return _STREAMS_SYMBOL
    return _TIME_SYMBOL if axis == unknown[len(unknown) > 1 and unknown[0] == 0] else None
