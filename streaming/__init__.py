"""Execution of models: sessions, devices, files, servers, builds and the command line; all that depends on time."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streaming.session import Session

__all__ = ["Session"]


def __getattr__(name: str) -> Any:
    """Import on first use, so that the command line starts without numpy."""
    if name == "Session":
        from streaming.session import Session

        return Session
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
