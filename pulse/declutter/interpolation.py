"""Interpolation that an exporter wrote as lookups at computed positions: read as one op.

PyTorch's exporter writes linear interpolation as ``x[i] + (x[i + 1] - x[i]) * fraction``, where ``i`` is the integer
part of a position, and ``fraction`` the rest of it. If the positions are evenly spaced, the lookups in the whole stream
become one ``Interpolate``, whose frames come from a window. Its positions are exact: a scale of 0.33333334 is 1/3, as
in a ``Resize``, where f32 loses digits of positions that are far from the start.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from pulse.declutter.driver import declutter_and_count
from pulse.declutter.rewrite import Rewrite, first_output
from pulse.dim import TDim
from pulse.facts import is_symbolic
from pulse.graph import OutletId
from pulse.ops.dims import constant_quotient
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.gather import Gather
from pulse.ops.resize import Interpolate
from pulse.ops.resize_sampling import Coordinates, NearestMode, Sampling, simple_fraction
from pulse.ops.shape import Transpose
from pulse.ops.time_position import Range
from pulse.patch import Patch
from pulse.support.record import record
from pulse.typed import TypedGraph, TypedNetwork, TypedNode, known_value

COORDINATES: tuple[Coordinates, ...] = ("asymmetric", "half_pixel")
ROUNDINGS: tuple[NearestMode, ...] = ("floor", "round_prefer_ceil")
MAX_DENOMINATOR = 32
"""The largest denominator of positions that are cut to integers: f32 rounds none of the first 2**18 to another one."""


@record
class FramePositions:
    """Positions among the frames of an input: ``slope * j + offset`` for output frame j.

    slope   the distance of two neighbours
    offset  the first one, if it is not limited
    length  the number of output frames
    low     what lower positions are replaced by; None: nothing
    """

    slope: Fraction
    offset: Fraction
    length: TDim
    low: Fraction | None = None

    def shift(self, number: Fraction) -> "FramePositions":
        """Return the positions with a number added."""
        low = None if self.low is None else self.low + number
        return replace(self, offset=self.offset + number, low=low)

    def scale(self, factor: Fraction) -> "FramePositions | None":
        """Return the positions times a number; None if it is not positive."""
        low = None if self.low is None else self.low * factor
        return (
            replace(self, slope=self.slope * factor, offset=self.offset * factor, low=low)
            if factor > 0
            else None
        )

    def clip_below(self, number: Fraction) -> "FramePositions":
        """Return the positions, none of them below a number."""
        return replace(self, low=number if self.low is None else max(self.low, number))

    def starts_at_zero(self) -> bool:
        """Return whether no position is negative, and those below the first frame are taken there."""
        return self.offset >= 0 if self.low is None else self.low == 0 or 0 <= self.low <= self.offset

    def stays_inside(self, frames: TDim) -> bool:
        """Return whether the integer part of each position is the number of a frame."""
        over = self.slope.denominator * self.offset.denominator
        last = (self.length - 1) * int(self.slope * over) + int(self.offset * over)
        return (last // over).prove_le(frames - 1).yes

    def linear_sampling(self) -> Sampling | None:
        """Return the sampling that interpolates linearly between frames at these positions; None if there is none."""
        if self.offset == 0:
            return Sampling("asymmetric", None)
        return Sampling("half_pixel", None) if self.offset == (self.slope - 1) / 2 else None

    def nearest_sampling(self) -> Sampling | None:
        """Return the sampling that takes the integer part of each position; None if there is none.

        Nor is there one if rounding in f32 may take another frame.
        """
        period, over = self.slope.denominator, self.slope.denominator * self.offset.denominator
        if over > MAX_DENOMINATOR:
            return None
        numerators = np.arange(period) * int(self.slope * over) + int(self.offset * over)
        is_power_of_two = over & (over - 1) == 0
        if not is_power_of_two and (numerators % over == 0).any():
            return None
        whole = numerators // over
        for coordinates in COORDINATES:
            for rounding in ROUNDINGS:
                sampling = Sampling(coordinates, rounding)
                frames, _ = sampling.neighbours(np.arange(period), 1 / self.slope, 0, 0)
                if (frames[:, 0] == whole).all():
                    return sampling
        return None


def _same_vector(graph: TypedGraph, outlet: OutletId) -> OutletId:
    """Return the first wire with the same numbers in the same shape, before axes came and went."""
    first, earlier = outlet, outlet
    while graph.node(earlier).op.keeps_order:
        earlier = graph.node(earlier).inputs[0]
        if graph.fact(earlier).rank == 1 and graph.fact(earlier).agrees(graph.fact(outlet)):
            first = earlier
    return first


def _find_positions(graph: TypedGraph, outlet: OutletId) -> FramePositions | None:
    """Return the positions that a wire of numbers holds; None if it is computed in another way."""
    node = graph.node(_same_vector(graph, outlet))
    match node.op:
        case Range(start, step, length):
            return FramePositions(Fraction(step), Fraction(start), length) if step > 0 else None
        case Cast(dtype) if np.issubdtype(dtype, np.floating):
            return _find_positions(graph, node.inputs[0])
        case Elementwise(kind) if kind in ("add", "sub", "mul", "div", "max") and len(node.inputs) == 2:
            rounds_down = kind == "div" and not _is_floating(graph, outlet)
            return None if rounds_down else _change_positions(graph, kind, *node.inputs)
        case Elementwise("relu"):
            positions = _find_positions(graph, node.inputs[0])
            return None if positions is None else positions.clip_below(Fraction(0))
        case _:
            return None


def _change_positions(graph: TypedGraph, kind: str, left: OutletId, right: OutletId) -> FramePositions | None:
    number = _find_number(graph, right)
    if number is None and kind in ("add", "mul", "max"):
        left, number = right, _find_number(graph, left)
    positions = None if number is None else _find_positions(graph, left)
    if positions is None or number is None:
        return None
    match kind:
        case "add":
            return positions.shift(number)
        case "sub":
            return positions.shift(-number)
        case "mul":
            return positions.scale(number)
        case "div":
            return positions.scale(1 / number) if number else None
        case _:
            return positions.clip_below(number)


def _is_floating(graph: TypedGraph, outlet: OutletId) -> bool:
    return np.issubdtype(graph.fact(outlet).dtype, np.floating)


def _find_number(graph: TypedGraph, outlet: OutletId) -> Fraction | None:
    """Return the number that a wire holds: a constant, or a quotient of sizes that is the same for all lengths."""
    value = known_value(graph, outlet)
    if value is not None:
        return simple_fraction(float(value.item())) if value.size == 1 and np.isfinite(value).all() else None
    node = graph.node(outlet)
    if not isinstance(node.op, Elementwise) or node.op.kind != "div" or not _is_floating(graph, outlet):
        return None
    sizes = [_find_size(graph, operand) for operand in node.inputs]
    if sizes[0] is None or sizes[1] is None:
        return None
    (top, top_factor), (bottom, bottom_factor) = sizes[0], sizes[1]
    quotient = constant_quotient(top, bottom)
    return None if quotient is None or not bottom_factor else quotient * top_factor / bottom_factor


def _find_size(graph: TypedGraph, outlet: OutletId) -> tuple[TDim, Fraction] | None:
    """Return the length of an axis, and the number by which a wire multiplies it."""
    value, node = graph.fact(outlet).value, graph.node(outlet)
    if value is not None:
        return (TDim.of(value.item()), Fraction(1)) if value.size == 1 and is_symbolic(value) else None
    match node.op:
        case Cast(dtype) if np.issubdtype(dtype, np.floating):
            return _find_size(graph, node.inputs[0])
        case Elementwise("mul"):
            for size_slot in (0, 1):
                size = _find_size(graph, node.inputs[size_slot])
                number = _find_number(graph, node.inputs[1 - size_slot])
                if size is not None and number is not None:
                    return size[0], size[1] * number
            return None
        case _:
            return None


@record
class Lookup:
    """Frames of an axis that are looked up, perhaps with axes in another order after it.

    gather     the lookup
    transpose  what follows it; None if nothing does
    indices    the numbers of the frames
    """

    gather: TypedNode
    transpose: TypedNode | None
    indices: OutletId

    @property
    def source(self) -> OutletId:
        """The wire whose frames are looked up."""
        return self.gather.inputs[0]

    @property
    def axis(self) -> int:
        """The axis that is looked up."""
        assert isinstance(self.gather.op, Gather)
        return self.gather.op.axis

    @property
    def order(self) -> tuple[int, ...] | None:
        """The order of the axes afterwards; None if it does not change."""
        op = None if self.transpose is None else self.transpose.op
        return op.perm if isinstance(op, Transpose) else None

    @property
    def output_axis(self) -> int:
        """The same axis of the output."""
        return self.axis if self.order is None else self.order.index(self.axis)

    def frames(self, graph: TypedGraph) -> TDim:
        """Return the number of frames among which they are."""
        return graph.fact(self.source).shape[self.axis]


def _find_lookup(graph: TypedGraph, outlet: OutletId) -> Lookup | None:
    node = graph.node(outlet)
    transpose = node if isinstance(node.op, Transpose) else None
    gather = graph.node(node.inputs[0]) if transpose is not None else node
    if not isinstance(gather.op, Gather) or graph.fact(gather.inputs[1]).rank != 1:
        return None
    lookup = Lookup(gather, transpose, _same_vector(graph, gather.inputs[1]))
    return None if lookup.frames(graph).is_const else lookup


def _operands(graph: TypedGraph, outlet: OutletId, kind: str) -> Iterator[tuple[OutletId, OutletId]]:
    """Yield the two operands of a function, in each order in which they may be; nothing if another op computes it."""
    node = graph.node(outlet)
    if isinstance(node.op, Elementwise) and node.op.kind == kind and len(node.inputs) == 2:
        left, right = node.inputs
        yield left, right
        if kind != "sub":
            yield right, left


def _without_limits(graph: TypedGraph, outlet: OutletId) -> OutletId:
    """Return the wire before it was limited to 0 … 1, which holds such numbers already."""
    for kind, limit in (("min", 1.0), ("max", 0.0), ("min", 1.0)):
        for x, bound in _operands(graph, outlet, kind):
            value = known_value(graph, bound)
            if value is not None and value.size == 1 and value.item() == limit:
                outlet = x
                break
    return outlet


def _is_integer_part(graph: TypedGraph, outlet: OutletId, position: OutletId) -> bool:
    node = graph.node(outlet)
    is_cast = isinstance(node.op, Cast) and np.issubdtype(node.op.dtype, np.integer)
    return is_cast and _same_vector(graph, node.inputs[0]) == _same_vector(graph, position)


def _is_next_frame(graph: TypedGraph, outlet: OutletId, first: OutletId, frames: TDim) -> bool:
    """Return whether a wire is the number of the frame after another one, of the last frame at most."""
    for follower, bound in _operands(graph, outlet, "min"):
        last = graph.fact(bound).value
        if last is None or last.size != 1 or TDim.of(last.item()) != frames - 1:
            continue
        for number, step in _operands(graph, follower, "add"):
            value = known_value(graph, step)
            if (
                _same_vector(graph, number) == first
                and value is not None
                and value.size == 1
                and value.item() == 1
            ):
                return True
    return False


def _interpolate_linearly(graph: TypedGraph, node: TypedNode, op: Elementwise) -> Patch | None:
    """Make ``x[i] + (x[i + 1] - x[i]) * fraction`` one op."""
    if op.kind != "add":
        return None
    for start, product in _operands(graph, first_output(node), "add"):
        lookup = _find_lookup(graph, start)
        if lookup is None:
            continue
        for difference, fraction in _operands(graph, product, "mul"):
            for end, minus in _operands(graph, difference, "sub"):
                if minus == start and _follows(graph, end, lookup) and _is_fraction(graph, fraction, lookup):
                    return _resample(graph, node, lookup, is_nearest=False)
    return None


def _follows(graph: TypedGraph, outlet: OutletId, lookup: Lookup) -> bool:
    """Return whether a wire holds the frames after those of a lookup."""
    following = _find_lookup(graph, outlet)
    if following is None or (following.source, following.axis) != (lookup.source, lookup.axis):
        return False
    if following.order != lookup.order:
        return False
    return _is_next_frame(graph, following.indices, lookup.indices, lookup.frames(graph))


def _is_fraction(graph: TypedGraph, outlet: OutletId, lookup: Lookup) -> bool:
    """Return whether a wire holds the rest of each position, along the axis of the frames."""
    fraction = graph.fact(outlet)
    output = graph.fact(OutletId((lookup.transpose or lookup.gather).id))
    axis = lookup.output_axis - (output.rank - fraction.rank)
    if axis < 0 or any(dim != 1 for index, dim in enumerate(fraction.shape) if index != axis):
        return False
    for position, whole in _operands(graph, _without_limits(graph, outlet), "sub"):
        cast = graph.node(whole)
        is_whole = isinstance(cast.op, Cast) and _same_vector(graph, cast.inputs[0]) == lookup.indices
        if is_whole and _is_integer_part(graph, lookup.indices, position):
            return True
    return False


def _take_nearest(graph: TypedGraph, node: TypedNode, _: Gather) -> Patch | None:
    """Make a lookup at the integer part of positions a resampling."""
    lookup = _find_lookup(graph, first_output(node))
    if lookup is None or not _only_looks_up(graph, lookup.indices):
        return None
    return _resample(graph, node, lookup, is_nearest=True)


def _only_looks_up(graph: TypedGraph, indices: OutletId) -> bool:
    """Return whether nothing but lookups reads these numbers; else they may be a part of linear interpolation."""
    for reader in graph.outlet(indices).successors:
        node = graph.nodes[reader.node]
        if node.op.keeps_order:
            if not _only_looks_up(graph, first_output(node)):
                return False
        elif not isinstance(node.op, Gather):
            return False
    return True


def _resample(graph: TypedGraph, node: TypedNode, lookup: Lookup, is_nearest: bool) -> Patch | None:
    """Replace a node by a resampling of what a lookup reads: the lookup itself by nearest frames, else linearly."""
    cast, frames = graph.node(lookup.indices), lookup.frames(graph)
    if not isinstance(cast.op, Cast) or not np.issubdtype(cast.op.dtype, np.integer):
        return None
    positions = _find_positions(graph, cast.inputs[0])
    if positions is None or not positions.starts_at_zero() or not positions.stays_inside(frames):
        return None
    sampling = positions.nearest_sampling() if is_nearest else positions.linear_sampling()
    if sampling is None:
        return None
    patch = Patch(graph)
    resize = Interpolate(lookup.axis, positions.length, 1 / positions.slope, sampling)
    name = node.name if lookup.transpose is None else f"{node.name}.frames"
    resampled = patch.wire(name, resize, [patch.tap(lookup.source)])[0]
    if lookup.transpose is not None:
        resampled = patch.wire(node.name, lookup.transpose.op, [resampled])[0]
    if not patch.graph.fact(resampled).agrees(graph.fact(first_output(node))):
        return None
    patch.shunt(first_output(node), resampled)
    return patch


INTERPOLATION = (
    Rewrite(
        "linear_interpolation",
        "x[i] + (x[i + 1] - x[i]) * fraction is the value at position i + fraction",
        _interpolate_linearly,
        (Elementwise,),
    ),
    Rewrite(
        "nearest_frames",
        "the frame at the integer part of a position is the one that resampling takes",
        _take_nearest,
        (Gather,),
    ),
)


def with_interpolation(model: TypedNetwork) -> TypedNetwork:
    """Return the model with ``Interpolate`` in place of such lookups; the model itself if it has none.

    ``LoadedModel.analyse`` applies it, ``declutter`` does not: a stream has to equal the model that it returns.
    """
    if not any(isinstance(node.op, Range) for node in model.graph.nodes):
        return model
    rewritten, applied = declutter_and_count(model, INTERPOLATION)
    return rewritten if applied else model
