# pyright: basic
"""PyTorch's exporter without its prints, logs and warnings, in one thread."""

import contextlib
import io
import logging
import sys
import warnings
from collections.abc import Generator
from typing import Any, cast

from pulse.torch.own_thread import OwnThread

_LOGGERS = ("torch", "onnxscript")
"""The packages whose log records are dropped."""


@contextlib.contextmanager
def silence_exporter() -> Generator[None]:
    """Silence the exporter's prints, logs and warnings, in this thread only."""
    owner = _QuietThread()
    roots = [logging.getLogger(name) for name in logging.root.manager.loggerDict if _is_exporters(name)]
    handlers = {handler for logger in (logging.root, *roots) for handler in logger.handlers}
    if logging.lastResort is not None:
        handlers.add(logging.lastResort)
    for handler in handlers:
        handler.addFilter(owner.filter)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(_Silenced(sys.stdout, owner)),
            contextlib.redirect_stderr(_Silenced(sys.stderr, owner)),
        ):
            warnings.simplefilter("ignore")
            cast("list[Any]", warnings.filters)[0] = ("ignore", owner, Warning, None, 0)
            yield
    finally:
        for handler in handlers:
            handler.removeFilter(owner.filter)


def _is_exporters(name: str) -> bool:
    return name.partition(".")[0] in _LOGGERS


class _QuietThread(OwnThread):
    """The thread of the exporter, as a filter of warnings and of log records."""

    def match(self, text: str) -> bool:
        """Match every warning of this thread; used as the pattern of a warnings filter."""
        return self.is_here

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a log record is shown."""
        return not (self.is_here and _is_exporters(record.name))


class _Silenced(io.TextIOBase):
    """A text stream that drops what one thread writes."""

    def __init__(self, stream: Any, owner: OwnThread) -> None:
        self._stream, self._owner = stream, owner

    def write(self, text: str) -> int:
        return len(text) if self._owner.is_here else self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
