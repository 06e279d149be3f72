"""The thread of an export: what an export replaces in the process answers the others as before."""

import threading


class OwnThread:
    """The thread that created this object."""

    def __init__(self) -> None:
        self._number = threading.get_ident()

    @property
    def is_here(self) -> bool:
        """Whether the caller runs in the thread that created this object."""
        return threading.get_ident() == self._number
