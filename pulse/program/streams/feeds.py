"""The inputs of a step, by name and checked against the ports of the program. All functions raise InputError."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array, dtype_name, shape_text, widen_f16
from pulse.interface import Port
from pulse.ops.clock import frames_at
from pulse.support.wording import count_of, spell

Feed = Mapping[str, Array]
"""Arrays by the names of ports."""


def named_pulses(ports: Sequence[Port], feed: Feed | Array) -> dict[str, Array]:
    """Return a pulse for each streaming input; ``feed`` may be an array if there is one input."""
    arrays = feeds_by_name(ports, feed)
    for port in ports:
        array = arrays.get(port.name)
        if array is None:
            raise InputError(f"no pulse for input {port.name}; feed {_describe_ports(ports)}")
        if array.shape != port.shape or array.dtype != port.dtype:
            raise InputError(f"expected a pulse {port_text(port)}, got {array_text(array)}")
    if len(arrays) > len(ports):
        unknown = sorted(arrays.keys() - {port.name for port in ports})
        raise InputError(f"{', '.join(unknown)} is not a streaming input; feed {_describe_ports(ports)}")
    return arrays


def output_arrays(ports: Mapping[str, Port], outputs: Feed | Array) -> dict[str, Array]:
    """Return an array to write to for each output; ``outputs`` may be an array if there is one output."""
    arrays = outputs
    if isinstance(arrays, np.ndarray) and len(ports) == 1:
        arrays = dict.fromkeys(ports, arrays)
    if not isinstance(arrays, (dict, Mapping)) or arrays.keys() != ports.keys():
        raise InputError(f"pass an array for each output: {'; '.join(map(port_text, ports.values()))}")
    results: dict[str, Array] = {}
    for name, port in ports.items():
        array = arrays[name]
        if type(array) is not np.ndarray or array.shape != port.shape or array.dtype != port.dtype:
            raise InputError(
                f"expected an array for the output {port_text(port)}, got {array_text(np.asarray(array))}"
            )
        if not array.flags.writeable:
            raise InputError(f"the array for the output {name} cannot be written")
        results[name] = array
    return results


def copy_constants(inputs: Sequence[Port], constants: Feed) -> dict[str, Array]:
    """Return copies of the inputs that do not stream."""
    ports = {port.name: port for port in inputs if not port.streams}
    if constants.keys() != ports.keys():
        expected = "; ".join(port_text(port) for port in ports.values()) or "none"
        raise InputError(f"inputs that do not stream are given once, with {spell('constants')}: {expected}")
    copies = {name: widen_f16(np.array(array), ports[name].dtype) for name, array in constants.items()}
    for name, array in copies.items():
        if array.shape != ports[name].shape or array.dtype != ports[name].dtype:
            raise InputError(f"expected {port_text(ports[name])}, got {array_text(array)}")
    return copies


def named_rest(ports: Sequence[Port], rest: Feed | Array | None) -> dict[str, Array]:
    """Return the last frames of each streaming input, less than a pulse of one of them; no frames without ``rest``."""
    nothing = {port.name: frames_at(_filled_frames(port, 0), port.axis or 0, 0, 0) for port in ports}
    arrays = nothing if rest is None else feeds_by_name(ports, rest)
    if arrays.keys() != nothing.keys():
        raise InputError(f"feed {_describe_ports(ports)}")
    for port in ports:
        array, axis = arrays[port.name], port.axis or 0
        fits = array.ndim == len(port.shape) and array.dtype == port.dtype
        if (
            not fits
            or array.shape[:axis] + array.shape[axis + 1 :] != port.shape[:axis] + port.shape[axis + 1 :]
        ):
            raise InputError(f"expected less than a pulse {port_text(port)}, got {array_text(array)}")
    counts = frame_counts(ports, arrays)
    if all(counts[port.name] >= port.frames for port in ports):
        lengths = ", ".join(f"{name}: {count_of(count, 'frame')}" for name, count in counts.items())
        raise InputError(f"{lengths} is at least a whole pulse; call step first")
    return arrays


def frame_counts(ports: Sequence[Port], arrays: Feed) -> dict[str, int]:
    """Return the number of frames of each input."""
    return {port.name: arrays[port.name].shape[port.axis or 0] for port in ports}


def continue_with_zeros(ports: Sequence[Port], arrays: Feed, missing: Mapping[str, int]) -> dict[str, Array]:
    """Return the arrays, each with as many frames of zeros after it as it lacks."""
    longer: dict[str, Array] = {}
    for port in ports:
        shape = [missing[port.name] if axis == port.axis else size for axis, size in enumerate(port.shape)]
        longer[port.name] = np.concatenate([arrays[port.name], np.zeros(shape, port.dtype)], port.axis or 0)
    return longer


def padded_pulses(ports: Sequence[Port], arrays: Feed, fill: float) -> list[dict[str, Array]]:
    """Split frames into as few whole pulses as possible, with ``fill`` after the last frame of each input."""
    counts = frame_counts(ports, arrays)
    pulses = max(-(-counts[port.name] // port.frames) for port in ports)
    feeds = [filled_pulse(ports, fill) for _ in range(pulses)]
    for port in ports:
        axis = port.axis or 0
        for index, feed in enumerate(feeds):
            part = frames_at(arrays[port.name], axis, index * port.frames, (index + 1) * port.frames)
            frames_at(feed[port.name], axis, 0, part.shape[axis])[...] = part
    return feeds


def filled_pulse(ports: Sequence[Port], fill: float) -> dict[str, Array]:
    """Return a pulse filled with ``fill``, or with 0 if the type cannot hold it."""
    return {port.name: _filled_frames(port, fill) for port in ports}


def _filled_frames(port: Port, fill: float) -> Array:
    value: Any = fill if np.issubdtype(port.dtype, np.floating) else 0
    return np.full(port.shape, value, port.dtype)


def feeds_by_name(ports: Sequence[Port], feed: Feed | Array) -> dict[str, Array]:
    """Return arrays by name, f16 as f32, otherwise unchecked; ``feed`` may be an array if there is one port."""
    dtypes = {port.name: port.dtype for port in ports}
    if isinstance(feed, (dict, Mapping)):
        arrays = {name: np.asarray(array) for name, array in feed.items()}
    elif len(ports) == 1:
        arrays = {ports[0].name: np.asarray(feed)}
    else:
        raise InputError(f"{len(ports)} inputs stream: feed them by name, {_describe_ports(ports)}")
    return {name: widen_f16(array, dtypes.get(name, array.dtype)) for name, array in arrays.items()}


def _describe_ports(ports: Sequence[Port]) -> str:
    return "; ".join(port_text(port) for port in ports)


def port_text(port: Port, *lanes: int) -> str:
    """Return name, shape and type of a port; ``lanes``: the number of streams side by side, if there are several."""
    return f"{port.name}: {shape_text((*lanes, *port.shape))},{dtype_name(port.dtype)}"


def array_text(array: Array) -> str:
    """Return shape and type of an array."""
    return f"{','.join(map(str, array.shape))},{dtype_name(array.dtype)}"
