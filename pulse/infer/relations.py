"""Relations between the wires of one node: what a rule may say. Each works in every direction that it determines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pulse.dim import TDim
from pulse.errors import FactError
from pulse.facts import DType
from pulse.graph import OutletId
from pulse.infer.board import Axis, Board
from pulse.infer.equation import quotient
from pulse.infer.fact import Dims, InferenceFact
from pulse.ops.shape import single_quotient, volume


class Relation(Protocol):
    """Something that holds between wires."""

    def apply(self, board: Board) -> None:
        """Refine the facts of the wires by each other. Raises FactError where they contradict it."""
        ...


@dataclass(frozen=True)
class SameType:
    """The wires have one type."""

    wires: Sequence[OutletId]

    def apply(self, board: Board) -> None:
        for dtype in [board.fact(wire).dtype for wire in self.wires]:
            if dtype is not None:
                HasType(self.wires, dtype).apply(board)


@dataclass(frozen=True)
class HasType:
    """The wires have this type."""

    wires: Sequence[OutletId]
    dtype: DType

    def apply(self, board: Board) -> None:
        for wire in self.wires:
            board.refine(wire, InferenceFact(self.dtype))


@dataclass(frozen=True)
class SameShape:
    """The wires have one shape."""

    wires: Sequence[OutletId]

    def apply(self, board: Board) -> None:
        for fact in [board.fact(wire) for wire in self.wires]:
            for wire in self.wires:
                board.refine(wire, InferenceFact(shape=fact.shape, open=fact.open))


@dataclass(frozen=True)
class HasRank:
    """The wires have this many axes."""

    wires: Sequence[OutletId]
    rank: int

    def apply(self, board: Board) -> None:
        if self.rank < 0:
            raise FactError(f"a wire would have {self.rank} axes")
        for wire in self.wires:
            board.refine(wire, InferenceFact(shape=(None,) * self.rank))


@dataclass(frozen=True)
class SameRank:
    """The wires have as many axes as each other."""

    wires: Sequence[OutletId]

    def apply(self, board: Board) -> None:
        for rank in [board.rank(wire) for wire in self.wires]:
            if rank is not None:
                HasRank(self.wires, rank).apply(board)


@dataclass(frozen=True)
class RankSum:
    """``total`` has as many axes as the parts together, and ``extra`` more."""

    total: OutletId
    parts: Sequence[OutletId]
    extra: int = 0

    def apply(self, board: Board) -> None:
        total, ranks = board.rank(self.total), [board.rank(part) for part in self.parts]
        known = sum(rank for rank in ranks if rank is not None) + self.extra
        if None not in ranks:
            HasRank([self.total], known).apply(board)
        elif ranks.count(None) == 1 and total is not None:
            HasRank([self.parts[ranks.index(None)]], total - known).apply(board)


@dataclass(frozen=True)
class SameSize:
    """The axes have one size."""

    axes: Sequence[Axis]

    def apply(self, board: Board) -> None:
        for size in [board.size(axis) for axis in self.axes]:
            if size is not None:
                for axis in self.axes:
                    board.give(axis, size)


@dataclass(frozen=True)
class HasSize:
    """The axes have this size."""

    axes: Sequence[Axis]
    size: TDim

    def apply(self, board: Board) -> None:
        for axis in self.axes:
            board.give(axis, self.size)


@dataclass(frozen=True)
class HasSizes:
    """The shape of a wire; sizes that are not known are None."""

    wire: OutletId
    sizes: Dims

    def apply(self, board: Board) -> None:
        board.refine(self.wire, InferenceFact(shape=self.sizes))


@dataclass(frozen=True)
class Scaled:
    """``total`` is ``factor`` times ``part``."""

    total: Axis
    part: Axis
    factor: int

    def apply(self, board: Board) -> None:
        total, part = board.size(self.total), board.size(self.part)
        if part is not None:
            board.give(self.total, part * self.factor)
        elif total is not None:
            found = quotient(total, self.factor)
            if found is not None:
                board.give(self.part, found)


@dataclass(frozen=True)
class SizeSum:
    """The size of ``total`` is that of the parts together."""

    total: Axis
    parts: Sequence[Axis]

    def apply(self, board: Board) -> None:
        total, sizes = board.size(self.total), [board.size(part) for part in self.parts]
        known = sum((size for size in sizes if size is not None), TDim.of(0))
        if None not in sizes:
            board.give(self.total, known)
        elif sizes.count(None) == 1 and total is not None:
            board.give(self.parts[sizes.index(None)], total - known)


@dataclass(frozen=True)
class SameCount:
    """The product of some sizes is the product of others."""

    left: Sequence[Axis]
    right: Sequence[Axis]

    def apply(self, board: Board) -> None:
        for here, there in ((self.left, self.right), (self.right, self.left)):
            holes = [axis for axis in here if board.size(axis) is None]
            known = [size for axis in here if (size := board.size(axis)) is not None]
            whole = [size for axis in there if (size := board.size(axis)) is not None]
            if len(holes) == 1 and len(whole) == len(there):
                found = _left_over(whole, known)
                if found is not None:
                    board.give(holes[0], found)


def _left_over(whole: Sequence[TDim], known: Sequence[TDim]) -> TDim | None:
    """What the product of ``known`` leaves of that of ``whole``, where it is the same part for every length."""
    over, under = list(whole), list(known)
    for size in known:
        if size in over:
            over.remove(size)
            under.remove(size)
    part = volume(under)
    return None if part == 0 or 0 in known else single_quotient(volume(over), part)


@dataclass(frozen=True)
class Broadcast:
    """``out`` is the shape that broadcasting gives to the inputs, which are lined up at their last axes.

    end   how many of the last axes are left out, on every wire
    """

    out: OutletId
    inputs: Sequence[OutletId]
    end: int = 0

    def apply(self, board: Board) -> None:
        self._ranks(board)
        rank = board.rank(self.out)
        ranks = {wire: board.rank(wire) for wire in self.inputs}
        if rank is None:
            return
        for place in range(-rank, -self.end):
            there = [Axis(wire, place) for wire, axes in ranks.items() if axes is not None and -place <= axes]
            if None in ranks.values():
                self._whole(board, Axis(self.out, place), there)
            else:
                self._axis(board, Axis(self.out, place), there)

    def _ranks(self, board: Board) -> None:
        ranks = [board.rank(wire) for wire in self.inputs]
        known = [rank for rank in ranks if rank is not None]
        out = board.rank(self.out)
        if len(known) == len(ranks):
            HasRank([self.out], max(known)).apply(board)
        elif out is not None and ranks.count(None) == 1 and all(rank < out for rank in known):
            HasRank([self.inputs[ranks.index(None)]], out).apply(board)

    def _whole(self, board: Board, out: Axis, inputs: Sequence[Axis]) -> None:
        """Where the rank of some input is not known: a size other than 1 is that of the output."""
        large = [size for axis in inputs if (size := board.size(axis)) is not None and size != 1]
        for size in large:
            board.give(out, size)

    def _axis(self, board: Board, out: Axis, inputs: Sequence[Axis]) -> None:
        self._whole(board, out, inputs)
        sizes = [board.size(axis) for axis in inputs]
        if all(size is not None and size == 1 for size in sizes):
            board.give(out, TDim.of(1))
        size = board.size(out)
        if size is None:
            return
        if size == 1:
            for axis in inputs:
                board.give(axis, size)
        elif sizes.count(None) == 1 and all(other is None or other == 1 for other in sizes):
            board.give(inputs[sizes.index(None)], size)


@dataclass(frozen=True)
class Mapped:
    """Axis ``places[i]`` of ``target`` is axis i of ``source``."""

    source: OutletId
    target: OutletId
    places: Sequence[int]

    def apply(self, board: Board) -> None:
        for axis, place in enumerate(self.places):
            SameSize([Axis(self.source, axis), Axis(self.target, place)]).apply(board)
