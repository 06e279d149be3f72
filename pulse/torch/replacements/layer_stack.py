"""The exporter's stack of layers, restored if a layer raises an error that its caller catches."""

import contextlib
from collections.abc import Generator
from functools import wraps
from importlib import import_module
from typing import Any

from pulse.torch.replacements.attributes import replace_attributes


@contextlib.contextmanager
def restore_layer_stack() -> Generator[None]:
    """Within this context, a layer that raises leaves the tracer's stack of layers as it was.

    Containers call a layer with an argument that it may lack, catch TypeError, and call it again without.
    """
    tracer: Any = import_module("torch.fx").Tracer
    call_module = tracer.call_module

    @wraps(call_module)
    def call_and_restore(self: Any, *arguments: Any, **named: Any) -> Any:
        before = list(self.module_stack.items())
        try:
            return call_module(self, *arguments, **named)
        except Exception:
            self.module_stack.clear()
            self.module_stack.update(before)
            raise

    with replace_attributes(tracer, call_module=call_and_restore):
        yield
