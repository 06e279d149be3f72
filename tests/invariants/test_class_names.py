"""A class has a name of its own: in an error or an annotation, the name alone says which class it is."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping

from tests.sources import modules_in, name_of, nodes_in, tree_of

FOLDERS = ("pulse", "streaming")
SHARED = {
    "Node": ("pulse/build/nodes.py", "pulse/graph.py"),
    "Session": ("pulse/tensorflow/session.py", "streaming/session.py"),
}
"""Public names of a package's users, after the words of Aidge and of TensorFlow, and the files of their classes."""


def files_of(trees: Iterable[tuple[str, ast.Module]]) -> Mapping[str, tuple[str, ...]]:
    """Names without an underscore that several classes have, and the files of the classes, sorted."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    for file, tree in trees:
        for node in nodes_in(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].append(file)
    return {name: tuple(sorted(where)) for name, where in files.items() if len(where) > 1}


def test_shared_names_are_found() -> None:
    texts = {"a": "class Step: ...\nclass _Own: ...", "b": "if True:\n    class Step: ...\nclass _Own: ..."}
    assert files_of((file, ast.parse(text)) for file, text in texts.items()) == {"Step": ("a", "b")}


def test_classes_have_names_of_their_own() -> None:
    assert files_of((name_of(path), tree_of(path)) for path in modules_in(*FOLDERS)) == SHARED
