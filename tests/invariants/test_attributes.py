"""Attributes exist, in code too that never runs here: where torch is missing, no test would see a renamed field."""

import ast

import pytest

from tests.invariants.attributes import Attributes
from tests.sources import PACKAGES, modules_in, name_of, tree_of

DECLARATIONS = """
class Loop(NamedTuple):
    index: int
class Step(int):
    loop: Loop
    def __init__(self): self.begun = True
    @property
    def is_last(self): ...
class Wrapped(Unknown):
    loop: Loop
"""


def wrong_reads(code: str) -> list[str]:
    return [
        read.partition(" ")[2] for read in Attributes({"m.py": ast.parse(DECLARATIONS + code)}).wrong_reads()
    ]


def test_modules_read_only_declared_attributes() -> None:
    attributes = Attributes({name_of(path): tree_of(path) for path in modules_in(*PACKAGES)})
    assert not list(attributes.wrong_reads())
    assert attributes.checked > 25_000


def test_an_outdated_field_name_in_a_loop_is_found() -> None:
    """Its tests need torch, and lists of anything hid what its locals are until they were annotated."""
    texts = {name_of(path): path.read_text() for path in modules_in("pulse/torch/replacements")}
    texts["pulse/torch/replacements/loops.py"] = texts["pulse/torch/replacements/loops.py"].replace(
        "loop.loop_index", "loop.number"
    )
    attributes = Attributes({name: ast.parse(text) for name, text in texts.items()})
    reads = [read.partition(" ")[2] for read in attributes.wrong_reads()]
    assert set(reads) == {"loop.number"}


@pytest.mark.parametrize(
    "code",
    [
        "def f(loop: Loop): return loop.number",
        "def f(loop: 'Loop | None'): return loop.number",
        "def f(x):\n    loop: Loop = x[0]\n    return loop.number",
        "async def f(*, step: Step): return step.loop.number",
        "class Owner:\n    loop: Loop\n    def f(self): return self.number",
        "class Owner:\n    loop: Loop\n    def f(self): return self.loop.number",
    ],
    ids=["parameter", "quoted", "local", "field", "self", "field of self"],
)
def test_an_undeclared_attribute_is_found(code: str) -> None:
    assert [read.rpartition(".")[2] for read in wrong_reads(code)] == ["number"]


@pytest.mark.parametrize(
    "code",
    [
        "def f(step: Step): return step.begun, step.is_last, step.real, step.loop.index, step.loop._asdict",
        "def f(loop: Wrapped): return loop.number",
        "def f(step: Step):\n    if isinstance(step, Special): return step.number",
        "from torch import Loop\ndef f(loop: Loop): return loop.number",
    ],
    ids=["declared", "unknown_base", "narrowed", "imported"],
)
def test_other_attributes_are_left_alone(code: str) -> None:
    assert not wrong_reads(code)
