"""Folders for kernels that a test has for itself."""

from contextlib import contextmanager

import pytest

from pulse.jit import cache


@contextmanager
def kernels_in(path, shared="0"):
    """PULSE_CACHE is the path, and nothing is told yet; the folder of before is found again afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULSE_CACHE", str(path))
        patch.setenv("PULSE_CACHE_SHARED", shared)
        patch.setattr(cache, "_told", set())
        cache.cache_location.cache_clear()
        try:
            yield path
        finally:
            cache.cache_location.cache_clear()


@pytest.fixture
def folder(tmp_path):
    """An empty one, not made yet."""
    with kernels_in(tmp_path / "kernels") as path:
        yield path
