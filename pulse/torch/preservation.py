"""The state of a module: saved before a run, restored afterwards."""

import contextlib
import tempfile
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from pulse.errors import LoadError
from pulse.facts import Array
from pulse.support.mapping import MIN_MAPPED_BYTES, map_arrays
from pulse.torch.arguments import ModuleCall

Restore: TypeAlias = Callable[[], None]

MIN_FILE_TENSOR_BYTES = 1 << 20
"""The minimum size of a tensor that is kept in a file; smaller ones stay in memory."""


class ModuleState:
    """The contents of all tensors, lists and dicts of a module when this object is created."""

    def __init__(self, torch: Any, module: Any) -> None:
        self._module = module
        self._undo: list[Restore] = []
        tensors: list[Any] = []
        visited: set[int] = set()
        left: list[Any] = [module]
        while left:
            value = left.pop()
            if id(value) in visited:
                continue
            visited.add(id(value))
            if isinstance(value, torch.nn.Module):
                left.append(vars(value))
            elif torch.is_tensor(value):
                tensors.append(value)
            elif isinstance(value, dict):
                items = cast("dict[Any, Any]", value)
                self._undo.append(partial(refill_dict, items, dict(items)))
                left += items.values()
            elif isinstance(value, list):
                entries = cast("list[Any]", value)
                self._undo.append(partial(_refill_list, entries, list(entries)))
                left += entries
            elif isinstance(value, tuple):
                left += cast("tuple[Any, ...]", value)
        self._mapped = map_tensors(torch, tensors)
        self._undo += [
            _TensorState(torch, tensor, self._mapped.get(id(tensor))).restore for tensor in tensors
        ]

    def restore(self) -> None:
        """Restore everything, including the training modes."""
        for undo in self._undo:
            undo()

    def restore_eval(self) -> None:
        """Restore everything, in eval mode."""
        self.restore()
        self._module.eval()

    def find(self, array: Array) -> Array | None:
        """Return the kept elements of an array that lies in a large tensor of the module; None if it does not."""
        return next(
            (view for mapped in self._mapped.values() if (view := mapped.find(array)) is not None), None
        )


@contextlib.contextmanager
def preserve_state(torch: Any, module: Any, call: ModuleCall) -> Generator[ModuleState]:
    """Put the module into eval mode; yields a state that restores this mode and the present values.

    Afterwards its modes, parameters, buffers and attributes (tensors, lists and dicts) are as before, and PyTorch's
    random numbers continue as if none had been drawn.
    """
    tensors = [*module.parameters(), *module.buffers(), *filter(torch.is_tensor, call.leaves(torch).values())]
    state = ModuleState(torch, module)
    with torch.random.fork_rng(devices=sorted({tensor.device.index for tensor in tensors if tensor.is_cuda})):
        state.restore_eval()
        try:
            yield state
        finally:
            state.restore()


def refill_dict(items: dict[Any, Any], before: dict[Any, Any]) -> None:
    """Restore a dict; an unchanged one is not written, because some kinds refuse that."""
    if not _are_same([*items, *items.values()], [*before, *before.values()]):
        items.clear()
        items.update(before)


def _refill_list(entries: list[Any], before: list[Any]) -> None:
    if not _are_same(entries, before):
        entries[:] = before


def _are_same(now: Sequence[Any], before: Sequence[Any]) -> bool:
    return len(now) == len(before) and all(left is right for left, right in zip(now, before))


class MappedTensor(NamedTuple):
    """The address of a large tensor, and its elements in a file."""

    address: int
    elements: Array

    def find(self, array: Array) -> Array | None:
        """Return the kept elements of an array that lies in the tensor; None if it does not."""
        first, end = np.lib.array_utils.byte_bounds(array)
        if first < self.address or end > self.address + self.elements.nbytes or array.ctypes.data != first:
            return None
        offset = first - self.address
        view = np.ndarray(array.shape, array.dtype, self.elements.view(np.uint8).data, offset, array.strides)
        view.flags.writeable = False
        return view


def map_tensors(torch: Any, tensors: Sequence[Any]) -> dict[int, MappedTensor]:
    """Copy the large tensors to a file and return them by identity; empty if they are small in total.

    Raises LoadError: the folder of temporary files has no space for them
    """
    large = [tensor for tensor in tensors if _is_large(torch, tensor)]
    total = sum(tensor.nbytes for tensor in large)
    if total < MIN_MAPPED_BYTES:
        return {}
    arrays: list[Array] = [tensor.detach().numpy().reshape(-1) for tensor in large]
    try:
        copies = map_arrays(arrays)
    except OSError as error:
        raise LoadError(
            f"{total / 1e6:.0f} MB of weights cannot be kept in {tempfile.gettempdir()} "
            f"({error.strerror}); set TMPDIR to a folder with space"
        ) from error
    return {id(tensor): MappedTensor(tensor.data_ptr(), copy) for tensor, copy in zip(large, copies)}


def _is_large(torch: Any, tensor: Any) -> bool:
    plain = tensor.layout == torch.strided and tensor.device.type == "cpu" and not tensor.is_inference()
    return (
        plain
        and tensor.dtype in (torch.float32, torch.float64)
        and tensor.nbytes >= MIN_FILE_TENSOR_BYTES
        and tensor.is_contiguous()
    )


class _TensorState:
    """The contents of a tensor; they are written back only if changed, because autograd records writes.

    mapped  the file in which they are kept already; otherwise they are copied
    """

    def __init__(self, torch: Any, tensor: Any, mapped: MappedTensor | None) -> None:
        self._torch = torch
        self._tensor = tensor
        self._mapped = mapped
        self._version = self._write_count()
        self._contents = tensor.detach().clone() if mapped is None and self._version is not None else None

    def _write_count(self) -> int | None:
        """Return the number of writes to the tensor; None for a tensor of inference mode, which does not count them."""
        return None if self._tensor.is_inference() else self._tensor._version

    def restore(self) -> None:
        """Write the contents back."""
        if self._write_count() == self._version:
            return
        contents = self._contents
        if self._mapped is not None:
            contents = self._torch.from_numpy(self._mapped.elements.copy()).view(self._tensor.shape)
        with self._torch.no_grad():
            self._tensor.copy_(contents)
        self._version = self._write_count()
