"""Exceptions that only running has; the rest of the tree is in ``pulse.errors``."""

from typing import cast

from pulse.errors import PulseError


class DeviceError(PulseError):
    """An audio device, or the system that it belongs to, that cannot be used now."""


class ExecutorError(PulseError):
    """An executor, or a stream of one, that was late and may not be, that has been closed, or that is used twice."""


def only_one(error: BaseException) -> BaseException:
    """The one error that a group of errors holds, however deep; the group itself if it holds several."""
    single = error
    while isinstance(single, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", single)
        if len(group.exceptions) != 1:
            return group
        single = group.exceptions[0]
    return single
