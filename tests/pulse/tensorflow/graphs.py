"""GraphDefs and SavedModels that the tests write themselves."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from pulse.facts import Array
from pulse.tensorflow.messages import BundleEntryProto, BundleHeaderProto, GraphDef, SavedModel

NUMBERS = {
    "f32": 1,
    "f64": 2,
    "i32": 3,
    "u8": 4,
    "string": 7,
    "c64": 8,
    "i64": 9,
    "bool": 10,
    "resource": 20,
    "variant": 21,
}
DTYPES = {np.dtype(np.float32): 1, np.dtype(np.int32): 3, np.dtype(np.int64): 9, np.dtype(np.bool_): 10}


class Type(NamedTuple):
    """An attribute that is a type."""

    name: str


class Shape(NamedTuple):
    """An attribute that is a shape; -1 is an unknown size, None a shape of unknown rank."""

    dims: tuple[int, ...] | None


class Call(NamedTuple):
    """An attribute that is a function."""

    name: str


F32, I32, I64, BOOL = Type("f32"), Type("i32"), Type("i64"), Type("bool")
U8 = Type("u8")
TYPES = dict(zip(DTYPES, (F32, I32, I64, BOOL)))


def put_shape(proto: Any, dims: Sequence[int] | None) -> None:
    if dims is None:
        proto.unknown_rank = True
    for size in dims or ():
        proto.dim.add(size=size)


def put_tensor(proto: Any, value: Array) -> None:
    proto.dtype = DTYPES[value.dtype]
    put_shape(proto.tensor_shape, value.shape)
    proto.tensor_content = value.tobytes()


def put(attribute: Any, value: Any) -> None:
    match value:
        case bool():
            attribute.b = value
        case int():
            attribute.i = value
        case float():
            attribute.f = value
        case str():
            attribute.s = value.encode()
        case Type():
            attribute.type = NUMBERS[value.name]
        case Shape():
            attribute.shape.SetInParent()
            put_shape(attribute.shape, value.dims)
        case Call():
            attribute.func.name = value.name
        case np.ndarray():
            put_tensor(attribute.tensor, value)
        case _:
            attribute.list.i.extend(value)


class GraphDefBuilder:
    """A GraphDef under construction; every method gives the name of its node."""

    def __init__(self) -> None:
        self.proto = GraphDef()

    def node(self, name: str, op: str, *inputs: str, **attributes: Any) -> str:
        _add(self.proto.node, name, op, inputs, attributes)
        return name

    def place(self, name: str, *dims: int, dtype: Type = F32) -> str:
        return self.node(name, "Placeholder", dtype=dtype, shape=Shape(dims))

    def const(self, name: str, value: Any, dtype: Any = np.float32) -> str:
        array = np.asarray(value, dtype)
        return self.node(
            name,
            "Const",
            dtype=Type({1: "f32", 3: "i32", 9: "i64", 10: "bool"}[DTYPES[array.dtype]]),
            value=array,
        )

    def function(
        self,
        name: str,
        inputs: Sequence[tuple[str, Type]],
        nodes: Sequence[tuple[Any, ...]],
        outputs: Mapping[str, str],
        controls: Sequence[str] = (),
    ) -> str:
        """nodes: name, op, inputs, attributes."""
        proto = self.proto.library.function.add()
        proto.signature.name = name
        for port, dtype in inputs:
            proto.signature.input_arg.add(name=port, type=NUMBERS[dtype.name])
        for port, endpoint in outputs.items():
            proto.signature.output_arg.add(name=port)
            proto.ret[port] = endpoint
        for control in controls:
            proto.control_ret[control] = control
        for node in nodes:
            _add(proto.node_def, node[0], node[1], node[2], node[3] if len(node) > 3 else {})
        return name

    @property
    def data(self) -> bytes:
        return self.proto.SerializeToString(deterministic=True)


def _add(nodes: Any, name: str, op: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> None:
    node = nodes.add(name=name, op=op)
    node.input.extend(inputs)
    for key, value in attributes.items():
        put(node.attr[key], value)


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def block(entries: Sequence[tuple[bytes, bytes]]) -> bytes:
    """A block of a table, each key with all of its letters, and its trailer."""
    body = b"".join(varint(0) + varint(len(key)) + varint(len(value)) + key + value for key, value in entries)
    return body + (0).to_bytes(4, "little") + (1).to_bytes(4, "little")


def write_checkpoint(
    prefix: Path, tensors: Mapping[str, Array], texts: Mapping[str, bytes] = MappingProxyType({})
) -> None:
    """The index and the data of a checkpoint."""
    data = b""
    entries = [(b"", BundleHeaderProto(num_shards=1).SerializeToString())]
    for key in sorted({**tensors, **texts}):
        if key in texts:
            stored = varint(len(texts[key])) + bytes(4) + texts[key]
            entry = BundleEntryProto(dtype=NUMBERS["string"], offset=len(data), size=len(stored))
        else:
            stored = tensors[key].tobytes()
            entry = BundleEntryProto(dtype=DTYPES[tensors[key].dtype], offset=len(data), size=len(stored))
            put_shape(entry.shape, tensors[key].shape)
        entries.append((key.encode(), entry.SerializeToString()))
        data += stored
    first = block(entries)
    index = block([(b"~", varint(0) + varint(len(first)))])
    empty = block([])
    trailer = bytes(5)
    whole = first + trailer
    index_at = len(whole)
    whole += index + trailer
    empty_at = len(whole)
    whole += empty + trailer
    footer = varint(empty_at) + varint(len(empty)) + varint(index_at) + varint(len(index))
    whole += footer.ljust(40, b"\0") + (0xDB4775248B80FB57).to_bytes(8, "little")
    prefix.parent.mkdir(parents=True, exist_ok=True)
    prefix.with_name(f"{prefix.name}.index").write_bytes(whole)
    prefix.with_name(f"{prefix.name}.data-00000-of-00001").write_bytes(data)


def write_saved_model(
    folder: Path,
    builder: GraphDefBuilder,
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    variables: Mapping[str, tuple[str, Array]],
) -> Path:
    """A SavedModel with one signature; variables: handle -> key in the checkpoint, value."""
    names = [key for key, _ in variables.values()]
    keys = builder.proto.node.add(name="save/names", op="Const")
    keys.attr["value"].tensor.dtype = NUMBERS["string"]
    keys.attr["value"].tensor.string_val.extend(name.encode() for name in names)
    builder.node("save/Restore", "RestoreV2", "save/prefix", "save/names", "save/prefix")
    builder.node("save/prefix", "Placeholder", dtype=Type("string"))
    assigns: list[str] = []
    for place, handle in enumerate(variables):
        source = builder.node(f"save/value{place}", "Identity", f"save/Restore:{place}", T=F32)
        assigns.append(builder.node(f"save/Assign{place}", "AssignVariableOp", handle, source, dtype=F32))
    builder.node("save/all", "NoOp", *(f"^{name}" for name in assigns))
    proto = SavedModel(saved_model_schema_version=1)
    meta = proto.meta_graphs.add()
    meta.meta_info_def.tags.append("serve")
    meta.graph_def.CopyFrom(builder.proto)
    meta.saver_def.restore_op_name = "save/all"
    signature = meta.signature_def["serving_default"]
    for side, listed in ((signature.inputs, inputs), (signature.outputs, outputs)):
        for name, tensor in listed.items():
            side[name].name = tensor
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "saved_model.pb").write_bytes(proto.SerializeToString(deterministic=True))
    write_checkpoint(folder / "variables" / "variables", dict(variables.values()))
    return folder
