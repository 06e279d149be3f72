"""Private folders of kernels for tests."""

from contextlib import contextmanager

import pytest

from pulse.jit import levels, notice
from pulse.jit.storage import cache, package_library

COMPILING = {"PULSE_LEVEL": levels.NATIVE}
"""The environment of a process that compiles its kernels, whether or not libraries of them are built."""


@contextmanager
def kernels_in(path, shared="0"):
    """PULSE_CACHE is the path, no library is used, no warning is given yet; all is as before afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULSE_CACHE", str(path))
        patch.setenv("PULSE_CACHE_SHARED", shared)
        for name, value in COMPILING.items():
            patch.setenv(name, value)
        patch.setattr(notice, "warned", set())
        decided = cache.cache_location, levels.named_level, package_library.library
        for function in decided:
            function.cache_clear()
        try:
            yield path
        finally:
            for function in decided:
                function.cache_clear()


@pytest.fixture
def folder(tmp_path):
    """An empty one, not made yet."""
    with kernels_in(tmp_path / "kernels") as path:
        yield path
