"""Small typed models built by hand, one step a line."""

from collections.abc import Sequence

import numpy as np

from pulse.dim import SymbolScope, TDim
from pulse.facts import Array, TypedFact
from pulse.graph import Graph, OutletId
from pulse.models import TypedModel
from pulse.ops.concat import Concat
from pulse.ops.conv import Conv, ConvTranspose, Pads, no_pads
from pulse.ops.elementwise import Elementwise
from pulse.ops.op import Op, PadMode
from pulse.ops.pad import Pad
from pulse.ops.pool import Pool, PoolKind
from pulse.ops.slice import Slice
from pulse.ops.source import Source
from pulse.typed import TypedGraph, add_constant
from pulse.wiring import wire

Pair = tuple[int, int]
NONE: Pair = (0, 0)


def pads_of(*pairs: Pair) -> Pads:
    """Make pads of integers."""
    return tuple((TDim.of(before), TDim.of(after)) for before, after in pairs)


class ModelBuilder:
    """A model under construction; wires are [1, C, frames] unless an op makes them something else.

    ``ModelBuilder(x="1,2,T")`` has the input ``x``, whose wire is ``builder["x"]``. Weights are random and never 0.
    """

    def __init__(self, seed: int = 0, **inputs: str) -> None:
        self.rng = np.random.default_rng(seed)
        self.scope = SymbolScope()
        self.graph: TypedGraph = Graph()
        for name, text in inputs.items():
            fact = TypedFact.parse(text, self.scope)
            for symbol in {symbol for dim in fact.shape for symbol in dim.symbols}:
                self.scope.assume(f"{symbol.name} >= 0")
            self.graph.inputs += self.graph.add(name, Source(fact), (), [fact])

    def __getitem__(self, name: str) -> OutletId:
        return self.graph.find(name)

    def dim(self, text: str) -> TDim:
        return self.scope.parse(text)

    def length(self, x: OutletId, axis: int = 2) -> TDim:
        return self.graph.fact(x).shape[axis]

    def channels(self, x: OutletId) -> int:
        return int(self.graph.fact(x).shape[1])

    def add(self, name: str, op: Op, *inputs: OutletId) -> OutletId:
        return wire(self.graph, name, op, inputs)[0]

    def constant(self, value: Array, name: str = "c") -> OutletId:
        return add_constant(self.graph, name, value)

    def taps(self, *shape: int) -> Array:
        """Random numbers away from 0."""
        signs = self.rng.choice(np.array([-1.0, 1.0]), shape)
        return (signs * self.rng.uniform(0.5, 1.0, shape)).astype(np.float32)

    def conv(
        self,
        x: OutletId,
        kernel: int,
        pads: Pair = NONE,
        stride: int = 1,
        dilation: int = 1,
        out: int | None = None,
        name: str = "conv",
        bias: bool = True,
    ) -> OutletId:
        channels = self.channels(x)
        out = channels if out is None else out
        w = self.constant(self.taps(out, channels, kernel) / np.float32(channels * kernel), f"{name}.w")
        more = [self.constant(self.taps(out), f"{name}.b")] if bias else []
        return self.add(name, Conv((stride,), (dilation,), pads_of(pads)), x, w, *more)

    def deconv(
        self,
        x: OutletId,
        kernel: int,
        stride: int = 1,
        pads: Pair = NONE,
        extra: int = 0,
        dilation: int = 1,
        name: str = "deconv",
    ) -> OutletId:
        channels = self.channels(x)
        w = self.constant(self.taps(channels, channels, kernel) / np.float32(channels * kernel), f"{name}.w")
        b = self.constant(self.taps(channels), f"{name}.b")
        return self.add(name, ConvTranspose((stride,), (dilation,), pads_of(pads), (extra,)), x, w, b)

    def pool(
        self,
        x: OutletId,
        kind: PoolKind,
        kernel: int,
        pads: Pair = NONE,
        stride: int = 1,
        count: bool = False,
        name: str = "pool",
    ) -> OutletId:
        return self.add(name, Pool(kind, (kernel,), (stride,), (1,), pads_of(pads), count), x)

    def pad(
        self, x: OutletId, pads: Pair, mode: PadMode = "constant", fill: float = 0.0, name: str = "pad"
    ) -> OutletId:
        return self.add(name, Pad((*no_pads(2), *pads_of(pads)), mode, fill), x)

    def cut(
        self, x: OutletId, start: int, step: int = 1, end: TDim | None = None, name: str = "cut"
    ) -> OutletId:
        return self.add(name, Slice(2, TDim.of(start), self.length(x) if end is None else end, step), x)

    def ends(self, x: OutletId, head: int, tail: int, name: str = "ends") -> OutletId:
        """Constants joined to both ends."""
        parts = [self.constant(self.taps(1, self.channels(x), n)) for n in (head, tail)]
        return self.add(name, Concat(2), parts[0], x, parts[1])

    def apply(self, kind: str, *inputs: OutletId, name: str | None = None) -> OutletId:
        """Add an elementwise function."""
        return self.add(name or kind, Elementwise(kind), *inputs)

    def model(self, *outputs: OutletId, names: Sequence[str] | None = None) -> TypedModel:
        self.graph.set_outputs(outputs, names)
        return TypedModel(self.graph, self.scope, "builder")
