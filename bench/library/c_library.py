"""A library that was built, called from Python as C calls it."""

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.ops.clock import frames_at

OK, ENDED = 0, 1
"""Return codes of the library: success, and the end of a stream."""
NULL, MEMORY, ALIGNMENT, STREAM, SNAPSHOT, LENGTH, REST, FAULT, WEIGHTS = range(-1, -10, -1)
"""The codes that functions of a library return, as its header has them."""


class CPort(ctypes.Structure):
    """``NAME_port``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("is_output", ctypes.c_int),
        ("axes", ctypes.c_int),
        ("dims", ctypes.POINTER(ctypes.c_size_t)),
        ("bytes", ctypes.c_size_t),
        ("axis", ctypes.c_int),
        ("frames", ctypes.c_size_t),
        ("delay", ctypes.c_size_t),
        ("rate", ctypes.c_double),
    )


class CLibrary:
    """The functions of a shared library; ``inputs`` and ``outputs`` are its ports."""

    def __init__(self, folder: Path, name: str) -> None:
        self._code, self._name = ctypes.CDLL(str(folder / f"lib{name}.so")), name
        for function in ("size", "alignment", "snapshot_size", "valid"):
            getattr(self._code, f"{name}_{function}").restype = ctypes.c_size_t
        ports = self._code[f"{name}_ports"]
        ports.restype = ctypes.POINTER(CPort)
        count = ctypes.c_int()
        array = ports(ctypes.byref(count))
        self.ports = [array[i] for i in range(count.value)]
        self.inputs = [port for port in self.ports if not port.is_output]
        self.outputs = [port for port in self.ports if port.is_output]

    def call(self, function: str, *arguments: Any) -> int:
        """Call a function by its name without the model's; return its result."""
        return self._code[f"{self._name}_{function}"](*arguments)

    def stream(self) -> "CStream":
        """Return a new stream in memory of its own."""
        return CStream(self)


def shape_of(port: CPort) -> tuple[int, ...]:
    """Return the dims of a pulse."""
    return tuple(port.dims[axis] for axis in range(port.axes))


def addresses(arrays: Sequence[NDArray[Any] | None]) -> Any:
    """Return the arrays as ``void *[]``."""
    return (ctypes.c_void_p * max(1, len(arrays)))(
        *(None if array is None else array.ctypes.data for array in arrays)
    )


class CStream:
    """A stream of a library."""

    def __init__(self, library: CLibrary) -> None:
        self.library = library
        size, alignment = library.call("size"), library.call("alignment")
        self._memory = np.full(size + 2 * alignment, 0xA5, np.uint8)
        first = -self._memory.ctypes.data % alignment + alignment
        self._inside = slice(first, first + size)
        self.address = ctypes.c_void_p()
        assert (
            library.call("init", self._pointer(first), ctypes.c_size_t(size), ctypes.byref(self.address))
            == OK
        )

    def _pointer(self, first: int) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._memory.ctypes.data + first)

    def require_untouched(self) -> None:
        """Require that nothing around the memory of the stream was written."""
        outside = np.delete(self._memory, np.arange(self._inside.start, self._inside.stop))
        assert (outside == 0xA5).all()

    def new_outputs(self) -> list[NDArray[Any]]:
        """Return arrays for the outputs of a pulse."""
        return [np.zeros(shape_of(port), port.dtype.decode()) for port in self.library.outputs]

    def step(self, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Run one pulse; return its outputs."""
        outputs = self.new_outputs()
        assert self.library.call("step", self.address, addresses(inputs), addresses(outputs)) == OK
        return outputs

    def valid(self, output: int) -> slice:
        """Return the frames of the last pulse that count."""
        first = ctypes.c_size_t()
        count = self.library.call("valid", self.address, output, ctypes.byref(first))
        return slice(first.value, first.value + count)

    def snapshot(self) -> bytes:
        """Return the state of the stream."""
        buffer = ctypes.create_string_buffer(self.library.call("snapshot_size"))
        assert self.library.call("snapshot", self.address, buffer, ctypes.c_size_t(len(buffer))) == OK
        return buffer.raw

    def restore(self, snapshot: bytes) -> int:
        """Return the code of ``restore``."""
        return self.library.call("restore", self.address, snapshot, ctypes.c_size_t(len(snapshot)))

    def whole(self, feeds: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Reset the stream, run it over whole inputs, and return all valid frames."""
        assert self.library.call("reset", self.address) == OK
        ports = self.library.inputs
        values = [np.ascontiguousarray(feeds[port.name.decode()]) for port in ports]
        axes = [max(0, port.axis) for port in ports]
        streaming = [i for i, port in enumerate(ports) if port.axis >= 0]
        steps = min(values[i].shape[axes[i]] // ports[i].frames for i in streaming)
        pieces: list[list[NDArray[Any]]] = [[] for _ in self.library.outputs]

        def part(i: int, start: int, stop: int | None) -> NDArray[Any]:
            if ports[i].axis < 0:
                return values[i]
            end = values[i].shape[axes[i]] if stop is None else stop * ports[i].frames
            return np.ascontiguousarray(frames_at(values[i], axes[i], start * ports[i].frames, end))

        def keep(outputs: Sequence[NDArray[Any]]) -> None:
            for index, (port, array) in enumerate(zip(self.library.outputs, outputs)):
                valid = self.valid(index)
                if port.axis >= 0:
                    pieces[index].append(frames_at(array, port.axis, valid.start, valid.stop))
                elif valid.stop:
                    pieces[index] = [array]

        for pulse in range(steps):
            keep(self.step([part(i, pulse, pulse + 1) for i in range(len(ports))]))
        rest = [part(i, steps, None) for i in range(len(ports))]
        counts = [rest[i].shape[axes[i]] if i in streaming else 0 for i in range(len(ports))]
        frames = (ctypes.c_size_t * max(1, len(counts)))(*counts)
        while True:
            outputs = self.new_outputs()
            code = self.library.call("flush", self.address, addresses(rest), frames, addresses(outputs))
            if code == ENDED:
                break
            assert code == OK
            keep(outputs)
        self.require_untouched()
        return {
            port.name.decode(): np.concatenate(arrays, max(0, port.axis)) if port.axis >= 0 else arrays[0]
            for port, arrays in zip(self.library.outputs, pieces)
            if arrays
        }
