"""A module as an oracle: it runs on arrays, and its state is restored after each run."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from typing import Any, cast

import numpy as np

from pulse.errors import InputError, LoadError
from pulse.facts import Array
from pulse.support.record import record
from pulse.support.wording import spell
from pulse.torch.advice import plain_message
from pulse.torch.arguments import ModuleCall, tensor_leaves
from pulse.torch.inputs import SampledInputs
from pulse.torch.preservation import Restore, refill_dict


@contextlib.contextmanager
def use_dtype(torch: Any, module: Any, dtype: Any) -> Generator[None]:
    """Within this context, the module's floats and new tensors have another dtype, f32 or f64; None: as they are.

    In f64, parameters are converted one by one when used: all at once take twice the memory of the module.
    """
    if dtype is None:
        yield
        return
    parameters = [] if dtype == torch.float64 else [(tensor, tensor.data) for tensor in module.parameters()]
    buffers = [(submodule._buffers, dict(submodule._buffers)) for submodule in module.modules()]
    default = torch.get_default_dtype()
    try:
        for parameter, data in parameters:
            parameter.data = data.to(dtype) if data.is_floating_point() else data
        for now, before in buffers:
            now.update({name: _cast_floats(torch, value, dtype) for name, value in before.items()})
        torch.set_default_dtype(dtype)
        with contextlib.nullcontext() if parameters else wide_parameters(torch, dtype):
            yield
    finally:
        torch.set_default_dtype(default)
        for parameter, data in parameters:
            parameter.data = data
        for now, before in buffers:
            refill_dict(now, before)


def _cast_floats(torch: Any, value: Any, dtype: Any) -> Any:
    return value.to(dtype) if torch.is_tensor(value) and value.is_floating_point() else value


def wide_parameters(torch: Any, dtype: Any) -> Any:
    """Return a context in which all functions and attributes of PyTorch get float parameters in another dtype."""
    tree = torch.utils._pytree

    def widen(value: Any) -> Any:
        if isinstance(value, torch.nn.Parameter) and value.is_floating_point():
            return value.detach().to(dtype)
        return value

    class Widen(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            args, named = tree.tree_map(widen, (args, kwargs or {}))
            return function(*args, **named)

    return Widen()


def float_types(torch: Any, module: Any, call: ModuleCall) -> set[Any]:
    """Return the dtypes of the module's float parameters and inputs."""
    leaves = [*module.parameters(), *filter(torch.is_tensor, call.leaves(torch).values())]
    return {tensor.dtype for tensor in leaves if tensor.is_floating_point()}


@record(eq=False)
class ModuleOracle:
    """Arrays by the names of the exported model's inputs to arrays by the names of its outputs.

    Each run begins with the state that ``restore`` sets, and computes in ``dtype`` (None: as the module is). Complex
    numbers are pairs on a last axis, as in the exported model.
    Raises   InputError: the module raises
    """

    torch: Any
    module: Any
    call: ModuleCall
    restore: Restore
    outputs: Sequence[str]
    dtype: Any = None

    def __call__(self, feeds: dict[str, Array], restore: bool = True) -> dict[str, Array]:
        """Run the module and return its outputs. ``restore``: False continues with the state of the last run."""
        if restore:
            self.restore()
        try:
            with self.torch.no_grad(), use_dtype(self.torch, self.module, self.dtype):
                positional, named = self.call.fill(self.torch, self._values(feeds))
                result = self.module(*positional, **named)
        except Exception as error:
            raise InputError(f"{type(error).__name__}: {plain_message(error)}") from error
        arrays = [to_array(self.torch, leaf) for leaf in tensor_leaves(self.torch, result)]
        names = [*self.outputs, *(f"output {index}" for index in range(len(self.outputs), len(arrays)))]
        return dict(zip(names, arrays))

    def _values(self, feeds: dict[str, Array]) -> dict[str, Any]:
        """Return the tensors that replace the float tensors and the fed ones."""
        leaves = {
            name: leaf for name, leaf in self.call.leaves(self.torch).items() if self.torch.is_tensor(leaf)
        }
        values = {
            name: self._tensor(feeds[name], leaf) if name in feeds else leaf.detach().clone()
            for name, leaf in leaves.items()
        }
        if self.dtype is None:
            return values
        return {
            name: value.to(self.dtype) if value.is_floating_point() else value
            for name, value in values.items()
        }

    def _tensor(self, array: Array, example: Any) -> Any:
        tensor = self.torch.from_numpy(array.copy())
        if example.is_complex():
            tensor = self.torch.view_as_complex(tensor)
        return tensor.to(example.device, example.dtype)


def method_module(torch: Any, module: Any, method: str) -> Any:
    """Return a module whose ``forward`` is a method of another one. Raises InputError: it does not have the method."""
    function = getattr(module, method, None)
    if not callable(function):
        raise InputError(
            f"{type(module).__name__} has no method {method!r}; omit {spell('method')} for forward"
        )
    return wrap_module(torch, module, function)


def wrap_module(torch: Any, module: Any, forward: Callable[..., Any]) -> Any:
    """Return a module that contains another one and has its own ``forward``."""
    wrapper = torch.nn.Module()
    wrapper.module, wrapper.forward = module, forward
    wrapper.train(module.training)
    return wrapper


def with_plain_results(torch: Any, module: Any, result: Any) -> Any:
    """Return a module whose results are dicts where those of another one are dataclasses, which have the same names.

    result  what the module returns for the example: without dataclasses, the module itself is returned
    """
    tree = torch.utils._pytree

    def is_record(value: Any) -> bool:
        return dataclasses.is_dataclass(value) and not isinstance(value, type)

    def replace(value: Any) -> Any:
        """Replace a leaf of PyTorch's trees: classes that are known to PyTorch are none."""
        if not is_record(value):
            return value
        return {
            field.name: tree.tree_map(replace, getattr(value, field.name))
            for field in dataclasses.fields(value)
        }

    if not any(map(is_record, tree.tree_leaves(result))):
        return module

    @functools.wraps(module.forward)
    def forward(*positional: Any, **named: Any) -> Any:
        return tree.tree_map(replace, module(*positional, **named))

    return wrap_module(torch, module, forward)


def attributes_of(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield the buffers and attributes of a module and its submodules, with their qualified names."""
    for prefix, submodule in module.named_modules():
        for there in cast("list[dict[str, Any]]", [submodule._buffers, vars(submodule)]):
            yield from ((f"{prefix}.{name}" if prefix else name, value) for name, value in there.items())


def tensors_of(torch: Any, module: Any) -> dict[str, Any]:
    """Return the buffers and tensor attributes of a module and its submodules, by their qualified names."""
    return {
        name: value
        for name, value in attributes_of(module)
        if torch.is_tensor(value) and not isinstance(value, torch.nn.Parameter)
    }


def example_tensors(torch: Any, call: ModuleCall, omitted: Collection[str] = ()) -> dict[str, Array]:
    """Return the examples that are tensors, by the names of ``forward``'s parameters, without those in ``omitted``."""
    return {
        name: to_array(torch, value)
        for name, value in call.arguments.items()
        if torch.is_tensor(value) and name not in omitted
    }


def samples(torch: Any, call: ModuleCall, inputs: Sequence[str], title: str) -> dict[str, SampledInputs]:
    """Return the example of each input of the exported model.

    Raises LoadError: the exported model has inputs that are not of the example
    """
    leaves = call.leaves(torch)
    unknown = [name for name in inputs if name not in leaves]
    if unknown:
        raise LoadError(
            f"{title}: the exported model has inputs that are not of the example ({', '.join(unknown)}), so the two "
            "cannot be compared; pass each tensor as a parameter of forward, or compare=False"
        )
    return {name: SampledInputs(to_array(torch, leaves[name]), call.axes.get(name, {})) for name in inputs}


def to_array(torch: Any, value: Any) -> Array:
    """Return a tensor as an array, complex numbers as pairs on a last axis."""
    if not torch.is_tensor(value):
        return np.asarray(value)
    plain_value = value.detach().resolve_conj().resolve_neg()
    return (torch.view_as_real(plain_value) if value.is_complex() else plain_value).cpu().numpy()
