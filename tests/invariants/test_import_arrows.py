"""Allowed imports: no clock, device or thread in pulse; no cycle; layers import only what is below."""

import re
from pathlib import Path

import pytest

from docs.tables.layer_list import LAYERS, layer_of, members, modules, packages_of
from docs.tables.layers import DOCUMENT, draw_layers
from tests.invariants.imports import cycle, import_graph, imports_of, own_names
from tests.sources import modules_in, name_of, tree_of

TIME = {
    "streaming",
    "sounddevice",
    "anyio",
    "trio",
    "asyncio",
    "threading",
    "multiprocessing",
    "queue",
    "time",
    "sched",
}
ALLOWED = {
    "pulse.client": {"streaming"},  # a name of streaming.client, which nothing in pulse imports
    "pulse.jit.compiled": {"threading"},  # a lock: two threads may ask for one function at once
    "pulse.jit.events": {"threading"},  # a lock: one thread may set an event that another one closes
    # a lock: PyTorch's exporter changes the process, so one export runs at a time
    "pulse.torch.module_loading": {"threading"},
    "pulse.torch.own_thread": {"threading"},  # which thread asks: others are answered during an export
    "pulse.program.machine.team": {"threading"},  # the threads that share long steps
    "pulse.program.specialise.specialised_kernels": {"time"},  # after which nothing more is compiled
    "pulse.program.machine.machine": {"time"},  # how long a tick of the cycle counter is
}

FACES = {"pulse.api", "pulse.client", "pulse.onnx.proto"}
"""Modules that offer names of others."""


def test_pulse_imports_no_clocks_or_threads() -> None:
    files = modules(packages=("pulse",))
    assert files
    for name, path in files.items():
        imported = {package for module in imports_of(path) for package in packages_of(module)}
        assert imported & TIME <= ALLOWED.get(name, set()), name


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    return import_graph(modules())


def test_imports_have_no_cycle(graph: dict[str, set[str]]) -> None:
    assert not cycle(graph)


def test_layers_import_lower_layers_only(graph: dict[str, set[str]]) -> None:
    order = list(LAYERS)
    wrong = [
        f"{name} ({layer_of(name)}) imports {other} ({layer_of(other)})"
        for name, others in graph.items()
        for other in sorted(others)
        if order.index(layer_of(other)) > order.index(layer_of(name))
    ]
    assert not wrong


def test_names_are_imported_from_the_modules_that_define_them() -> None:
    """Packages offer names of their modules; so do ``FACES``."""
    files = modules()
    defined = {
        name: set(own_names(tree_of(path)))
        for name, path in files.items()
        if path.stem != "__init__" and name not in FACES
    }
    indirect: set[str] = set()
    for name, path in files.items():
        for imported in imports_of(path):
            module, _, taken = imported.rpartition(".")
            if module in defined and taken not in defined[module]:
                indirect.add(f"{name}: {imported}")
    assert not indirect


def test_only_jit_uses_the_inner_parts_of_numba() -> None:
    users = {
        name
        for name, path in modules().items()
        for imported in (*imports_of(path), *re.findall(r"\bnumba\.\w+", path.read_text()))
        if imported.startswith(("llvmlite", "numba.")) and imported != "numba.njit"
    }
    assert users
    assert {layer_of(name) for name in users} == {"jit"}


def test_every_module_has_a_layer() -> None:
    named = [member for layer in LAYERS for member in members(layer)]
    assert len(set(named)) == len(named)
    packages = {package for name in modules() for package in packages_of(name)}
    assert set(named) <= packages
    for package in ("pulse", "streaming"):
        parts = {name for name in modules() if name.count(".") == 1 and name.startswith(f"{package}.")}
        assert parts <= set(named)


def test_the_drawing_of_layers_is_current() -> None:
    assert DOCUMENT.read_text() == draw_layers(DOCUMENT.read_text()), "run: python -m docs.tables layers"


def test_tables_take_only_cases_and_their_outcomes_from_tests() -> None:
    """Their pages tell of the cases of tests; what tests and tables share otherwise is in ``docs``."""
    allowed = ("tests.pulse.cases.", "tests.pulse.tflite.cases.", "tests.conformance.node_")
    taken = {(name_of(path), name) for path in modules_in("docs") for name in imports_of(path)}
    taken = {(file, name) for file, name in taken if name.startswith("tests.")}
    assert taken
    assert not {(file, name) for file, name in taken if not name.startswith(allowed)}


@pytest.mark.parametrize(
    "text",
    [
        "import p.a",
        "from p import a",
        "from p.a import name",
        "def f():\n    from p.a import name",
        "async def f():\n    import p.a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import name",
    ],
)
def test_cycles_are_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "p").mkdir()
    for name, content in {"__init__": "", "a": "import p.b", "b": "import p.c", "c": text}.items():
        (tmp_path / "p" / f"{name}.py").write_text(content)
    assert {"p.a", "p.b", "p.c"} == set(cycle(import_graph(modules(tmp_path, ("p",)))))
    imports_of.cache_clear()
    (tmp_path / "p" / "c.py").write_text("import p")
    assert not cycle(import_graph(modules(tmp_path, ("p",))))
