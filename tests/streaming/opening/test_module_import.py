"""Models named ``package.module:name``: parsing, imports and errors, without PyTorch."""

import importlib.util
import sys
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

import pytest

import pulse.torch
from pulse.errors import InputError
from streaming.opening.module_import import import_named, read_module_name
from tests.streaming.command import refusal

pytestmark = pytest.mark.usefixtures("working_folder")


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        pytest.param(PurePosixPath("app:make"), ("app", "make"), id="posix app:make"),
        pytest.param(
            PurePosixPath("my.models:Net.make"), ("my.models", "Net.make"), id="posix my.models:Net.make"
        ),
        pytest.param(
            PurePosixPath("some-where/app.py:make"),
            ("some-where/app.py", "make"),
            id="posix some-where/app.py:make",
        ),
        pytest.param(
            PureWindowsPath(r"C:\models\app.py:make"),
            (r"C:\models\app.py", "make"),
            id="windows C:\\models\\app.py:make",
        ),
        pytest.param(PurePosixPath("model.onnx"), None, id="posix model.onnx"),
        pytest.param(PurePosixPath("http://host/model"), None, id="posix http://host/model"),
        pytest.param(PurePosixPath("app:my-model"), None, id="posix app:my-model"),
        pytest.param(PureWindowsPath(r"C:\models\model.onnx"), None, id="windows C:\\models\\model.onnx"),
        pytest.param(PureWindowsPath("C:model.onnx"), None, id="windows C:model.onnx"),
        pytest.param(PureWindowsPath("C:model"), None, id="windows C:model"),
    ],
)
def test_names_of_modules_are_read(path: PurePath, parts: tuple[str, str] | None) -> None:
    name = read_module_name(path)
    assert (name and (name.source, name.attribute)) == parts


def test_a_file_of_this_name_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "app:make").write_bytes(b"")
    assert read_module_name(tmp_path / "app:make") is None
    assert "not an ONNX model" in refusal("check", "app:make")


def import_text(text: str) -> int | type:
    name = read_module_name(PurePosixPath(text))
    assert name is not None
    return import_named(name)


def test_modules_are_imported_by_file_and_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "beside_18.py").write_text("NUMBER = 4\n")
    code = "from dataclasses import dataclass\nfrom beside_18 import NUMBER\nprint('loud')\n"
    code += "@dataclass\nclass Size:\n    frames: 'int' = NUMBER\nBIG = 7\n"
    (tmp_path / "some-app.py").write_text(code)
    assert import_text("some-app.py:Size")().frames == import_text("beside_18:NUMBER") == 4
    assert import_text("some-app.py:Size.frames") == 4
    assert import_text(f"{tmp_path}/some-app.py:BIG") == 7
    captured = capsys.readouterr()
    assert "loud" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none_18:x", "Python finds no module none_18, neither in "),
        ("app_18.more:x", "Python finds no module app_18.more"),
        ("none_18.py:x", "no such file none_18.py"),
        ("app_18:mak", "app_18 has no 'mak'; it has make"),
        ("app_18:make.x", "app_18 has no 'x'; it has no public names"),
        ("bad_18:x", r"import of bad_18 raises ValueError: no weights \(.*bad_18.py, line 2\)"),
        ("bad_18.py:x", r"import of bad_18.py raises ValueError: no weights"),
        ("needy_18:x", "raises ModuleNotFoundError: No module named 'missing_18' .*needy_18.py, line 1"),
        ("ends_18:x", r"raises SystemExit: 3 \(.*ends_18.py, line 2\)"),
    ],
)
def test_failed_imports_are_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "app_18.py").write_text("def make():\n    return 1\n")
    (tmp_path / "bad_18.py").write_text("x = 1\nraise ValueError('no weights\\nat all')\n")
    (tmp_path / "needy_18.py").write_text("import missing_18\n")
    (tmp_path / "ends_18.py").write_text("import sys\nsys.exit(3)\n")
    with pytest.raises(InputError, match=words):
        import_text(name)


def test_without_torch_a_module_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        pulse.torch.module_loading, "find_spec", lambda name: None if name == "torch" else find(name)
    )
    assert "a module needs PyTorch; pip install 'pulse-stream[torch]'" in refusal("check", "app:make")


def test_options_of_a_module_are_refused_for_anything_else() -> None:
    assert "--example is for a PyTorch module" in refusal("check", "--example", "1,1,8")
    message = refusal("bench", "model.onnx", "--method", "encode")
    assert "--method is for a PyTorch module" in message
    assert "model.onnx is not one" in message
    assert "a recipe names a model file, not code" in refusal("recipe", "app:make")
