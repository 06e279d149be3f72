"""Attributes of PyTorch that are replaced while it exports."""

import contextlib
from collections.abc import Generator
from typing import Any


@contextlib.contextmanager
def replace_attributes(owner: Any, **attributes: Any) -> Generator[None]:
    """Within this context, these attributes of a module, class or object have other values."""
    before = {name: getattr(owner, name) for name in attributes}
    try:
        for name, value in attributes.items():
            setattr(owner, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)
