"""PyTorch, with what its exporter needs: without either, tests that import this are skipped."""

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'pulse-stream[torch]'")
pytest.importorskip("onnxscript", reason="the exporter needs onnxscript")
nn, F = torch.nn, torch.nn.functional
