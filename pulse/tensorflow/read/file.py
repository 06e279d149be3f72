"""Read a path, a folder or bytes into a graph with the values of its variables."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from os import PathLike
from pathlib import Path

from google.protobuf.message import DecodeError

from pulse.errors import LoadError
from pulse.facts import Array
from pulse.support.file_bytes import MAX_MODEL_BYTES, file_bytes
from pulse.support.record import record
from pulse.tensorflow.function_library import FunctionLibrary
from pulse.tensorflow.graph_node import GraphNode, NodeOutput, graph_nodes
from pulse.tensorflow.messages import GraphDef, Proto, SavedModel
from pulse.tensorflow.read.checkpoint import CheckpointTensors
from pulse.tensorflow.read.objects import captured_values
from pulse.tensorflow.read.restoring import restored_values
from pulse.tensorflow.recognition import SAVED

SERVING = "serving_default"
_INTERNAL = "__saved_model_"
"""The prefix of the signatures that only TensorFlow itself calls."""
SIZE_ADVICE = "a graph has less than 2 GiB: export its variables to a separate file"


@record
class Signature:
    """A function of a SavedModel: argument -> tensor, result -> tensor."""

    inputs: Mapping[str, NodeOutput]
    outputs: Mapping[str, NodeOutput]


@record(eq=False)
class GraphContents:
    """The contents of a file.

    nodes       the nodes of the graph
    library     its functions
    title       the file, for errors
    values      the values of variables, by the names of their nodes
    signatures  the signatures of a SavedModel, by their keys
    """

    nodes: tuple[GraphNode, ...]
    library: FunctionLibrary
    title: str
    values: Mapping[str, Array] = field(default_factory=dict[str, Array])
    signatures: Mapping[str, Signature] = field(default_factory=dict[str, Signature])


def readable_signatures(signatures: Mapping[str, Signature]) -> dict[str, Signature]:
    """Return the signatures that are a model: they have outputs, and TensorFlow is not their only caller."""
    return {
        name: signature
        for name, signature in signatures.items()
        if signature.outputs and not name.startswith(_INTERNAL)
    }


def default_signature(signatures: Mapping[str, Signature]) -> str:
    """Return the name of the signature for serving, else of the first one that is a model."""
    readable = readable_signatures(signatures)
    return SERVING if SERVING in readable else next(iter(readable), SERVING)


def read_contents(source: "str | PathLike[str] | bytes") -> GraphContents:
    """Return a GraphDef by its path or bytes, or the folder of a SavedModel. Raises LoadError: it is something else."""
    if isinstance(source, bytes):
        return _graph(source, "these bytes", "model")
    try:
        path = Path(os.fspath(source))
    except TypeError:
        raise LoadError(
            f"cannot load a {type(source).__name__}; give a path, or the bytes of a GraphDef"
        ) from None
    if path.is_dir():
        return _read_saved_model(path)
    if path.name == SAVED and (path.parent / "variables").is_dir():
        return _read_saved_model(path.parent)
    data = file_bytes(path, MAX_MODEL_BYTES, SIZE_ADVICE)
    return _graph(data, str(path), path.stem)


def _graph(data: bytes, subject: str, title: str) -> GraphContents:
    proto = decode(GraphDef, data, subject)
    if not proto.node:
        saved = None
        with suppress(LoadError):
            saved = decode(SavedModel, data, subject)
        if saved is not None and saved.meta_graphs and saved.meta_graphs[0].graph_def.node:
            return _meta_graph(saved, subject, title, None)
        raise LoadError(
            f"{subject}: not a TensorFlow graph (no node in it); give a GraphDef or the folder of a SavedModel"
        )
    library = FunctionLibrary(proto.library.function)
    return GraphContents(tuple(graph_nodes(proto.node, subject)), library, title)


def decode(message_class: Proto, data: bytes, subject: str) -> Proto:
    """Return a message. Raises LoadError: the bytes are damaged."""
    try:
        return message_class.FromString(data)
    except DecodeError:
        raise LoadError(
            f"{subject}: not a TensorFlow graph, or truncated; export or download it again"
        ) from None


def _read_saved_model(folder: Path) -> GraphContents:
    path = folder / SAVED
    if not path.is_file():
        raise LoadError(f"{folder}: is a folder without {SAVED}; give the folder of a SavedModel, or a file")
    saved = decode(SavedModel, file_bytes(path, MAX_MODEL_BYTES, SIZE_ADVICE), str(path))
    return _meta_graph(saved, str(path), folder.name or "model", folder)


def _meta_graph(saved: Proto, subject: str, title: str, folder: Path | None) -> GraphContents:
    serving = [meta for meta in saved.meta_graphs if "serve" in meta.meta_info_def.tags]
    if not saved.meta_graphs:
        raise LoadError(f"{subject}: a SavedModel without a graph; export it again")
    meta = (serving or list(saved.meta_graphs))[0]
    nodes = graph_nodes(meta.graph_def.node, subject)
    library = FunctionLibrary(meta.graph_def.library.function)
    signatures = {
        name: _signature(meta.signature_def[name], subject, name) for name in sorted(meta.signature_def)
    }
    values: Mapping[str, Array] = {}
    prefix = None if folder is None else folder / "variables" / "variables"
    if prefix is not None and prefix.with_suffix(".index").is_file():
        checkpoint = CheckpointTensors(prefix)
        restored = restored_values(nodes, library, meta.saver_def, checkpoint, subject)
        values = restored | captured_values(nodes, meta.object_graph_def, checkpoint, restored, subject)
    return GraphContents(tuple(nodes), library, title, values, signatures)


def _signature(proto: Proto, subject: str, name: str) -> Signature:
    sides: list[dict[str, NodeOutput]] = []
    for infos in (proto.inputs, proto.outputs):
        if any(not infos[key].name for key in infos):
            raise LoadError(
                f"{subject}: signature {name} has a tensor without a name; only dense tensors are supported"
            )
        sides.append({key: NodeOutput.parse(infos[key].name) for key in sorted(infos)})
    return Signature(sides[0], sides[1])
