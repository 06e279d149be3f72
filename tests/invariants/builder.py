"""A random model under construction, and the choices that its steps make."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.random import Generator

from pulse.dim import TDim
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.op import Op
from pulse.typed import TypedGraph, add_constant
from pulse.wiring import wire

Element = TypeVar("Element")

MAX_CHANNELS = 6


@dataclass
class Builder:
    """A model under construction: ``open`` holds the wires [1, C, L] that a step may read."""

    rng: Generator
    graph: TypedGraph
    symbol: TDim
    open: list[OutletId]

    def chance(self, probability: float = 0.5) -> bool:
        return bool(self.rng.random() < probability)

    def one_of(self, choices: Sequence[Element]) -> Element:
        return choices[int(self.rng.integers(len(choices)))]

    def small(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def pick(self) -> OutletId:
        """A wire to read, rather a late one."""
        back = min(int(self.rng.geometric(0.5)), len(self.open))
        return self.open[-back]

    def add(self, op: Op, *inputs: OutletId) -> OutletId:
        return wire(self.graph, op.name.lower(), op, inputs)[0]

    def keep(self, outlet: OutletId) -> None:
        self.open.append(outlet)

    def constant(self, value: Array) -> OutletId:
        return add_constant(self.graph, "c", value)

    def channels(self, outlet: OutletId) -> int:
        return int(self.graph.fact(outlet).shape[1])

    def length(self, outlet: OutletId) -> TDim:
        return self.graph.fact(outlet).shape[2]

    def alike(self, outlet: OutletId) -> list[OutletId]:
        """The open wires that are as long."""
        return [other for other in self.open if self.length(other) == self.length(outlet)]

    def rate(self, outlet: OutletId) -> float:
        return float(self.length(outlet).slope(next(iter(self.symbol.symbols))))

    def numbers(self, shape: tuple[int, ...], scale: float = 1.0) -> Array:
        """Random numbers, or all 0, or all 1."""
        fill = self.rng.random()
        if fill < 0.15:
            return np.zeros(shape, np.float32)
        if fill < 0.3:
            return np.ones(shape, np.float32)
        return (self.rng.standard_normal(shape) * scale).astype(np.float32)
