"""Every exception that a user can cause.

PulseError
├── LoadError        a file or model that cannot be read, or operators that are not supported
├── FactError        shapes or types that contradict each other
├── DimError         symbolic arithmetic that has no answer
├── PulsifyError     a model, or a pulse, that cannot be streamed
├── CompileError     a pulsed model that the chosen backend cannot run
├── WriteError       a pulsed model that cannot leave in the chosen format
├── InputError       arrays or audio of the wrong shape, type, rate or content
│   └── FaultError   values for which an operation has no result, such as an index outside its table
├── CopyError        something that belongs to one process, copied or pickled; a TypeError too
├── DivergenceError  a stream that differs from its offline model
└── NotProvedError   a proof without a result for some output
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pulse.support.printable import printable
from pulse.support.record import record


def _escape(parts: Iterable[Any]) -> Iterator[Any]:
    return (printable(part) if isinstance(part, str) else part for part in parts)


class PulseError(Exception):
    """The root of every exception that a user can cause.

    Messages quote files, and tracebacks print them: control characters in them are escaped.
    """

    def __init__(self, *parts: Any) -> None:
        super().__init__(*_escape(parts))


class LoadError(PulseError):
    """A model that cannot be read."""


class FactError(PulseError):
    """Shapes or types that contradict each other."""


class DimError(PulseError):
    """Symbolic arithmetic that has no answer."""


class CompileError(PulseError):
    """A pulsed model that the chosen backend cannot run."""


class WriteError(PulseError):
    """A pulsed model that cannot leave in the chosen format."""


class InputError(PulseError):
    """Arrays or audio of the wrong shape, type, rate or content."""


class CopyError(PulseError, TypeError):
    """An object bound to one process was copied or pickled. Also a TypeError, like Python's own refusals."""


@record
class Fault:
    """Values for which a node has no result.

    node    its label
    op      its operation
    reason  how many, of which input, and what is wrong with them
    count   how many
    """

    node: str
    op: str
    reason: str
    count: int

    def __str__(self) -> str:
        return f"{self.node} ({self.op}): {self.reason}"


class FaultError(InputError):
    """Values for which an operation has no result: an index outside its table, an integer divided by 0.

    faults   one for each node and input
    lanes    the lanes that failed, if several streams stepped in one call
    outputs  there, what the call would have returned; the rows of the lanes that failed mean nothing
    """

    def __init__(
        self,
        message: str,
        faults: Sequence[Fault],
        lanes: Sequence[int] = (),
        outputs: Mapping[str, Any] | None = None,
    ) -> None:
        self.faults, self.lanes, self.outputs = tuple(faults), tuple(lanes), dict(outputs or {})
        super().__init__(message)


class DivergenceError(PulseError):
    """A stream that differs from its offline model."""


class NotProvedError(PulseError):
    """A proof has no result for some output, which is constant or never finite."""


class PulseWarning(UserWarning):
    """Something that the user should know: a doubtful file, a changed meaning, a slower start. The call continues."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*_escape(parts))


@record
class Refusal:
    """Why one node cannot be streamed, and what would help.

    node      name of the node
    op        its operation
    axis      the stream axis; None if it has none
    relation  how the outputs depend on the stream
    reason    why it cannot be streamed
    advice    what would help
    origin    where the node comes from, such as a line of a program
    """

    node: str
    op: str
    axis: int | None
    relation: str
    reason: str
    advice: str
    origin: str = ""

    def __str__(self) -> str:
        location = f"{self.node} ({self.op}{', ' + self.origin if self.origin else ''})"
        if self.axis is not None:
            location += f", stream axis {self.axis}"
        return printable(f"{location}: {self.relation}: {self.reason}; {self.advice}")


class PulsifyError(PulseError):
    """A model, or a pulse, that cannot be streamed.

    refusals  one for each failing node
    advice    a way out for the model as a whole, in place of one for each node; empty if there is none
    """

    def __init__(self, message: str, refusals: Sequence[Refusal] = (), advice: str = "") -> None:
        self.message, self.refusals, self.advice = printable(message), tuple(refusals), printable(advice)
        super().__init__(self.message)

    def __str__(self) -> str:
        return "\n".join(
            filter(None, [self.message, *(f"  {refusal}" for refusal in self.refusals), self.advice])
        )

    def __reduce__(self) -> tuple[type["PulsifyError"], tuple[str, tuple[Refusal, ...], str]]:
        return type(self), (self.message, self.refusals, self.advice)


@contextmanager
def file_errors(name: object, done: str, kind: type[PulseError], advice: str = "") -> Generator[None]:
    """Raise ``kind`` if the file system refuses something inside: ``name`` cannot be ``done``, read or written."""
    try:
        yield
    except OSError as error:
        reason = f"{name}: cannot be {done} ({error.strerror or error})"
        raise kind(f"{reason}; {advice}" if advice else reason) from error
