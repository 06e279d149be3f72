"""Attributes of PyTorch that are replaced while it exports."""

import contextlib
from collections.abc import Generator
from typing import Any


@contextlib.contextmanager
def replace_attributes(owner: Any, **attributes: Any) -> Generator[None]:
    """Within this context, these attributes of a module, class or object have other values, or have values at all."""
    before: dict[str, Any] = {name: vars(owner)[name] for name in attributes if name in vars(owner)}
    try:
        for name, value in attributes.items():
            setattr(owner, name, value)
        yield
    finally:
        for name in attributes:
            setattr(owner, name, before[name]) if name in before else delattr(owner, name)
