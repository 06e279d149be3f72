"""Export PyTorch modules with PyTorch's own exporter, in memory, and compare each model with its module."""

from pulse.torch.module_loading import convert_module, from_torch, import_torch, load_module

__all__ = ["convert_module", "from_torch", "import_torch", "load_module"]
