"""Operators from outside of the package: those of docs/extend.md, of plugins, and unknown ones."""

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

import pulse
from pulse.errors import CompileError, InputError, LoadError, PulsifyError
from pulse.extend import NodeContext, OutletId
from pulse.jit.registry import KERNELS
from pulse.onnx import registry
from pulse.program import lowering
from pulse.program.whole_stream import run_whole
from pulse.support import plugins
from pulse.support.registry import Registry
from tests.sources import ROOT

DOCUMENT = ROOT / "docs" / "extend.md"
X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(1, 24)


@pytest.fixture(autouse=True)
def isolated_registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test has operators, lowerings, kernels and modules of its own."""
    for ours in ("pulse.program.lower.families", "pulse.program.kernels.families"):
        import_module(ours)
    monkeypatch.setattr(registry, "USER_TRANSLATORS", {})
    monkeypatch.setattr(lowering, "LOWER", Registry(lowering.LOWER))
    kernels, modules = dict(KERNELS), set(sys.modules)
    plugins.load_plugins.cache_clear()
    yield
    KERNELS.clear()
    KERNELS.update(kernels)
    for name in set(sys.modules) - modules:
        if name.startswith("my_sounds"):
            del sys.modules[name]
    plugins.load_plugins.cache_clear()


def write_modules(folder: Path) -> None:
    """The modules of the page, as a package on the path."""
    package = folder / "my_sounds"
    package.mkdir()
    (package / "__init__.py").write_text("")
    blocks = re.findall(r"```python\n# my_sounds/(\w+\.py)\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert [name for name, _ in blocks] == ["mix.py", "companding.py", "kernels.py"]
    for name, code in blocks:
        (package / name).write_text(code)


def install(folder: Path, entries: str) -> None:
    """A distribution beside the modules, with these entry points."""
    info = folder / "my_sounds-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-sounds\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(entries)


def entry_points() -> str:
    """The entry points of the page, as an installer writes them."""
    (block,) = re.findall(r"```toml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    return re.sub(r'\[project\.entry-points\."(.*?)"\]', r"[\1]", block).replace('"', "")


def model(kind: str, stated: Any = ("1", "T"), reads: str = "x", **attributes: Any) -> ModelProto:
    """A model of one node of the domain my.sounds; ``stated`` is the shape that the file gives its output."""
    operator = helper.make_node(kind, reads.split(), ["y"], "unit", domain="my.sounds", **attributes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "T"])
    shape = None if stated is None else [int(dim) if dim.isdigit() else dim for dim in stated]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
    graph = helper.make_graph([operator], "case", [x], [y])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("my.sounds", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def mu_law(x: np.ndarray) -> np.ndarray:
    return np.sign(x) * np.log1p(255 * np.abs(x)) / np.log1p(255)


def stream_output(program: Any) -> np.ndarray:
    return run_whole(program.spawn(), {"x": X}, np.nan)[0]["y"]


def test_the_operators_of_the_page_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its operators load, run and stream, the second one by its kernel."""
    write_modules(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    import_module("my_sounds.mix")
    import_module("my_sounds.companding")
    typed = pulse.load(model("DryWet", reads="x x", amount=0.25)).analyse()
    np.testing.assert_allclose(typed.run(X)["y"], X, atol=1e-7)
    typed = pulse.load(model("MuLaw")).analyse()
    np.testing.assert_allclose(typed.run(X)["y"], mu_law(X), atol=1e-6)
    pulsed = typed.declutter().pulsify(pulse=5)
    np.testing.assert_allclose(stream_output(pulsed.compile("numpy")), mu_law(X), atol=1e-6)
    with pytest.raises(CompileError, match="no kernel for y"):
        pulsed.compile()
    import_module("my_sounds.kernels")
    np.testing.assert_allclose(stream_output(pulsed.compile()), mu_law(X), atol=1e-6)


def test_an_installed_plugin_is_found_by_its_entry_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operators and kernels are found by their entry points, without an import."""
    write_modules(tmp_path)
    install(tmp_path, entry_points())
    monkeypatch.syspath_prepend(tmp_path)
    program = pulse.stream(model("MuLaw"), pulse=8)
    np.testing.assert_allclose(stream_output(program), mu_law(X), atol=1e-6)


def test_a_broken_plugin_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "[pulse.operators]\nmix = my_sounds.nothing\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        LoadError, match=r"mix = my_sounds.nothing of my-sounds 1.2 cannot be imported \(ModuleNot"
    ):
        pulse.load(model("MuLaw", None)).analyse()
    pulse.load(onnx.parser.parse_model(PLAIN)).analyse()


PLAIN = """<ir_version: 8, opset_import: ["" : 17]> case (float[1, T] x) => (float[1, T] y) { y = Relu(x) }"""


def test_an_unknown_operator_is_kept() -> None:
    """The operator loads with its attributes, is refused by name in a stream, and fails when it is executed."""
    loaded = pulse.load(model("Echo", taps=[1, 2]))
    assert any("y = my.sounds::Echo(x) taps=[1, 2]" in line for line in loaded.model.lines())
    typed = loaded.analyse()
    assert str(typed.outputs["y"]) == "1,T,f32"
    with pytest.raises(
        InputError, match=r'y \(my.sounds::Echo\).*register it with @pulse.operator\("my.sounds::Echo"'
    ):
        typed.run(X)
    with pytest.raises(PulsifyError, match=r"y .my.sounds::Echo.*the operator is not supported"):
        typed.declutter().pulsify(pulse=4)


@pytest.mark.parametrize("stated", [None, ("1", "U")])
def test_an_unknown_operator_of_unknown_shape_is_refused(stated: Any) -> None:
    with pytest.raises(LoadError, match=r"my.sounds::Echo"):
        pulse.load(model("Echo", stated)).analyse()


def identity(node: NodeContext) -> OutletId:
    return node.input(0)


def test_the_first_call_knows_the_supported_operators() -> None:
    code = """
import pulse
try:
    pulse.operator("Relu")(lambda node: node.input(0))
except pulse.LoadError as error:
    print(error)
"""
    process = subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True
    )
    assert "Relu already exists" in process.stdout


def test_a_supported_operator_is_replaced_only_on_demand() -> None:
    with pytest.raises(LoadError, match=r"Relu already exists; use operator\('Relu', override=True\)"):
        pulse.operator("Relu")(identity)
    pulse.operator("Relu", override=True)(identity)
    typed = pulse.load(onnx.parser.parse_model(PLAIN)).analyse()
    np.testing.assert_array_equal(typed.run(X)["y"], X)


def test_an_operator_is_taken_once() -> None:
    """A function that is defined again replaces itself; another one is refused."""
    pulse.operator("my.sounds::Echo")(identity)
    pulse.operator("my.sounds::Echo")(identity)
    with pytest.raises(LoadError, match=r"my.sounds::Echo already exists"):
        pulse.operator("my.sounds::Echo")(lambda node: node.input(0))
