"""A class or a type alias has its own name: in an error or an annotation, the name alone says what it is."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from pulse.jit.registry import KERNELS
from pulse.jit.rows.instruction import Instruction
from pulse.program.kernels import families as families
from tests.sources import modules_in, name_of, nodes_in, tree_of

FOLDERS = ("pulse", "streaming")
SHARED = {
    "Node": ("pulse/build/nodes.py", "pulse/graph.py"),
    "Session": ("pulse/tensorflow/session.py", "streaming/session.py"),
}
"""Public names of a package's users, after the words of Aidge and of TensorFlow, and the files that define
them."""


def type_names(tree: ast.Module) -> Iterator[str]:
    """The public names of its classes and type aliases. The result of a call, such as a TypeVar, is not an alias."""
    yield from (
        node.name for node in nodes_in(tree) if isinstance(node, ast.ClassDef) and node.name[0] != "_"
    )
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=value)
            ) if name[0].isupper() and not name.isupper() and not isinstance(value, ast.Call):
                yield name
            case _:
                pass


def files_of(trees: Iterable[tuple[str, ast.Module]]) -> Mapping[str, tuple[str, ...]]:
    """Names that several classes or aliases have, and their files, sorted."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    for file, tree in trees:
        for name in type_names(tree):
            files[name].append(file)
    return {name: tuple(sorted(where)) for name, where in files.items() if len(where) > 1}


def test_classes_and_aliases_have_names_of_their_own() -> None:
    assert files_of((name_of(path), tree_of(path)) for path in modules_in(*FOLDERS)) == SHARED


def test_classes_of_tests_have_names_of_their_own() -> None:
    """Those at the top of a file; one inside of a function is local."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    for path in modules_in("docs", "tests"):
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                files[node.name].append(name_of(path))
    assert not {name: where for name, where in files.items() if len(where) > 1}


def subclasses(base: type[Instruction]) -> Iterator[type[Instruction]]:
    """All classes of the package below it."""
    for subclass in base.__subclasses__():
        if subclass.__module__.startswith("pulse."):
            yield subclass
        yield from subclasses(subclass)


def test_instructions_are_rows_and_their_bases_are_fields() -> None:
    """An instruction that a kernel runs is called ``GruRow``; a base that no kernel runs is ``RecurrentFields``."""
    instructions = {
        instruction
        for instruction in subclasses(Instruction)
        if "kernel" in vars(instruction) and instruction.kernel in KERNELS
    }
    assert len(instructions) > 40
    wrong = {
        instruction.__name__
        for instruction in subclasses(Instruction)
        if not instruction.__name__.endswith("Row" if instruction in instructions else "Fields")
    }
    assert not wrong
