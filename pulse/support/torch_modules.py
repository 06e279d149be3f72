"""PyTorch modules, recognised without importing PyTorch."""

import sys
from typing import Any


def is_module(source: object) -> bool:
    """Return whether a source is a PyTorch module; without PyTorch in the process, nothing is."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(source, torch.nn.Module)
