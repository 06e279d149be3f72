"""The mode of floats, the time counter and the pause of the processor; only in compiled code."""

from pulse.jit.declared import refuse


def flush_denormals() -> int:
    """Treat denormals as zero from here on; gives the mode before."""
    refuse()


def restore_denormals(mode: int) -> None:
    """Back to the mode that ``flush_denormals`` gave."""
    refuse()


def tick_count() -> int:
    """The processor's time counter."""
    refuse()


def pause() -> None:
    """Tell the processor that this loop only waits."""
    refuse()
