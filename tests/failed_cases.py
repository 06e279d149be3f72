"""Failures of cases that share a test: all are reported, not only the first."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from typing import Any

import pytest


class FailedCases(list[str]):
    """The failures so far; a test asserts at its end that there are none."""

    @contextmanager
    def collect(self, name: str) -> Iterator[None]:
        """Add a failed assertion, or an access out of bounds, of the case ``name`` instead of raising it.

        Another error is raised with that name.
        """
        try:
            yield
        except (AssertionError, IndexError, pytest.fail.Exception) as error:
            self.append(f"{name}: {type(error).__name__}: {error}")
        except Exception as error:
            error.add_note(name)
            raise


def in_one_test(names: str | tuple[str, ...], values: Iterable[Any]) -> Callable[..., Any]:
    """Like ``parametrize``, for cases that take about a millisecond: they share a test, which names those that fail."""
    columns = (names,) if isinstance(names, str) else names
    cases = [dict(zip(columns, (value,) if isinstance(names, str) else value)) for value in values]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def test_cases(**arguments: Any) -> None:
            failed = FailedCases()
            for case in cases:
                with failed.collect(f"{test.__name__} {case}"):
                    test(**arguments, **case)
            assert not failed, "\n".join(failed)

        whole = signature(test)
        others = [value for name, value in whole.parameters.items() if name not in columns]
        vars(test_cases)["__signature__"] = whole.replace(parameters=others)
        return test_cases

    return decorate
