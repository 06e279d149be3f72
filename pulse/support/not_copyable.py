"""Base class of objects that cannot be copied or pickled."""

from typing import Any, ClassVar, NoReturn

from pulse.errors import CopyError


class NotCopyable:
    """An object bound to this process: it has a thread, a device, an open file, or addresses.

    ``copy``, ``deepcopy`` and ``pickle`` raise CopyError, with the ``reason`` of the class, and what to do.
    """

    __slots__ = ()
    _reason: ClassVar[str] = "it belongs to this process; make another one"

    def __init_subclass__(cls, reason: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if reason is not None:
            cls._reason = reason

    def __reduce_ex__(self, protocol: Any, /) -> NoReturn:
        raise CopyError(f"{type(self).__name__} cannot be copied or pickled: {self._reason}")
