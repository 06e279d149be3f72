# pyright: basic
"""Buffers that the first call creates, such as tables of positions; an export creates them in each call."""

import contextlib
from collections.abc import Generator
from typing import Any

from pulse.torch.own_thread import OwnThread
from pulse.torch.replacements.attributes import replace_attributes


@contextlib.contextmanager
def hide_new_buffers(torch: Any, module: Any) -> Generator[None]:
    """Within this context, buffers without a tensor, and new ones that a call registers, are plain attributes.

    An exporter lists the buffers before a call, and misses those that the call creates.
    """
    owner = OwnThread()
    # tracers wrap modules, and share their attributes
    attributes = {id(vars(layer)) for layer in module.modules()}
    register = torch.nn.Module.register_buffer

    def keep_plain(self: Any, name: str, tensor: Any, *others: Any, **named: Any) -> None:
        is_new = id(vars(self)) in attributes and name not in self._buffers
        if is_new and owner.is_here and torch.is_tensor(tensor):
            self.__dict__[name] = tensor
        else:
            register(self, name, tensor, *others, **named)

    empty = [
        (layer, name) for layer in module.modules() for name, value in layer._buffers.items() if value is None
    ]
    for submodule, name in empty:
        del submodule._buffers[name]
        submodule.__dict__[name] = None
    try:
        with replace_attributes(torch.nn.Module, register_buffer=keep_plain):
            yield
    finally:
        for submodule, name in empty:
            submodule.__dict__.pop(name, None)
            submodule._buffers[name] = None
