"""The arrays that a caller sends, checked against the input ports of a stream."""

from collections.abc import Mapping, Sequence

import numpy as np

from pulse.errors import InputError
from pulse.facts import DTYPES, Array
from pulse.support.naming import require_name
from streaming.protocol.ports import StreamPort


def arrays_by_port(
    inputs: Sequence[StreamPort], block: Array | Mapping[str, Array]
) -> list[tuple[StreamPort, Array]]:
    """Return the ports of a block, an array for the only input or input name -> array, each with its array.

    Raises InputError: an array does not fit its port, or no input has the name
    """
    ports = {port.name: port for port in inputs}
    if not isinstance(block, Mapping):
        if len(ports) > 1:
            raise InputError(f"{len(ports)} inputs stream: send them by name, {', '.join(ports)}")
        return [(inputs[0], _fit(inputs[0], np.asarray(block)))]
    for name in block:
        require_name("input", name, ports, InputError)
    return [(ports[name], _fit(ports[name], np.asarray(array))) for name, array in block.items()]


def _fit(port: StreamPort, array: Array) -> Array:
    """Return the array in the port's shape; plain samples of one channel are reshaped.

    Raises InputError: its shape or type does not fit
    """
    channels = port.values if port.kind == "sound" else 0
    if channels == 1 and array.ndim == 1:
        array = array.reshape([-1 if size is None else size for size in port.shape])
    shape = tuple(None if axis == port.axis else size for axis, size in enumerate(array.shape))
    if shape != port.shape:
        way_out = f"; send an array of this shape, with {channels} channels" if channels > 1 else ""
        raise InputError(f"{port.name}: expected {list(port.shape)}, got {list(array.shape)}{way_out}")
    dtype = DTYPES[port.dtype]
    if not np.can_cast(array.dtype, dtype, "same_kind") or (dtype.kind == "f") > (array.dtype.kind == "f"):
        scale = ", sound to -1 … 1" if port.kind == "sound" else ""
        raise InputError(
            f"{port.name}: expected {port.dtype}, got {array.dtype}; convert it with astype{scale}"
        )
    return array.astype(dtype, copy=False)
