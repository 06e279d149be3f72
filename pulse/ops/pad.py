"""Padding of any axes."""

from collections.abc import Sequence

import numpy as np

from pulse.dim import TDim, dim_max
from pulse.errors import FactError
from pulse.facts import Array, TypedFact
from pulse.ops.conv import Pads, pads_text, without_pad
from pulse.ops.dims import dims_value, require_at_least
from pulse.ops.op import Ends, Env, Op, PadMode, Pointwise, Relation, Window
from pulse.support.record import record
from pulse.support.wording import count_of


@record
class Pad(Op):
    """Add frames before and after each axis.

    Input    x [X...]
    Output   y [before + X + after ...]; new frames are ``fill``, the nearest frame (edge), or the mirrored ones
             (reflect, which does not repeat the frame at the border, and symmetric, which does)
    Stream   ends on the stream axis, pointwise on the others
    Raises   FactError: too short to be mirrored; if that depends on the length it becomes an assumption
    Source   ONNX Pad-21
    """

    pads: Pads
    mode: PadMode = "constant"
    fill: float = 0.0
    copies = True

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        if len(self.pads) != x.rank:
            raise FactError(f"{count_of(len(self.pads), 'pair')} of pads for rank {x.rank}")
        for axis, (dim, (before, after)) in enumerate(zip(x.shape, self.pads)):
            if (before, after) == (0, 0):
                continue
            mirrored_frames = dim_max(before, after) + (self.mode == "reflect")
            min_size = {"constant": TDim.of(0), "edge": TDim.of(1)}.get(self.mode, mirrored_frames)
            require_at_least(dim, min_size, f"{self.mode} padding {before}:{after} of axis {axis}")
        return [TypedFact(x.dtype, tuple(b + dim + a for dim, (b, a) in zip(x.shape, self.pads)))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        amounts = [dims_value(pair, env) for pair in self.pads]
        if self.mode == "constant":
            return [np.pad(x, amounts, constant_values=self.fill)]
        return [np.pad(x, amounts, mode=self.mode)]

    def identity_input(self, inputs: Sequence[TypedFact]) -> int | None:
        return 0 if all(pair == (0, 0) for pair in self.pads) else None

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        assert axis is not None
        before, after = self.pads[axis]
        ends = Ends(axis, before, after, self.mode, self.fill)
        others = Pad(without_pad(self.pads, axis), self.mode, self.fill)
        if all(pair == (0, 0) for pair in others.pads):
            return ends
        if ends.changes_nothing:
            return Pointwise((axis,))
        return Window(axis, ends=ends, op=others)

    def detail(self) -> str:
        return f"{pads_text(self.pads)} {self.mode}" + (f" {self.fill:g}" if self.mode == "constant" else "")
