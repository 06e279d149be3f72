"""Checks of the parameters of detectors; each raises InputError in one line."""

from math import isfinite

from pulse.errors import InputError
from pulse.support.wording import count_of


def require_finite(name: str, value: float) -> None:
    """Require a finite number."""
    if not isfinite(value):
        raise InputError(f"{name}={value}: must be a finite number")


def require_seconds(**values: float | None) -> None:
    """Require each to be finite and not negative, or None."""
    for name, value in values.items():
        if value is not None and not 0 <= value < float("inf"):
            raise InputError(f"{name}={value}: must be 0 or more seconds")


def require_one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Require one of these words."""
    if value not in choices:
        raise InputError(f"{name}={value}: must be {' or '.join(choices)}")


def require_class(name: str, value: int | None, classes: int) -> None:
    """Require the number of a class, or None."""
    if value is not None and not 0 <= value < classes:
        raise InputError(
            f"{name}={value}: the output has {count_of(classes, 'class', 'classes')}, counted from 0"
        )


def class_names(labels: tuple[str, ...], classes: int) -> tuple[str, ...]:
    """Return the names of this many classes: those given, or their numbers."""
    if labels and len(labels) != classes:
        raise InputError(
            f"labels: {count_of(len(labels), 'name')} for {count_of(classes, 'class', 'classes')}; give one for each"
        )
    return labels or tuple(map(str, range(classes)))
