"""TensorFlow's protocol buffers: the fields that are read, by their public numbers, in a private pool.

The pool is private, so that it does not conflict with an imported TensorFlow, which registers the same names.
"""

from typing import Any, TypeAlias

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

Proto: TypeAlias = Any
"""A message of the pool, with the fields of the table."""

_FIELDS = {
    "GraphDef": "1 *node:NodeDef, 2 library:FunctionDefLibrary",
    "NodeDef": "1 name:string, 2 op:string, 3 *input:string, 5 %attr:AttrValue",
    "AttrValue": (
        "1 list:ListValue, 2 s:bytes, 3 i:int64, 4 f:float, 5 b:bool, 6 type:int32, 7 shape:TensorShapeProto, "
        "8 tensor:TensorProto, 9 placeholder:string, 10 func:NameAttrList"
    ),
    "ListValue": (
        "2 *s:bytes, 3 *i:int64, 4 *f:float, 5 *b:bool, 6 *type:int32, 7 *shape:TensorShapeProto, "
        "8 *tensor:TensorProto, 9 *func:NameAttrList"
    ),
    "NameAttrList": "1 name:string, 2 %attr:AttrValue",
    "TensorShapeProto": "2 *dim:Dim, 3 unknown_rank:bool",
    "Dim": "1 size:int64, 2 name:string",
    "TensorProto": (
        "1 dtype:int32, 2 tensor_shape:TensorShapeProto, 4 tensor_content:bytes, 5 *float_val:float, "
        "6 *double_val:double, 7 *int_val:int32, 8 *string_val:bytes, 9 *scomplex_val:float, 10 *int64_val:int64, "
        "11 *bool_val:bool, 12 *dcomplex_val:double, 13 *half_val:int32, 16 *uint32_val:uint32, 17 *uint64_val:uint64"
    ),
    "FunctionDefLibrary": "1 *function:FunctionDef",
    "FunctionDef": (
        "1 signature:OpDef, 3 *node_def:NodeDef, 4 %ret:string, 5 %attr:AttrValue, 6 %control_ret:string"
    ),
    "OpDef": "1 name:string, 2 *input_arg:ArgDef, 3 *output_arg:ArgDef, 20 *control_output:string",
    "ArgDef": "1 name:string, 3 type:int32, 4 type_attr:string, 5 number_attr:string, 6 type_list_attr:string",
    "SavedModel": "1 saved_model_schema_version:int64, 2 *meta_graphs:MetaGraphDef",
    "MetaGraphDef": (
        "1 meta_info_def:MetaInfoDef, 2 graph_def:GraphDef, 3 saver_def:SaverDef, 5 %signature_def:SignatureDef, "
        "7 object_graph_def:SavedObjectGraph"
    ),
    "MetaInfoDef": "4 *tags:string",
    "SaverDef": "1 filename_tensor_name:string, 2 save_tensor_name:string, 3 restore_op_name:string",
    "SignatureDef": "1 %inputs:TensorInfo, 2 %outputs:TensorInfo, 3 method_name:string",
    "TensorInfo": "1 name:string, 2 dtype:int32, 3 tensor_shape:TensorShapeProto",
    "SavedObjectGraph": "1 *nodes:SavedObject, 2 %concrete_functions:SavedConcreteFunction",
    "SavedConcreteFunction": "2 *bound_inputs:int32",
    "SavedObject": "1 *children:ObjectReference, 7 variable:SavedVariable",
    "ObjectReference": "1 node_id:int32, 2 local_name:string",
    "SavedVariable": "1 dtype:int32, 2 shape:TensorShapeProto, 6 name:string",
    "TrackableObjectGraph": "1 *nodes:TrackableObject",
    "TrackableObject": "1 *children:ObjectReference, 2 *attributes:SerializedTensor",
    "SerializedTensor": "1 name:string, 2 full_name:string, 3 checkpoint_key:string",
    "BundleHeaderProto": "1 num_shards:int32, 2 endianness:int32",
    "BundleEntryProto": (
        "1 dtype:int32, 2 shape:TensorShapeProto, 3 shard_id:int32, 4 offset:int64, 5 size:int64, 6 crc32c:fixed32"
    ),
}
"""Message -> its fields: number, name, type; ``*`` repeated, ``%`` a map of text to that type."""
_ONEOFS = {"AttrValue": "value"}
_PACKAGE = "pulse_tensorflow"
_SCALARS = {
    name: getattr(FieldDescriptorProto, f"TYPE_{name.upper()}")
    for name in [
        "string",
        "bytes",
        "int32",
        "int64",
        "uint32",
        "uint64",
        "fixed32",
        "float",
        "double",
        "bool",
    ]
}


def _set_type(field: FieldDescriptorProto, type_name: str) -> None:
    if type_name in _SCALARS:
        field.type = _SCALARS[type_name]
    else:
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{_PACKAGE}.{type_name}"


def _add_map_entry(message: DescriptorProto, name: str, type_name: str, maps: bool) -> str:
    """Add the message of a map's entries to the message that has the map; return its name."""
    entry = message.nested_type.add(name="".join(map(str.title, name.split("_"))) + "Entry")
    entry.options.map_entry = maps
    for field_number, (part, type_) in enumerate((("key", "string"), ("value", type_name)), 1):
        field = entry.field.add(name=part, number=field_number, label=FieldDescriptorProto.LABEL_OPTIONAL)
        _set_type(field, type_)
    return f"{message.name}.{entry.name}"


def _add_message(file: FileDescriptorProto, name: str, fields: str, maps: bool) -> None:
    message = file.message_type.add(name=name)
    if name in _ONEOFS:
        message.oneof_decl.add(name=_ONEOFS[name])
    for text in fields.split(", "):
        field_number, label = text.split(" ")
        field_name, type_name = label.lstrip("*%").split(":")
        is_repeated = label[0] in "*%"
        field = message.field.add(
            name=field_name,
            number=int(field_number),
            label=FieldDescriptorProto.LABEL_REPEATED if is_repeated else FieldDescriptorProto.LABEL_OPTIONAL,
        )
        if name in _ONEOFS:
            field.oneof_index = 0
        _set_type(
            field, _add_map_entry(message, field_name, type_name, maps) if label[0] == "%" else type_name
        )


def message_classes(maps: bool = True) -> dict[str, Proto]:
    """Return the messages in a private pool; maps may also be lists of entries, since files do not distinguish them."""
    file = FileDescriptorProto(name="pulse/tensorflow.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _FIELDS.items():
        _add_message(file, name, fields, maps)
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _FIELDS}


_CLASSES = message_classes()

GraphDef: Proto = _CLASSES["GraphDef"]
TensorProto: Proto = _CLASSES["TensorProto"]
FunctionDef: Proto = _CLASSES["FunctionDef"]
SavedModel: Proto = _CLASSES["SavedModel"]
TrackableObjectGraph: Proto = _CLASSES["TrackableObjectGraph"]
BundleHeaderProto: Proto = _CLASSES["BundleHeaderProto"]
BundleEntryProto: Proto = _CLASSES["BundleEntryProto"]
