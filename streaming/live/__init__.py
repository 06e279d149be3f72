"""Live audio: a program between a microphone and a loudspeaker."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streaming.live.config import EngineConfig
    from streaming.live.live import Live
    from streaming.live.plan import Plan

__all__ = ["EngineConfig", "Live", "Plan"]
_HOMES = {"EngineConfig": "config", "Live": "live", "Plan": "plan"}


def __getattr__(name: str) -> Any:
    """Import on first use, so that devices are listed without numba."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"streaming.live.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
