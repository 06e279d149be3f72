"""The message classes of ONNX, from the installed onnx or without importing it."""

import subprocess
import sys

import onnx
import pytest

from pulse.onnx import proto


def test_messages_equal_those_of_onnx() -> None:
    assert all(getattr(proto, name) is getattr(onnx, name) for name in proto.__all__)


def test_messages_equal_those_of_a_later_import_of_onnx() -> None:
    code = "from pulse.onnx.proto import ModelProto; import onnx; assert onnx.ModelProto is ModelProto"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_message_module_imports_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proto, "MODULE", "onnx.nothing")
    assert proto.onnx_messages() is onnx
