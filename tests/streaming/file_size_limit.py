"""A limit on file sizes that stands for a full disk."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def limit_files(size: int) -> Iterator[None]:
    """Limit the files of this process to a size."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
