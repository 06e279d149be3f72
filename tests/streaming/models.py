"""Small models built by hand, and the available backends."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from pulse.dim import SymbolScope, TDim
from pulse.facts import Array, TypedFact
from pulse.graph import OutletId
from pulse.models import TypedModel
from pulse.ops.concat import Concat
from pulse.ops.conv import Conv, no_pads
from pulse.ops.elementwise import Elementwise
from pulse.ops.shape import AddAxis, RemoveAxis, Transpose
from pulse.ops.slice import Slice
from pulse.ops.source import Source
from pulse.program.compiler import compile_model
from pulse.program.program import Program
from pulse.typed import TypedGraph, add_constant
from pulse.wiring import wire
from tests.backends import BACKENDS

both_backends = pytest.mark.parametrize("backend", BACKENDS)


class TypedBuilder:
    """A typed model that grows call by call."""

    def __init__(self) -> None:
        self.graph, self.scope = TypedGraph(), SymbolScope()

    def source(self, name: str, text: str) -> OutletId:
        fact = TypedFact.parse(text, self.scope)
        (outlet,) = self.graph.add(name, Source(fact), (), [fact])
        self.graph.inputs.append(outlet)
        return outlet

    def constant(self, name: str, value: Array | list[list[float]]) -> OutletId:
        return add_constant(self.graph, name, np.asarray(value, np.float32))

    def wire(self, name: str, op: Any, *inputs: OutletId) -> OutletId:
        return wire(self.graph, name, op, inputs)[0]

    def finish(self, **outputs: OutletId) -> TypedModel:
        self.graph.set_outputs(list(outputs.values()), list(outputs))
        return TypedModel(self.graph, self.scope, "builder")


def pads(before: int, after: int) -> tuple[tuple[TDim, TDim]]:
    return ((TDim.of(before), TDim.of(after)),)


def filter_model() -> TypedModel:
    """x [1, T] -> y [1, T], a filter that looks 2 ahead and 2 back, and loud [1, T], twice the input."""
    builder = TypedBuilder()
    x = builder.source("x", "1,T,f32")
    deep = builder.wire("deep", AddAxis(1), x)
    weights = builder.constant("w", np.arange(1, 6).reshape(1, 1, 5) / 7)
    y = builder.wire("conv", Conv((1,), (1,), pads(2, 2)), deep, weights)
    loud = builder.wire("loud", Elementwise("mul"), x, builder.constant("two", [[2.0]]))
    return builder.finish(y=builder.wire("flat", RemoveAxis(1), y), loud=loud)


def channel_filter_model() -> TypedModel:
    """x [1, 16, T] -> y [1, 16, T], a filter for each channel; its kernels compile in a second."""
    builder = TypedBuilder()
    weights = builder.constant("w", np.arange(1, 81).reshape(16, 1, 5) / 7)
    x = builder.source("x", "1,16,T,f32")
    return builder.finish(y=builder.wire("y", Conv((1,), (1,), pads(2, 2), group=16), x, weights))


def stereo_model(text: str) -> TypedModel:
    """x -> y, both of this shape: two channels, the second one first."""
    builder = TypedBuilder()
    x = builder.source("x", text)
    axis = text.split(",").index("2")
    first, second = (
        builder.wire(name, Slice(axis, TDim.of(index), TDim.of(index + 1)), x)
        for index, name in enumerate(("first", "second"))
    )
    return builder.finish(y=builder.wire("y", Concat(axis), second, first))


def decimating_model() -> TypedModel:
    """x [1, T, 2] -> same, three times x, and third [1, 1, T/3], sums of three pairs."""
    builder = TypedBuilder()
    x = builder.source("x", "1,T,2,f32")
    turned = builder.wire("turned", Transpose((0, 2, 1)), x)
    weights = builder.constant("w", np.ones((1, 2, 3)))
    y = builder.wire("conv", Conv((3,), (1,), no_pads(1)), turned, weights)
    return builder.finish(
        same=builder.wire("same", Elementwise("mul"), x, builder.constant("three", [[[3.0]]])), third=y
    )


def two_rate_model() -> TypedModel:
    """fast [1, 1, 4*T] and slow [1, 1, T] -> y [1, 1, T], their sum, times a gain that does not stream."""
    builder = TypedBuilder()
    fast, slow = builder.source("fast", "1,1,4*T,f32"), builder.source("slow", "1,1,T,f32")
    gain = builder.source("gain", "1,1,1,f32")
    weights = builder.constant("w", np.ones((1, 1, 4)))
    down = builder.wire("down", Conv((4,), (1,), no_pads(1)), fast, weights)
    total = builder.wire("total", Elementwise("add"), down, slow)
    return builder.finish(y=builder.wire("y", Elementwise("mul"), total, gain))


def ending_model() -> TypedModel:
    """x [1, T], T >= 3 -> y [1, T], one more, and last [1, 3], its last frames."""
    builder = TypedBuilder()
    x = builder.source("x", "1,T,f32")
    frames = TDim.of(builder.scope.symbol("T"))
    builder.scope.assume("T >= 3")
    y = builder.wire("y", Elementwise("add"), x, builder.constant("one", [[1.0]]))
    return builder.finish(y=y, last=builder.wire("last", Slice(1, frames - 3, frames), y))


def two_input_model(length: str) -> TypedModel:
    """x [1, T] and half [1, length] -> y and z, one more than each."""
    builder = TypedBuilder()
    x, half = builder.source("x", "1,T,f32"), builder.source("half", f"1,{length},f32")
    unit = builder.constant("one", [[1.0]])
    y, z = builder.wire("y", Elementwise("add"), x, unit), builder.wire("z", Elementwise("add"), half, unit)
    return builder.finish(y=y, z=z)


def copy_model() -> TypedModel:
    """x [1, T] -> y [1, T], the same."""
    builder = TypedBuilder()
    x = builder.source("x", "1,T,f32")
    return builder.finish(y=builder.wire("y", Elementwise("mul"), x, builder.constant("one", [[1.0]])))


def limited_model(frames: int = 1000) -> TypedModel:
    """x [1, T] -> y [1, T], the same; T is limited to this many frames."""
    builder = TypedBuilder()
    x = builder.source("x", "1,T,f32")
    builder.scope.assume(f"T <= {frames}")
    return builder.finish(y=builder.wire("y", Elementwise("mul"), x, builder.constant("one", [[1.0]])))


def program(model: TypedModel, pulse: int | None = None, backend: str = "numpy") -> Program:
    return compile_model(model.pulsify(None, pulse), backend)


@cache
def cached_program(
    make: Callable[[], TypedModel] = copy_model, pulse_frames: int = 160, backend: str = "numba"
) -> Program:
    """The program of a small model, made once."""
    return program(make(), pulse_frames, backend)
