"""Arithmetic of the numpy oracle: in the types of the model, in 64 bits, or in 64 bits with rounding errors added.

The three differ in how they convert the inputs and the results of a node's ``eval``. An op of several steps, one of
which may cancel the digits of another, marks the values that it rounds in between with ``round_inside``.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, copy_context
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pulse.facts import F32, F64, Array, DType
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.ops.op import Op
from pulse.ops.source import Const
from pulse.support.record import record

Compute: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
"""A function of a node's inputs that returns its results."""

ConstantScales: TypeAlias = Callable[[int, Op, Sequence[Array]], Mapping[int, Array]]
"""A function of a node's place in the order of evaluation, its op and its inputs. For constant operands whose elements
do not each have a relative error, it returns what their errors are relative to: operand -> positive numbers."""

RoundedMask: TypeAlias = "bool | NDArray[np.bool_]"
"""Which elements of a result its own dtype cannot represent: all, none, or the elements in a mask."""

EQUALITY = "="
"""The value of ``holds_if`` of a comparison for equality, which random errors would never make true."""
MAX_KEPT_BYTES = 1 << 20
"""Maximum number of bytes of a constant that is kept in f64 too; larger ones are converted when used."""


def accumulator_type(x: Array) -> DType:
    """Return the dtype in which the oracle sums the elements of x: f64 for floats, otherwise the dtype of x."""
    return F64 if x.dtype.kind == "f" else x.dtype


class Arithmetic:
    """Arithmetic in the dtypes of the model."""

    @property
    def widens(self) -> bool:
        """Whether floating wires hold f64, whatever their facts say."""
        return False

    def take_input(self, value: Array) -> Array:
        """Return a value that no node computes: an input, or the state at the start of a stream."""
        return value

    @property
    def without_noise(self) -> "Arithmetic":
        """The arithmetic without simulated rounding errors, for a body whose number of runs depends on its values."""
        return self

    def round(self, value: Array) -> Array:
        """Return a value inside an op, if an implementation would round it."""
        return value

    def evaluate(
        self, op: Op, inputs: Sequence[Array], dtypes: Sequence[DType], compute: Compute
    ) -> Sequence[Array]:
        """Return the results of one node.

        dtypes   dtypes of its results, by their facts
        compute  the op itself
        """
        return compute(inputs)


class WideArithmetic(Arithmetic):
    """Arithmetic in f64 throughout, including constants and conversions between f32 and f64.

    A conversion to f16 rounds to it: models compute in f32 between such conversions (``loading/half_precision.py``).
    """

    def __init__(self) -> None:
        self._constants: dict[int, tuple[Op, list[Array]]] = {}

    @property
    def widens(self) -> bool:
        return True

    def take_input(self, value: Array) -> Array:
        return widen(value)

    def evaluate(
        self, op: Op, inputs: Sequence[Array], dtypes: Sequence[DType], compute: Compute
    ) -> Sequence[Array]:
        if not isinstance(op, Const) or op.value.nbytes > MAX_KEPT_BYTES:
            return self._results(op, inputs, compute)
        if id(op) not in self._constants:
            self._constants[id(op)] = op, self._results(op, inputs, compute)
        return self._constants[id(op)][1]

    def _results(self, op: Op, inputs: Sequence[Array], compute: Compute) -> list[Array]:
        if isinstance(op, Cast) and op.dtype in (F32, F64) and is_floating(inputs[0].dtype):
            return [inputs[0]]
        return copy_context().run(self._compute, inputs, compute)

    def _compute(self, inputs: Sequence[Array], compute: Compute) -> list[Array]:
        """Compute in a separate context, which is left even after an interrupt."""
        _current.set(self)
        with np.errstate(all="ignore"):
            return [widen(np.asarray(result)) for result in compute(inputs)]


@record
class NodeRecord:
    """What a run in f64 records of one node.

    rounded  masks of the elements that need rounding, one for each result
    gap      the difference of the two operands, if it compares them for equality and they are floats
    """

    rounded: Sequence[RoundedMask] = ()
    gap: Array | None = None


class RecordingArithmetic(WideArithmetic):
    """Arithmetic in f64; ``tape`` has a record of each node, in order of evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.tape: list[NodeRecord] = []

    def evaluate(
        self, op: Op, inputs: Sequence[Array], dtypes: Sequence[DType], compute: Compute
    ) -> Sequence[Array]:
        index = len(self.tape)
        self.tape.append(NodeRecord())  # the records of its body come after it
        results = super().evaluate(op, inputs, dtypes, compute)
        pairs = zip(results, dtypes)
        rounded = [not op.copies and _inexact_mask(result, dtype) for result, dtype in pairs]
        self.tape[index] = NodeRecord(rounded, _gap(inputs) if _compares_floats(op, inputs) else None)
        return results


class PerturbedArithmetic(WideArithmetic):
    """Arithmetic in f64 with a random error in place of every rounding of the model's arithmetic.

    A result that its type cannot hold is changed by up to ``units`` of its last place. An op that adds up terms
    rounds inside as well: each element of its inputs and each term is changed in the same way.
    Values that need no rounding stay exact: counters, masks, copies, sums of integers. Half of the values that
    differ by less than their errors are equal, as rounded ones may be.

    tape             the tape of a ``RecordingArithmetic`` on the same inputs
    units            largest error in units of the last place
    constant_scales  what errors of constant operands are relative to; None: always to each element
    """

    def __init__(
        self,
        tape: Sequence[NodeRecord],
        units: float,
        seed: int,
        constant_scales: ConstantScales | None = None,
    ) -> None:
        super().__init__()
        self._tape = enumerate(tape)
        self._constant_scales = constant_scales
        self._units = units
        self._rng = np.random.Generator(np.random.SFC64(seed))
        self._dtype = F64

    @property
    def without_noise(self) -> Arithmetic:
        return WideArithmetic()

    def round(self, value: Array) -> Array:
        return self._noisy(value, self._dtype, _fractional_mask(value))

    def evaluate(
        self, op: Op, inputs: Sequence[Array], dtypes: Sequence[DType], compute: Compute
    ) -> Sequence[Array]:
        index, recorded = next(self._tape)
        dtype = next(filter(is_floating, dtypes), None)
        if dtype is not None and not (op.copies or isinstance(op, Elementwise | Cast)):
            is_exact = all(where is False for where in recorded.rounded)
            scales: Mapping[int, Array] = (
                self._constant_scales(index, op, inputs) if self._constant_scales else {}
            )
            inputs = [
                x + scales[slot] * (self._noisy(np.ones_like(x), dtype, True) - 1.0)
                if slot in scales
                else self._noisy(x, dtype, _fractional_mask(x) if is_exact else True)
                for slot, x in enumerate(inputs)
            ]
            self._dtype = dtype
        results = super().evaluate(op, inputs, dtypes, compute)
        if recorded.gap is not None:
            return [results[0] | self._are_equal_by_chance(inputs, recorded.gap)]
        return [
            self._noisy(result, dtype, where)
            for result, dtype, where in zip(results, dtypes, recorded.rounded, strict=True)
        ]

    def _are_equal_by_chance(self, inputs: Sequence[Array], gap: Array) -> Array:
        """Return half of the elements whose operands differ by no more than their errors; ``gap`` has no errors."""
        error = np.abs(_gap(inputs) - gap)
        return (gap != 0) & (np.abs(gap) <= error) & (self._rng.random(gap.shape, np.float32) < 0.5)

    def _noisy(self, value: Array, dtype: DType, where: RoundedMask) -> Array:
        if where is False or not is_floating(value.dtype):
            return value
        max_change = self._units * unit_roundoff(dtype)
        factor = self._rng.random(value.shape, np.float32).astype(F64)
        factor *= 2 * max_change
        factor += 1 - max_change
        return value * (factor if where is True else np.where(where, factor, 1.0))


NATIVE = Arithmetic()
_current: ContextVar[Arithmetic] = ContextVar("arithmetic", default=NATIVE)


def arithmetic_in_use() -> Arithmetic:
    """Return the arithmetic of the op that is being evaluated, to be used for its bodies too."""
    return _current.get()


def round_inside(value: Array) -> Array:
    """Mark a value inside an op that an implementation of lower precision rounds; the oracle returns it unchanged."""
    return _current.get().round(value)


def is_floating(dtype: DType) -> bool:
    """Return whether values of the type are rounded."""
    return np.issubdtype(dtype, np.floating)


def widen(value: Array) -> Array:
    """Convert a floating tensor to f64; return others unchanged."""
    return value.astype(F64, copy=False) if is_floating(value.dtype) else value


def unit_roundoff(dtype: DType) -> float:
    """Return the largest relative error of rounding to a floating type: 2**-24 for f32."""
    return float(np.finfo(dtype).eps) / 2


def _compares_floats(op: Op, inputs: Sequence[Array]) -> bool:
    return (
        isinstance(op, Elementwise)
        and ELEMENTWISE[op.kind].holds_if == EQUALITY
        and is_floating(inputs[0].dtype)
    )


def _gap(inputs: Sequence[Array]) -> Array:
    """Return the difference of two operands; NaN where it has none."""
    with np.errstate(invalid="ignore"):
        return inputs[0] - inputs[1]


def _fractional_mask(value: Array) -> RoundedMask:
    return value != np.rint(value) if is_floating(value.dtype) else False


def _inexact_mask(result: Array, dtype: DType) -> RoundedMask:
    if not (is_floating(dtype) and is_floating(result.dtype)):
        return False
    with np.errstate(all="ignore"):
        rounded = np.rint(result) if dtype == F64 else result.astype(dtype)
        inexact = (rounded != result) & np.isfinite(result)
    count = np.count_nonzero(inexact)
    if count == 0:
        return False
    return True if count == inexact.size else inexact
