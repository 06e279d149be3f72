"""Which code computes an op: the registry of implementations, and how one is chosen.

An op says what is computed and knows none of them. An implementation says for which ops, types and layout it is; the
fitting one with the highest priority is chosen among those of the backend, and of the kernel, that a view asks for.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from pulse.errors import CompileError
from pulse.facts import Array, DType, TypedFact, dtype_name
from pulse.ops.op import Op
from pulse.plugins import load_plugins
from pulse.record import record

GROUP = "pulse.implementations"
"""The entry points of plugins: importing what they name registers implementations."""

Compute: TypeAlias = Callable[[Op, Sequence[Array]], Sequence[Array]]
"""An op and the arrays of its inputs in one pulse -> the arrays of its outputs."""
Refuse: TypeAlias = Callable[[Op, Sequence[TypedFact]], str]
"""An op and the facts of its inputs -> why it does not fit; empty where it does."""
C = TypeVar("C", bound=Callable[..., Sequence[Array]])


def fits_all(op: Op, facts: Sequence[TypedFact]) -> str:
    """Nothing is refused."""
    return ""


@record(eq=False)
class Implementation:
    """One way to compute some ops.

    backend   what runs it: ``numba``, ``numpy``, ``onnxruntime``
    kernel    the algorithm, such as ``fft``; ``reference`` is the op's own
    ops       the ops, and classes of them, that it is for
    priority  the highest one that fits is chosen
    refuses   why it does not fit; asked after type and dtypes
    compute   computes an op without a state, of the numpy backend; None: its backend compiles the op itself
    dtypes    the short names of the types that inputs may have; any if it is empty
    layout    of its tensors; there is only one yet
    """

    backend: str
    kernel: str
    ops: tuple[type[Op], ...]
    priority: int = 0
    refuses: Refuse = fits_all
    compute: Compute | None = None
    dtypes: tuple[str, ...] = ()
    layout: str = "NCHW"

    def reason_against(self, op: Op, facts: Sequence[TypedFact]) -> str:
        """Why it does not fit; empty where it does."""
        if not isinstance(op, self.ops):
            return f"is not for {op.name}"
        other = sorted({dtype_name(fact.dtype) for fact in facts} - set(self.dtypes))
        if self.dtypes and other:
            return f"does not take {', '.join(other)}"
        return self.refuses(op, facts)

    def __str__(self) -> str:
        return f"{self.backend} {self.kernel}"


@record(eq=False)
class ImplementationChoice:
    """The implementation of one node, and why it is this one.

    dtype   of the node's first input, or of its output if it has none
    others  those that fit too
    """

    implementation: Implementation
    op: str
    dtype: DType
    why: str
    others: tuple[Implementation, ...] = ()

    @property
    def key(self) -> str:
        """Op, backend, dtype, layout and kernel: ``Conv/numpy/f32/NCHW/fft``."""
        implementation = self.implementation
        return "/".join(
            (
                self.op,
                implementation.backend,
                dtype_name(self.dtype),
                implementation.layout,
                implementation.kernel,
            )
        )

    def __str__(self) -> str:
        return f"{self.key}: {self.why}"


REGISTRY: list[Implementation] = []


def register(implementation: Implementation) -> Implementation:
    """Add an implementation; one of the same backend, kernel and ops takes the place of the old one."""
    key = (implementation.backend, implementation.kernel, implementation.ops)
    REGISTRY[:] = [each for each in REGISTRY if (each.backend, each.kernel, each.ops) != key]
    REGISTRY.append(implementation)
    return implementation


def implements(
    *ops: type[Op],
    kernel: str,
    priority: int = 0,
    dtypes: Iterable[str] = (),
    refuses: Refuse = fits_all,
) -> Callable[[C], C]:
    """Register a function ``(op, inputs) -> outputs`` as an implementation of the numpy backend.

    ops       that it computes; none with a state, whose state the backend keeps
    kernel    the name of the algorithm
    priority  above 0 it is chosen if no view asks for a kernel
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
    """The implementation of a node, of the backend and the kernel that are asked for.

    facts   of its inputs
    Raises  CompileError, with the candidates: none fits
    """
    load_plugins(GROUP)
    against = {each: _against(each, op, facts, backend, kernel) for each in REGISTRY}
    fitting = sorted(
        (each for each, reason in against.items() if not reason), key=lambda each: -each.priority
    )
    if not fitting:
        request = " ".join(part for part in (backend, kernel) if part) or "any backend"
        candidates = "; ".join(
            f"{each}: {reason}" for each, reason in against.items() if isinstance(op, each.ops)
        )
        raise CompileError(
            f"{name} ({op.name}): nothing computes it with {request}; the candidates are {candidates or 'none'}"
        )
    best, *others = fitting
    request = " and ".join(
        text for text in (backend and f"backend {backend}", kernel and f"kernel {kernel}") if text
    )
    why = f"{request} asked for" if request else "no backend asked for"
    if others:
        why += (
            f", priority {best.priority} before {', '.join(f'{each} ({each.priority})' for each in others)}"
        )
    dtype = facts[0].dtype if facts else op.facts(facts)[0].dtype
    return ImplementationChoice(best, op.name, dtype, why, tuple(others))


def has_preferred() -> bool:
    """Whether an implementation goes before the reference without being asked for."""
    load_plugins(GROUP)
    return any(each.compute is not None and each.priority > 0 for each in REGISTRY)


def _against(each: Implementation, op: Op, facts: Sequence[TypedFact], backend: str, kernel: str) -> str:
    if backend and each.backend != backend:
        return f"its backend is {each.backend}"
    if kernel and each.kernel != kernel:
        return f"its kernel is {each.kernel}"
    return each.reason_against(op, facts)


register(Implementation("numpy", "reference", (Op,)))
