"""A model repository for Triton: the pulsed model as ONNX, with the configuration of its sequence batcher."""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from onnx import TensorProto

from pulse.errors import InputError, WriteError
from pulse.models import PulsedModel
from pulse.onnx.proto import ValueInfoProto
from pulse.onnx.write.model import to_onnx
from pulse.onnx.write.sequence import (
    START,
    SequenceModel,
    SequenceState,
    provable_model,
    sequence_model,
    shape_of,
)
from pulse.proof import ProofChoice
from streaming.files.atomic import complete_folder
from streaming.opening.opened_model import OpenedModel
from streaming.reports.exporting import ExportedFile, prove_export

TYPES = {
    TensorProto.FLOAT: "TYPE_FP32",
    TensorProto.DOUBLE: "TYPE_FP64",
    TensorProto.FLOAT16: "TYPE_FP16",
    TensorProto.BOOL: "TYPE_BOOL",
    TensorProto.INT8: "TYPE_INT8",
    TensorProto.INT16: "TYPE_INT16",
    TensorProto.INT32: "TYPE_INT32",
    TensorProto.INT64: "TYPE_INT64",
    TensorProto.UINT8: "TYPE_UINT8",
    TensorProto.UINT16: "TYPE_UINT16",
    TensorProto.UINT32: "TYPE_UINT32",
    TensorProto.UINT64: "TYPE_UINT64",
}
"""Element types of ONNX, as Triton calls them."""
MAX_SEQUENCES = 64
"""Maximum number of concurrent sequences of an instance."""
IDLE_US = 60_000_000
"""The microseconds after which a sequence without requests is dropped."""


def export_triton(
    opened: OpenedModel, pulsed: PulsedModel, folder: Path, opset: int, choice: ProofChoice | None
) -> ExportedFile:
    """Write ``<folder>/<name>/config.pbtxt`` and ``<folder>/<name>/1/model.onnx``, all at once, if the proof holds.

    choice   the streams of the proof; None for no proof
    Raises   WriteError: an op cannot be written; InputError: the model's folder exists already, or cannot be written
    """
    name = model_name(opened.title)
    path = folder / name
    if path.exists():
        raise InputError(f"{path}: already exists; remove it, or give another folder")
    proto = to_onnx(pulsed, opset, opened.rate_metadata)
    sequence = sequence_model(proto)
    text = config_text(name, sequence)
    proof = prove_export(opened, pulsed, provable_model(sequence, proto), choice)
    data = sequence.proto.SerializeToString()
    is_proved = proof is None or proof.proof.equal
    if is_proved:
        with complete_folder(path, makes_parents=True) as part:
            (part / "1").mkdir(parents=True)
            (part / "config.pbtxt").write_text(text, "utf-8")
            (part / "1" / "model.onnx").write_bytes(data)
    nodes = len(sequence.proto.graph.node)
    return ExportedFile(path if is_proved else None, opset, nodes, len(sequence.states), len(data), proof)


def model_name(title: str) -> str:
    """Return the name of a model in a repository: its file's name, in characters that any file system accepts."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", title).strip("._") or "model"


def config_text(name: str, model: SequenceModel) -> str:
    """Return the model's config.pbtxt: Triton's ModelConfig as text. Raises WriteError: a type that Triton lacks."""
    fields = [
        f"name: {json.dumps(name)}",
        'platform: "onnxruntime_onnx"',
        "max_batch_size: 0",
        *(_tensor("input", value) for value in model.inputs),
        *(_tensor("output", value) for value in model.outputs),
        _block("instance_group", ["count: 1", "kind: KIND_CPU"]),
        _block("sequence_batching", _batching_lines(model.states)),
    ]
    return "\n".join(fields) + "\n"


def _batching_lines(states: Iterable[SequenceState]) -> list[str]:
    start = _block("control", ["kind: CONTROL_SEQUENCE_START", "bool_false_true: [ false, true ]"])
    return [
        f"max_sequence_idle_microseconds: {IDLE_US}",
        _block("oldest", [f"max_candidate_sequences: {MAX_SEQUENCES}"]),
        _block("control_input", [f'name: "{START}"', start]),
        *(_block("state", _state_lines(state)) for state in states),
    ]


def _state_lines(state: SequenceState) -> list[str]:
    return [
        f"input_name: {json.dumps(state.input)}",
        f"output_name: {json.dumps(state.output)}",
        f"data_type: {_type(state.input, state.element_type)}",
        f"dims: {_dims(state.input, state.shape)}",
    ]


def _tensor(field: str, value: ValueInfoProto) -> str:
    shape = shape_of(value)
    dims = _dims(value.name, shape or (1,))
    type_name = _type(value.name, value.type.tensor_type.elem_type)
    scalar = [] if shape else ["reshape { shape: [ ] }"]
    return _block(
        field, [f"name: {json.dumps(value.name)}", f"data_type: {type_name}", f"dims: {dims}", *scalar]
    )


def _type(name: str, element_type: int) -> str:
    type_name = next((text for number, text in TYPES.items() if number == element_type), None)
    if type_name is None:
        raise WriteError(f"{name}: Triton has no element type {element_type} of ONNX; cast it in the model")
    return type_name


def _dims(name: str, shape: tuple[int, ...]) -> str:
    if not all(shape):
        raise WriteError(f"{name}: Triton takes no empty tensor {list(shape)}; remove it from the model")
    return f"[ {', '.join(map(str, shape))} ]"


def _block(name: str, fields: Iterable[str]) -> str:
    lines = [f"  {line}" for field in fields for line in field.splitlines()]
    return "\n".join([f"{name} {{", *lines, "}"])
