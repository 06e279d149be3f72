"""Base class of objects that cannot be copied or pickled."""

from typing import Any, ClassVar, NoReturn

from pulse.errors import CopyError


class NotCopyable:
    """An object bound to this process: it has a thread, a device, an open file, or addresses.

    ``copy``, ``deepcopy`` and ``pickle`` raise CopyError. ``copy_error_reason`` says why, and what to do.
    """

    __slots__ = ()
    copy_error_reason: ClassVar[str] = "it belongs to this process; make another one"

    def __reduce_ex__(self, protocol: Any, /) -> NoReturn:
        raise CopyError(f"{type(self).__name__} cannot be copied or pickled: {self.copy_error_reason}")
