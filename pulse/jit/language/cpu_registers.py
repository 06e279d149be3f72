"""The floating-point mode, the time counter and the pause instruction of the processor; only in compiled code."""

from pulse.jit.language.declared import refuse


def flush_denormals() -> int:
    """Treat denormals as zero from now on; return the previous mode."""
    refuse()


def restore_denormals(mode: int) -> None:
    """Restore the mode that ``flush_denormals`` returned."""
    refuse()


def tick_count() -> int:
    """Return the processor's time counter."""
    refuse()


def pause() -> None:
    """Tell the processor that this is a waiting loop."""
    refuse()
