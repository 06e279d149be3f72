"""The registry of implementations of ops, and how one is chosen.

An op defines a computation and does not know its implementations. An implementation names its ops, types and layout.
Of those with the backend and kernel that a view sets, the fitting one with the highest priority is chosen.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from pulse.errors import CompileError
from pulse.facts import Array, DType, TypedFact, dtype_name
from pulse.ops.op import Op
from pulse.support.plugins import load_plugins
from pulse.support.record import record

ENTRY_POINT_GROUP = "pulse.implementations"
"""The entry points of plugins; importing their modules registers implementations."""

OpFunction: TypeAlias = Callable[[Op, Sequence[Array]], Sequence[Array]]
"""(op, arrays of its inputs in one pulse) -> the arrays of its outputs."""
Refuse: TypeAlias = Callable[[Op, Sequence[TypedFact]], str]
"""(op, facts of its inputs) -> why it does not fit; empty if it does."""
C = TypeVar("C", bound=Callable[..., Sequence[Array]])


@record(eq=False)
class Implementation:
    """One way to compute some ops.

    backend   the name of the backend that runs it: ``numba``, ``numpy``, ``onnxruntime``
    kernel    the algorithm, such as ``fft``; ``reference`` is the op's own ``eval``
    ops       the classes of ops that it computes
    priority  the fitting implementation with the highest one is chosen
    refuses   says why it does not fit, if op and dtypes fit; None: nothing else matters
    compute   computes a stateless op of the numpy backend; None: its backend compiles the op itself
    dtypes    the short names of the allowed input types; empty: any
    layout    the layout of its tensors
    """

    backend: str
    kernel: str
    ops: tuple[type[Op], ...]
    priority: int = 0
    refuses: Refuse | None = None
    compute: OpFunction | None = None
    dtypes: tuple[str, ...] = ()
    layout: str = "NCHW"

    def reason_against(self, op: Op, facts: Sequence[TypedFact]) -> str:
        """Return why it does not fit; empty if it does."""
        if not isinstance(op, self.ops):
            return f"is not for {op.name}"
        other = sorted({dtype_name(fact.dtype) for fact in facts} - set(self.dtypes))
        if self.dtypes and other:
            return f"does not take {', '.join(other)}"
        return "" if self.refuses is None else self.refuses(op, facts)

    def __str__(self) -> str:
        return f"{self.backend} {self.kernel}"


@record(eq=False)
class ImplementationChoice:
    """The implementation of one node, and the alternatives.

    implementation  the chosen one
    op              the name of the node's op
    dtype           the type of the node's first input, or of its output if it has none
    reason          the reason of the choice
    others          the other implementations that fit
    """

    implementation: Implementation
    op: str
    dtype: DType
    reason: str
    others: tuple[Implementation, ...] = ()

    @property
    def key(self) -> str:
        """Op, backend, dtype, layout and kernel: ``Conv/numpy/f32/NCHW/fft``."""
        chosen = self.implementation
        return f"{self.op}/{chosen.backend}/{dtype_name(self.dtype)}/{chosen.layout}/{chosen.kernel}"

    def __str__(self) -> str:
        return f"{self.key}: {self.reason}"


REGISTRY: list[Implementation] = []


def register(implementation: Implementation) -> None:
    """Add an implementation; it replaces one of the same backend, kernel and ops."""
    key = (implementation.backend, implementation.kernel, implementation.ops)
    REGISTRY[:] = [other for other in REGISTRY if (other.backend, other.kernel, other.ops) != key]
    REGISTRY.append(implementation)


def implements(
    *ops: type[Op],
    kernel: str,
    priority: int = 0,
    dtypes: Iterable[str] = (),
    refuses: Refuse | None = None,
) -> Callable[[C], C]:
    """Register a function ``(op, inputs) -> outputs`` as an implementation of the numpy backend.

    ops       the ops that it computes; stateless ones only, since the backend keeps states
    kernel    the name of the algorithm
    priority  above 0: chosen if no view sets a kernel
    dtypes    the short names of the types that it takes; any by default
    refuses   (op, facts of its inputs) -> why it does not fit, or an empty text
    """

    def add(function: C) -> C:
        register(Implementation("numpy", kernel, ops, priority, refuses, function, tuple(dtypes)))
        return function

    return add


def choose(
    name: str, op: Op, facts: Sequence[TypedFact], backend: str = "", kernel: str = ""
) -> ImplementationChoice:
    """Choose the implementation of a node, of the given backend and kernel if these are not empty.

    facts   the facts of its inputs
    Raises  CompileError: none fits
    """
    load_plugins(ENTRY_POINT_GROUP)
    reasons = {candidate: _reason_against(candidate, op, facts, backend, kernel) for candidate in REGISTRY}
    fitting = sorted(
        (candidate for candidate, reason in reasons.items() if not reason),
        key=lambda candidate: -candidate.priority,
    )
    if not fitting:
        request = " ".join(part for part in (backend, kernel) if part) or "any backend"
        candidates = "; ".join(
            f"{candidate}: {reason}" for candidate, reason in reasons.items() if isinstance(op, candidate.ops)
        )
        raise CompileError(
            f"{name} ({op.name}): no implementation for {request}; the candidates are {candidates or 'none'}"
        )
    best, *others = fitting
    request = " and ".join(
        text for text in (backend and f"backend {backend}", kernel and f"kernel {kernel}") if text
    )
    reason = f"{request} asked for" if request else "no backend asked for"
    if others:
        reason += f", priority {best.priority} before {', '.join(f'{other} ({other.priority})' for other in others)}"
    dtype = facts[0].dtype if facts else op.facts(facts)[0].dtype
    return ImplementationChoice(best, op.name, dtype, reason, tuple(others))


def _reason_against(
    implementation: Implementation, op: Op, facts: Sequence[TypedFact], backend: str, kernel: str
) -> str:
    if backend and implementation.backend != backend:
        return f"its backend is {implementation.backend}"
    if kernel and implementation.kernel != kernel:
        return f"its kernel is {implementation.kernel}"
    return implementation.reason_against(op, facts)
