"""Sums of products in Einstein notation: transposes, reductions and matrix products."""

import re
from collections.abc import Mapping, Sequence

from pulse.dim import TDim
from pulse.facts import Shape, volume
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.ops.matmul import MatMul
from pulse.ops.reduce import Reduce
from pulse.ops.shape import AddAxis, RemoveAxis, Reshape, Transpose
from pulse.ops.slice import Slice
from pulse.support.record import record
from pulse.support.wording import count_of

ELLIPSIS = "..."
_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


@record
class Term:
    """A wire with a label for each axis."""

    outlet: OutletId
    labels: tuple[str, ...]

    def drop_label(self, label: str, outlet: OutletId) -> "Term":
        """Return another wire, without one label."""
        return Term(outlet, tuple(other for other in self.labels if other != label))


@onnx_op("Einsum")
def einsum(node: NodeContext) -> OutletId:
    """Wire a sum, over the labels that the output does not have, of products of the operands.

    An ellipsis means axes that broadcast; without ``->`` the output has the labels that occur once, sorted.
    """
    equation = node.text("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    texts = left.split(",")
    if len(texts) != len(node.inputs) or not all(_TERM.fullmatch(text) for text in (*texts, right)):
        raise node.error(f"equation {equation!r} does not fit {len(node.inputs)} operands")
    operands = [
        Term(node.input(slot), _labels(node, text, node.fact(slot).rank)) for slot, text in enumerate(texts)
    ]
    dots = _most_dots(operands)
    if arrow:
        output_labels = (
            *_labels_before_dots(right),
            *(dots if ELLIPSIS in right else ()),
            *_labels_after_dots(right),
        )
    else:
        letters = left.replace(ELLIPSIS, "").replace(",", "")
        output_labels = (*dots, *sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    labels = {label for term in operands for label in term.labels}
    if len(set(output_labels)) != len(output_labels) or not set(output_labels) <= labels:
        raise node.error(
            f"equation {equation!r}: each label of the output must occur in the operands, and only once"
        )
    return node.name_result(_product(node, operands, output_labels))


def _labels_before_dots(text: str) -> tuple[str, ...]:
    return tuple(text.partition(ELLIPSIS)[0])


def _labels_after_dots(text: str) -> tuple[str, ...]:
    return tuple(text.partition(ELLIPSIS)[2])


def _labels(node: NodeContext, text: str, rank: int) -> tuple[str, ...]:
    """Return one label for each axis; the axes of an ellipsis are numbered from the last one: ``.1``, ``.0``."""
    before, after = _labels_before_dots(text), _labels_after_dots(text)
    open_axes = rank - len(before) - len(after)
    if open_axes < 0 or (open_axes and ELLIPSIS not in text):
        raise node.error(f"the term {text!r} does not fit an operand of {count_of(rank, 'axis', 'axes')}")
    return (*before, *(f".{index}" for index in reversed(range(open_axes))), *after)


def _most_dots(operands: Sequence[Term]) -> tuple[str, ...]:
    count = max(sum(label.startswith(".") for label in term.labels) for term in operands)
    return tuple(f".{index}" for index in reversed(range(count)))


def _product(node: NodeContext, operands: Sequence[Term], output_labels: Sequence[str]) -> OutletId:
    terms = [_diagonal(node, term, f"operand{slot}") for slot, term in enumerate(operands)]
    sizes = _sizes(node, terms)
    terms = [_squeeze(node, term, sizes, f"operand{slot}") for slot, term in enumerate(terms)]
    result = _sum(node, terms[0], {*output_labels, *_labels_of(terms[1:])}, "operand0")
    for index, term in enumerate(terms[1:], start=1):
        keep = {*output_labels, *_labels_of(terms[index + 1 :])}
        name = f"product{index}"
        other = _sum(node, term, keep | set(result.labels), f"operand{index}")
        result = _sum(node, result, keep | set(other.labels), f"left{index}")
        result = _contract(node, result, other, keep, name)
    for axis, label in enumerate(output_labels):
        if label not in result.labels:
            with_axis = node.wire(AddAxis(axis), [result.outlet], f"axis{axis}")
            result = Term(with_axis, (*result.labels[:axis], label, *result.labels[axis:]))
    return _order(node, result, output_labels, "ordered")


def _labels_of(terms: Sequence[Term]) -> set[str]:
    return {label for term in terms for label in term.labels}


def _order(node: NodeContext, term: Term, labels: Sequence[str], suffix: str) -> OutletId:
    if tuple(labels) == term.labels:
        return term.outlet
    perm = tuple(term.labels.index(label) for label in labels)
    return node.wire(Transpose(perm), [term.outlet], suffix)


def _diagonal(node: NodeContext, term: Term, name: str) -> Term:
    """Return one axis for each label: those that share a label become their diagonal, every (n+1)-th of n*n entries."""
    for label in dict.fromkeys(term.labels):
        while term.labels.count(label) > 1:
            first = term.labels.index(label)
            second = term.labels.index(label, first + 1)
            shape = node.graph.fact(term.outlet).shape
            size = shape[first]
            if not size.is_const or shape[second] != size:
                raise node.error(
                    f"the label {label!r} is the diagonal of {size} by {shape[second]}; only constant squares "
                    "are supported"
                )
            others = [axis for axis in range(len(shape)) if axis not in (first, second)]
            transposed = node.wire(Transpose((first, second, *others)), [term.outlet], f"{name}_transposed")
            other_sizes = tuple(shape[axis] for axis in others)
            flat = node.wire(Reshape((size * int(size), *other_sizes)), [transposed], f"{name}_flat")
            op = Slice(0, TDim.of(0), size * int(size), int(size) + 1)
            diagonal = node.wire(op, [flat], f"{name}_diagonal")
            term = Term(diagonal, (label, *(term.labels[axis] for axis in others)))
    return term


def _sizes(node: NodeContext, terms: Sequence[Term]) -> dict[str, TDim]:
    """Return the size of each label; if operands differ, the one that is not 1."""
    sizes: dict[str, TDim] = {}
    for term in terms:
        for label, dim in zip(term.labels, node.graph.fact(term.outlet).shape):
            if sizes.get(label, TDim.of(1)) == 1:
                sizes[label] = dim
    return sizes


def _squeeze(node: NodeContext, term: Term, sizes: Mapping[str, TDim], name: str) -> Term:
    """Remove the axes of size 1 that broadcast to a label of another size."""
    for label in term.labels:
        axis = term.labels.index(label)
        if node.graph.fact(term.outlet).shape[axis] == 1 and sizes[label] != 1:
            narrow = node.wire(RemoveAxis(axis), [term.outlet], f"{name}_narrow")
            term = term.drop_label(label, narrow)
    return term


def _sum(node: NodeContext, term: Term, keep: set[str], name: str) -> Term:
    axes = tuple(axis for axis, label in enumerate(term.labels) if label not in keep)
    if not axes:
        return term
    total = node.wire(Reduce("sum", axes, False), [term.outlet], f"{name}_sum")
    return Term(total, tuple(label for label in term.labels if label in keep))


def _contract(node: NodeContext, a: Term, b: Term, keep: set[str], name: str) -> Term:
    """Return the product of two operands, summed over the labels that both have and the result does not."""
    sum_labels = [label for label in a.labels if label in b.labels and label not in keep]
    if not sum_labels:
        return _multiply(node, a, b, name)
    sizes = {**_shape(node, a), **_shape(node, b)}
    sum_labels.sort(key=lambda label: sizes[label].is_const)
    batch = [label for label in a.labels if label in b.labels and label in keep]
    rows, columns = _Side.of(node, a, b), _Side.of(node, b, a)
    inner = volume([sizes[label] for label in sum_labels])
    shared = tuple(sizes[label] for label in batch)
    ones = (TDim.of(1),)
    is_batched = bool(batch or rows.outer or columns.outer)
    height, width = (side.size or (ones if is_batched else ()) for side in (rows, columns))
    left = (*shared, *rows.outer_sizes, *ones * len(columns.outer), *height, inner)
    right = (*shared, *ones * len(rows.outer), *columns.outer_sizes, inner, *width)
    if not batch and not columns.outer:
        right = right[len(rows.outer) :]
    operands = [
        _reshape(node, _order(node, term, labels, f"{name}_{side}_transposed"), shape, f"{name}_{side}")
        for term, labels, shape, side in (
            (a, (*batch, *rows.outer, *rows.inner, *sum_labels), left, "left"),
            (b, (*batch, *columns.outer, *sum_labels, *columns.inner), right, "right"),
        )
    ]
    labels = (*batch, *rows.outer, *columns.outer, *rows.inner, *columns.inner)
    y = node.wire(MatMul(), operands, name)
    return Term(_reshape(node, y, tuple(sizes[label] for label in labels), f"{name}_split"), labels)


@record
class _Side:
    """The labels that only one operand has: one axis of a matrix, and axes around it that broadcast.

    Constant sizes are merged into the matrix; together with a symbolic one they stay separate, so that it can stream.
    """

    outer: tuple[str, ...]
    inner: tuple[str, ...]
    outer_sizes: Shape
    size: Shape

    @classmethod
    def of(cls, node: NodeContext, term: Term, other: Term) -> "_Side":
        sizes = _shape(node, term)
        labels = [label for label in term.labels if label not in other.labels]
        if all(sizes[label].is_const for label in labels):
            product_size = (volume([sizes[label] for label in labels]),) if labels else ()
            return cls((), tuple(labels), (), product_size)
        labels.sort(key=lambda label: not sizes[label].is_const)
        outer = tuple(labels[:-1])
        return cls(outer, (labels[-1],), tuple(sizes[label] for label in outer), (sizes[labels[-1]],))


def _shape(node: NodeContext, term: Term) -> dict[str, TDim]:
    return dict(zip(term.labels, node.graph.fact(term.outlet).shape))


def _reshape(node: NodeContext, x: OutletId, shape: Shape, suffix: str) -> OutletId:
    return x if node.graph.fact(x).shape == shape else node.wire(Reshape(shape), [x], suffix)


def _multiply(node: NodeContext, a: Term, b: Term, name: str) -> Term:
    """Return an elementwise product on the labels of both."""
    labels = (*a.labels, *(label for label in b.labels if label not in a.labels))
    operands: list[OutletId] = []
    for term, side in ((a, "left"), (b, "right")):
        sizes = _shape(node, term)
        x = _order(node, term, [label for label in labels if label in sizes], f"{name}_{side}_transposed")
        first = min((labels.index(label) for label in sizes), default=len(labels))
        shape = tuple(sizes.get(label, TDim.of(1)) for label in labels[first:])
        operands.append(_reshape(node, x, shape, f"{name}_{side}"))
    return Term(node.apply("mul", *operands, suffix=name), labels)
