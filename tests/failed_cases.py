"""Failures of cases that share a test: all are reported, not only the first."""

from collections.abc import Iterator
from contextlib import contextmanager


class FailedCases(list[str]):
    """The failures so far; a test asserts at its end that there are none."""

    @contextmanager
    def collect(self, name: str) -> Iterator[None]:
        """Add a failed assertion, or an access out of bounds, of the case ``name`` instead of raising it.

        Another error is raised with that name.
        """
        try:
            yield
        except (AssertionError, IndexError) as error:
            self.append(f"{name}: {type(error).__name__}: {error}")
        except Exception as error:
            error.add_note(name)
            raise
