"""Calls of a module by itself, without streaming: its inputs, its outputs, and their differences from a stream's."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from bench.torch_codes.published_model import ModuleCase
from pulse.facts import Array
from pulse.models import TypedModel

Output = TypeVar("Output")


def draw_inputs(typed: TypedModel, case: ModuleCase, times: int) -> dict[str, Array]:
    """Return inputs ``times`` as long as the example, of its frames in random order."""
    rng = np.random.default_rng(0)
    leaves = list(_arrays(case.example))
    if len(leaves) > len(typed.inputs):
        leaves = [leaf for leaf in leaves if not _may_be_length(leaf)]
    feeds: dict[str, Array] = {}
    for (name, fact), value in zip(typed.inputs.items(), leaves, strict=True):
        for axis, dim in enumerate(fact.shape):
            if dim.symbols:
                frames = value.shape[axis]
                value = np.take(value, np.random.default_rng(1).integers(0, frames, times * frames), axis)
        if value.dtype.kind == "f" and (value == value.flat[0]).all():
            value = rng.standard_normal(value.shape).astype(value.dtype)
        feeds[name] = value
    return feeds


def _may_be_length(leaf: Any) -> bool:
    """Return whether an array or tensor is one integer: a length, which ``from_torch`` computes by itself."""
    return math.prod(leaf.shape) == 1 and "int" in str(leaf.dtype)


def _arrays(example: Any) -> list[Array]:
    import torch  # pyright: ignore[reportMissingImports]

    return [leaf.numpy() for leaf in torch.utils._pytree.tree_leaves(example) if torch.is_tensor(leaf)]


def module_outputs(case: ModuleCase, feeds: Mapping[str, Array]) -> list[Array]:
    """Return the module's outputs for these inputs, without streaming; without lengths if the model computes them."""
    import torch  # pyright: ignore[reportMissingImports]

    follows = len(feeds) < len(_arrays(case.example))
    with torch.no_grad():
        result = call_module(case, [torch.from_numpy(value) for value in feeds.values()])
    arrays = [
        (torch.view_as_real(leaf.resolve_conj()) if leaf.is_complex() else leaf).numpy()
        for leaf in torch.utils._pytree.tree_leaves(result)
        if torch.is_tensor(leaf) and not (follows and _may_be_length(leaf))
    ]
    return streamed_outputs(case, arrays)


def streamed_outputs(case: ModuleCase, every: list[Output]) -> list[Output]:
    """Return the outputs that are streamed."""
    return every if case.outputs is None else [every[index] for index in case.outputs]


def call_module(case: ModuleCase, tensors: Sequence[Any]) -> Any:
    """Return the module's result for other tensors than the example's; a length that is not given follows them."""
    import torch  # pyright: ignore[reportMissingImports]

    tree = torch.utils._pytree
    leaves, structure = tree.tree_flatten(case.example)
    own_tensors = [leaf for leaf in leaves if torch.is_tensor(leaf)]
    times, tensors_left = tensors[0].numel() / own_tensors[0].numel(), iter(tensors)

    def fill(leaf: Any) -> Any:
        if not torch.is_tensor(leaf):
            return leaf
        if len(own_tensors) > len(tensors) and _may_be_length(leaf):
            return (leaf * times).round().to(leaf.dtype)
        return next(tensors_left)

    filled = tree.tree_unflatten([fill(leaf) for leaf in leaves], structure)
    call = getattr(case.module, case.options.get("method", "forward"))
    if isinstance(filled, dict):
        result = call(**filled)
    else:
        result = call(*filled) if isinstance(filled, tuple | list) else call(filled)
    return dict(result) if isinstance(result, Mapping) else result


def difference(expected: list[Array], streams: Mapping[str, Array]) -> float:
    """Return the largest difference of all outputs, each relative to its largest value; inf if shapes differ."""
    worst = 0.0
    for value, streamed in zip(expected, streams.values(), strict=True):
        if value.shape != streamed.shape:
            return float("inf")
        if value.size:
            exact = value.astype(np.float64)
            worst = max(worst, float(np.abs(streamed - exact).max() / max(np.abs(exact).max(), 1e-9)))
    return worst
