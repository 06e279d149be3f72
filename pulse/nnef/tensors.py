"""NNEF's .dat files: a header of 128 bytes, then the entries of a tensor in order."""

import struct
from collections.abc import Mapping
from math import prod

import numpy as np

from pulse.errors import LoadError, WriteError
from pulse.facts import Array, dtype_name
from pulse.support.wording import count_of

HEADER = struct.Struct("<2sBBII8IIHH32s11I")
"""Magic, version, bytes of data, rank, sizes, bits of an entry, kind and vendor, parameters, padding."""
MAGIC = b"N\xef"
MAX_RANK = 8
"""Maximum number of axes of a tensor in a file; the writer refuses more."""
FLOAT, UNSIGNED, QUANTIZED_UNSIGNED, QUANTIZED_SIGNED, SIGNED, BOOL = range(6)
DTYPES_BY_TYPE: Mapping[tuple[int, int], type[np.generic]] = {
    (FLOAT, 16): np.float16,
    (FLOAT, 32): np.float32,
    (FLOAT, 64): np.float64,
    **{
        (kind, bits): dtype
        for kind in (UNSIGNED, QUANTIZED_UNSIGNED)
        for bits, dtype in ((8, np.uint8), (16, np.uint16), (32, np.uint32), (64, np.uint64))
    },
    **{
        (kind, bits): dtype
        for kind in (SIGNED, QUANTIZED_SIGNED)
        for bits, dtype in ((8, np.int8), (16, np.int16), (32, np.int32), (64, np.int64))
    },
    (BOOL, 8): np.bool_,
}
ITEM_TYPES: Mapping[str, int] = {"f": FLOAT, "u": UNSIGNED, "i": SIGNED, "b": BOOL}


def dump_tensor(value: Array, name: str) -> bytes:
    """Return the bytes of a file. Raises WriteError: a type or rank that the format does not have."""
    item_type = ITEM_TYPES.get(value.dtype.kind)
    if item_type is None or (item_type, value.dtype.itemsize * 8) not in DTYPES_BY_TYPE:
        raise WriteError(
            f"{name}: a .dat file cannot hold {dtype_name(value.dtype)}; keep it out of the model"
        )
    if value.ndim > MAX_RANK:
        raise WriteError(
            f"{name}: a .dat file holds up to {MAX_RANK} axes, not the {value.ndim} of this tensor"
        )
    bits = 1 if item_type == BOOL else value.dtype.itemsize * 8
    data = (
        np.packbits(np.ascontiguousarray(value).ravel()).tobytes()
        if item_type == BOOL
        else np.ascontiguousarray(value, value.dtype.newbyteorder("<")).tobytes()
    )
    if max(len(data), *value.shape, 0) >= 1 << 32:
        raise WriteError(f"{name}: is too large: a .dat file holds less than 4 GiB; write ONNX instead")
    sizes = [*value.shape, *[0] * (MAX_RANK - value.ndim)]
    head = HEADER.pack(MAGIC, 1, 0, len(data), value.ndim, *sizes, bits, item_type, 0, bytes(32), *[0] * 11)
    return head + data


def load_tensor(data: bytes, name: str) -> Array:
    """Return the tensor of a file. Raises LoadError: it is not a tensor file, or its sizes contradict its length."""
    if len(data) < HEADER.size:
        raise LoadError(
            f"{name}: {len(data)} bytes are not a .dat file, whose header has {HEADER.size}; write it again"
        )
    magic, major, minor, nbytes, rank, *fields = HEADER.unpack_from(data)
    sizes, (bits, item_type, vendor) = fields[:MAX_RANK], fields[MAX_RANK : MAX_RANK + 3]
    if magic != MAGIC or (major, minor) != (1, 0):
        raise LoadError(
            f"{name}: not a .dat file of NNEF 1.0 (it begins with {data[:4].hex(' ')}); write it again"
        )
    if rank > MAX_RANK:
        raise LoadError(
            f"{name}: {count_of(rank, 'axis', 'axes')}, but a .dat file has up to {MAX_RANK}; write it again"
        )
    shape = tuple(sizes[:rank])
    count = prod(shape)
    packed = item_type == BOOL and bits == 1
    dtype = np.bool_ if packed else DTYPES_BY_TYPE.get((item_type, bits))
    if vendor != 0 or dtype is None:
        raise LoadError(
            f"{name}: entries of kind {item_type} with {count_of(bits, 'bit')} of vendor {vendor:#x} are not "
            "supported; "
            "floats of 16, 32 and 64 bits, integers of 8 to 64 bits and booleans are"
        )
    needed = (count + 7) // 8 if packed else count * np.dtype(dtype).itemsize
    if needed != nbytes or len(data) - HEADER.size != nbytes:
        raise LoadError(
            f"{name}: the header states shape {list(shape)}, {count_of(needed, 'byte')}, and "
            f"{count_of(nbytes, 'byte')} of data, but "
            f"{len(data) - HEADER.size} follow; write it again"
        )
    content = data[HEADER.size :]
    if packed:
        return np.unpackbits(np.frombuffer(content, np.uint8), count=count).astype(np.bool_).reshape(shape)
    values = np.frombuffer(content, np.dtype(dtype).newbyteorder("<"))
    return (values != 0 if dtype is np.bool_ else values).reshape(shape)
