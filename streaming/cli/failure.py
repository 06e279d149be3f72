"""Reports of failures: one line on stderr, and with --json JSON on stdout."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict

from streaming.cli.console import counting_documents, documents, print_error, print_json

_as_json: ContextVar[bool] = ContextVar("errors_as_json", default=False)


@contextmanager
def errors_as_json() -> Generator[None]:
    """Print errors inside as JSON, too."""
    token = _as_json.set(True)
    try:
        with counting_documents():
            yield
    finally:
        _as_json.reset(token)


def fail(error: BaseException, message: str) -> None:
    """Print an error; in JSON as ``{"error": {"type", "message", "refusals"}}``, unless a report was printed."""
    print_error(message)
    if not _as_json.get() or documents():
        return
    from pulse.errors import PulsifyError

    refusals = [asdict(refusal) for refusal in error.refusals] if isinstance(error, PulsifyError) else []
    kind = type(error).__name__
    print_json({"error": {"type": kind, "message": message, "refusals": refusals}})
