"""Exceptions of running streams; the rest of the hierarchy is in ``pulse.errors``."""

from typing import cast

from pulse.errors import PulseError


class DeviceError(PulseError):
    """An audio device, or its audio system, cannot be used now."""


class ExecutorError(PulseError):
    """An executor, or one of its streams, was late under the policy ``abort``, has been closed, or is used twice."""


def unwrap_single_error(error: BaseException) -> BaseException:
    """Return the only error in nested groups of errors, or the group itself if it holds several."""
    single = error
    while isinstance(single, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", single)
        if len(group.exceptions) != 1:
            return group
        single = group.exceptions[0]
    return single
