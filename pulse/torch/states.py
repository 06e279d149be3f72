"""States of a module that takes one chunk in each call: caches that it takes and returns, buffers that it assigns."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from pulse.chunks.state_names import looks_like_state
from pulse.errors import InputError, LoadError
from pulse.facts import Array
from pulse.models import Model, TypedModel
from pulse.proof.oracle import typed_oracle
from pulse.proof.tolerance import ExpectedOutputs
from pulse.support.wording import count_of
from pulse.torch.arguments import ModuleCall, name_paths, tensor_leaves
from pulse.torch.difference import first_difference
from pulse.torch.inputs import SampledInputs, draw_inputs, lengths_of
from pulse.torch.module import ModuleOracle, attributes_of, tensors_of, to_array, wrap_module
from pulse.torch.preservation import Restore
from pulse.typed import Variable

BUFFERS = "buffers"
"""The name of the parameter for the buffers that a module assigns."""
COMPARED_CALLS = 3
"""The number of consecutive calls that are compared."""


@dataclass(frozen=True)
class StateLeaf:
    """A tensor that each call takes and passes on to the next.

    parameter  the parameter of ``forward`` that holds it
    input      its name in the model
    output     the index of its next value among all outputs
    initial    its value in the first call
    """

    parameter: str
    input: str
    output: int
    initial: Array


def find_states(
    torch: Any, call: ModuleCall, result: Any, title: str, choices: Mapping[str, Any] | None
) -> list[StateLeaf]:
    """Return the states that a module takes and returns.

    Without ``choices``: each parameter named as one (cache, state, memory …) or holding several tensors, matched with
    the only part of the result of equal dtypes and shapes.

    result   the result of the module for the example
    choices  parameter -> part of the result: a place of a tuple, or a key of a dict
    Raises   InputError: ``choices`` does not fit, or a state changes its shape
    """
    parts = _parts(result)
    first: dict[Any, int] = {}
    for key in parts:
        first[key] = sum(len(tensor_leaves(torch, other)) for other in list(parts.values())[: len(first)])
    leaves: list[StateLeaf] = []
    for name, key in (_guess(torch, call, parts) if choices is None else choices).items():
        if name not in call.arguments:
            listed = ", ".join(call.arguments) or "none"
            raise InputError(f"{title}: states names input {name}; the examples are of {listed}")
        if key not in parts:
            listed = ", ".join(map(repr, parts))
            raise InputError(
                f"{title}: states names {key!r} as the next value of {name}; the result has {listed}"
            )
        before, after = call.tensors_of(torch, name), tensor_leaves(torch, parts[key])
        if len(before) != len(after):
            raise InputError(
                f"{title}: state {name} has {count_of(len(before), 'tensor')}, and its next value, {key!r}, has "
                f"{len(after)}"
            )
        for index, (leaf, (now, later)) in enumerate(zip(before, zip(before.values(), after))):
            _require_same(title, leaf, now, later)
            leaves.append(StateLeaf(name, leaf, first[key] + index, to_array(torch, now)))
    return leaves


def _parts(result: Any) -> dict[Any, Any]:
    if isinstance(result, Mapping):
        return dict(cast("Mapping[Any, Any]", result))
    if isinstance(result, tuple | list):
        return dict(enumerate(cast("Sequence[Any]", result)))
    return {0: result}


def _guess(torch: Any, call: ModuleCall, parts: Mapping[Any, Any]) -> dict[str, Any]:
    def dtypes_and_shapes(value: Any) -> list[tuple[Any, tuple[int, ...]]]:
        return [(leaf.dtype, tuple(leaf.shape)) for leaf in tensor_leaves(torch, value)]

    keys: dict[str, Any] = {}
    for name, value in list(call.arguments.items())[1:]:
        value_types = dtypes_and_shapes(value)
        if not value_types or name in call.axes or not (len(value_types) > 1 or looks_like_state(name)):
            continue
        like = [key for key, part in parts.items() if dtypes_and_shapes(part) == value_types]
        rivals = [
            other for other, argument in call.arguments.items() if dtypes_and_shapes(argument) == value_types
        ]
        if len(like) == len(rivals) == 1:
            keys[name] = like[0]
    return keys


def _require_same(title: str, name: str, before: Any, after: Any) -> None:
    if before.dtype != after.dtype or before.shape != after.shape:
        kind = f"{list(before.shape)} of {before.dtype}", f"{list(after.shape)} of {after.dtype}"
        raise InputError(
            f"{title}: state {name} is {kind[0]} before a call and {kind[1]} after it; a state keeps its type and "
            "shape: give the example a cache of its full size, and let the module drop its oldest frames"
        )


def find_buffers(torch: Any, module: Any, call: ModuleCall, restore: Restore, title: str) -> dict[str, Any]:
    """Return the tensors of the module that a call changes, by their qualified names.

    restore  restores the module's present state
    Raises   InputError: a call changes a value that cannot be kept
    """
    before = {name: value.detach().clone() for name, value in tensors_of(torch, module).items()}
    plain = _plain_values(module)
    positional, named = call.fill(torch, {})
    with torch.no_grad():
        module(*positional, **named)
    after, numbers = tensors_of(torch, module), _plain_values(module)
    buffers: dict[str, Any] = {}
    try:
        for name, value in after.items():
            if name not in before:
                raise InputError(
                    f"{title}: {name} is made by the first call; register a buffer of its full size in the constructor"
                )
            _require_same(title, name, before[name], value)
            if not torch.equal(before[name], value):
                buffers[name] = before[name]
        changed = [name for name in numbers if plain.get(name) != numbers[name]]
        if changed:
            raise InputError(
                f"{title}: {changed[0]} is a Python value that each call changes, from {plain.get(changed[0])!r} to "
                f"{numbers[changed[0]]!r}, and an export keeps the first one; make it a tensor and a buffer"
            )
    finally:
        restore()
    return buffers


def _plain_values(module: Any) -> dict[str, Any]:
    return {name: value for name, value in attributes_of(module) if isinstance(value, bool | int | float)}


def with_buffers(
    torch: Any, module: Any, call: ModuleCall, buffers: Mapping[str, Any]
) -> tuple[Any, ModuleCall]:
    """Return a module that takes its buffers as an input and returns their next values last, and its call."""
    name_of = {name.replace(".", "_"): name for name in buffers}

    def forward(*positional: Any, **named: Any) -> Any:
        arguments = dict(zip(names, positional)) | named
        buffers: dict[str, Any] = arguments.pop(BUFFERS)
        slots = {key: _slot(module, name) for key, name in name_of.items()}
        previous = {key: holder[name] for key, (holder, name) in slots.items()}
        try:
            for key, (holder, name) in slots.items():
                holder[name] = buffers[key].clone()
            result = module(**arguments)
            after = {key: holder[name].clone() for key, (holder, name) in slots.items()}
        finally:
            for key, (holder, name) in slots.items():
                holder[name] = previous[key]
        return result, after

    parameters = list(inspect.signature(module.forward).parameters.values())
    buffer_parameter = inspect.Parameter(BUFFERS, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters_left = [parameter for parameter in parameters if parameter.name in call.arguments]
    names = [*(parameter.name for parameter in parameters_left), BUFFERS]
    plain = [parameter.replace(default=inspect.Parameter.empty) for parameter in parameters_left]
    forward.__signature__ = inspect.Signature([*plain, buffer_parameter])  # type: ignore[attr-defined]
    values = {key: buffers[name].clone() for key, name in name_of.items()}
    wrapper = wrap_module(torch, module, forward)
    return wrapper, replace(call, arguments={**call.arguments, BUFFERS: values})


def _slot(module: Any, name: str) -> tuple[dict[str, Any], str]:
    """Return the dict that holds a tensor of the module, and its key there."""
    path, _, last = name.rpartition(".")
    owner: Any = module.get_submodule(path)
    buffers: dict[str, Any] = owner._buffers
    attributes = cast("dict[str, Any]", vars(owner))
    return (buffers if last in buffers else attributes), last


def name_results(torch: Any, result: Any, states: Sequence[StateLeaf]) -> list[str]:
    """Return names of all outputs: keys of a dict or ``output``, with their places; ``…_next`` for states."""
    leaves, _ = torch.utils._pytree.tree_flatten_with_path(result)
    paths = [path for path, leaf in leaves if torch.is_tensor(leaf)]
    names = [f"output_{name}" if name else "output" for name in name_paths(paths)]
    for state in states:
        names[state.output] = f"{state.input}_next"
    return names


def keep_states(model: Model, states: Sequence[StateLeaf]) -> Model:
    """Return the model of a chunk with its states as variables: they begin with the example's values."""
    inputs, outputs = model.inputs, model.graph.output_names
    variables = tuple(
        Variable(state.input, outputs[state.output], state.initial, "a state of the module")
        for state in states
        if state.input in inputs and outputs[state.output] not in inputs
    )
    return replace(model, variables=(*model.variables, *variables))


def describe_states(model: Model) -> list[str]:
    """Return the text that tells the user which states were found."""
    listed = ", ".join(variable.input for variable in model.variables)
    return [f"takes one chunk in each call and keeps {listed}: a model of chunks"] if listed else []


def require_equal_calls(
    title: str,
    oracle: ModuleOracle,
    typed: TypedModel,
    samples: Mapping[str, SampledInputs],
    variables: Sequence[Variable],
) -> None:
    """Compare module and model call by call, each with the states that the module returned before.

    Raises LoadError: they differ.
    """
    states: dict[str, Array] = {
        variable.input: variable.initial for variable in variables if variable.initial is not None
    }
    input_of_output = {variable.output: variable.input for variable in variables}
    rng = np.random.default_rng(0)
    lengths = lengths_of(samples)
    for call in range(COMPARED_CALLS):
        feeds = {**draw_inputs(samples, lengths, rng), **states}
        feeds = {
            name: value if name in states else rng.permutation(value.ravel()).reshape(value.shape)
            for name, value in feeds.items()
        }
        expected = oracle(feeds, restore=call == 0)
        gap = first_difference(expected, ExpectedOutputs(typed_oracle(typed), feeds), {})
        if gap is not None:
            raise LoadError(
                f"{title}: the exported model differs from the module in call {call + 1}, after the same states: "
                f"{gap}; what the module keeps besides tensors that are returned or buffers, such as numbers and "
                "lists of Python, is not in the model: make each a buffer of constant shape, or an input and an output"
            )
        states = {input_of_output[name]: value for name, value in expected.items() if name in input_of_output}
