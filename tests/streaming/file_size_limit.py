"""Disks that are full."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def limit_files(size: int) -> Iterator[None]:
    """Files of this process may not become larger."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
