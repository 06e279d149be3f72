"""Attributes that modules read of annotated names, and what the classes of this repository declare."""

import ast
import builtins
import enum
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from tests.sources import PACKAGES, nodes_in

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
OUTSIDE: Mapping[str, Collection[str]] = {
    **{name: dir(value) for name, value in vars(builtins).items() if isinstance(value, type)},
    **dict.fromkeys(("ABC", "Protocol", "Generic"), dir(object)),
    "NamedTuple": {name for name in dir(NamedTuple("NamedTuple", [])) if name[0] == "_"},
    "Enum": dir(enum.Enum),
    "IntEnum": dir(enum.IntEnum),
}
"""Attributes of classes of other packages; a class with another base may have any attribute.

Those of a tuple are left out: ``index`` and ``count`` of a named tuple are meant as fields.
"""


class ClassDeclaration:
    """A class: its bases, the attributes that it declares, and the annotations of its fields."""

    def __init__(self, node: ast.ClassDef) -> None:
        self.bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
        self.names = {
            *(part.attr for part in nodes_in(node) if isinstance(part, ast.Attribute) and is_written(part)),
            *(part.id for part in nodes_of_body(node) if isinstance(part, ast.Name) and is_written(part)),
            *(name for part in nodes_in(node) for name in names_set_by_text(part)),
        }
        self.annotations: dict[str, ast.expr] = {}
        for part in node.body:
            if isinstance(part, FUNCTIONS | ast.ClassDef):
                self.names.add(part.name)
            elif isinstance(part, ast.AnnAssign):
                self.annotations[ast.unparse(part.target)] = part.annotation


def nodes_of_body(node: ast.ClassDef | FUNCTIONS) -> list[ast.AST]:
    """The nodes of a body without those of the functions and classes in it."""
    nodes: list[ast.AST] = [*node.body]
    for part in nodes:  # which grows on the way
        if not isinstance(part, FUNCTIONS | ast.ClassDef | ast.Lambda):
            nodes += ast.iter_child_nodes(part)
    return nodes


def names_set_by_text(node: ast.AST) -> Iterator[str]:
    """The attribute that ``object.__setattr__(self, "name", value)`` sets."""
    match node:
        case ast.Call(func=ast.Attribute(attr="__setattr__"), args=[_, ast.Constant(value=str(name)), _]):
            yield name
        case _:
            pass


def is_written(target: ast.Attribute | ast.Name) -> bool:
    return isinstance(target.ctx, ast.Store)


class Attributes:
    """The classes of modules, and what is read of them."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self.checked = 0
        self._trees = trees
        self._classes: defaultdict[str, list[ClassDeclaration]] = defaultdict(list)
        for tree in trees.values():
            for node in nodes_in(tree):
                if isinstance(node, ast.ClassDef):
                    self._classes[node.name].append(ClassDeclaration(node))

    def wrong_reads(self) -> Iterator[str]:
        """File, line and text of each read of what the class of a name does not declare."""
        for file, tree in self._trees.items():
            imports = [node for node in nodes_in(tree) if isinstance(node, ast.ImportFrom)]
            others = {
                alias.asname or alias.name
                for node in imports
                if str(node.module).partition(".")[0] not in PACKAGES
                for alias in node.names
            }
            owners = {
                method: node.name
                for node in nodes_in(tree)
                if isinstance(node, ast.ClassDef)
                for method in node.body
            }
            for scope in nodes_in(tree):
                if isinstance(scope, FUNCTIONS):
                    for read in self._wrong_reads(scope, owners.get(scope, ""), others):
                        yield f"{file}:{read.lineno} {ast.unparse(read)}"

    def _wrong_reads(
        self, function: FUNCTIONS, owner: str, others: Collection[str]
    ) -> Iterator[ast.Attribute]:
        """The reads in a function, or in a method of a class: ``self`` is of this class."""
        nodes = nodes_of_body(function)
        parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        annotated: dict[str, ast.expr] = {"self": ast.Name(owner)} | {
            parameter.arg: parameter.annotation for parameter in parameters if parameter.annotation
        }
        annotated |= {
            node.target.id: node.annotation
            for node in nodes
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }
        annotations = {name: value for name, value in annotated.items() if class_in(value) not in others}
        targets = {node.target for node in nodes if isinstance(node, ast.AnnAssign)}
        narrowed = {text for node in nodes if node not in targets for text in narrowed_by(node)}
        for node in nodes:
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in narrowed:
                attributes = self._attributes_of(self._annotation_of(node.value, annotations))
                self.checked += attributes is not None
                if attributes is not None and node.attr not in attributes:
                    yield node

    def _annotation_of(self, value: ast.expr, annotations: Mapping[str, ast.expr]) -> ast.expr | None:
        """The annotation of a name, or of a field of what a name has."""
        if isinstance(value, ast.Name):
            return annotations.get(value.id)
        if isinstance(value, ast.Attribute) and (owner := self._annotation_of(value.value, annotations)):
            declarations = self._classes.get(class_in(owner), [])
            fields = [declaration.annotations.get(value.attr) for declaration in declarations]
            return fields[0] if len(fields) == 1 else None
        return None

    def _attributes_of(self, annotation: ast.expr | None) -> frozenset[str] | None:
        """The attributes of a class of the repository; None for other annotations, and if they are not all known."""
        name = class_in(annotation) if annotation else ""
        return self._declared_names(name) if len(self._classes.get(name, [])) == 1 else None

    def _declared_names(self, name: str) -> frozenset[str] | None:
        if name not in self._classes:
            return frozenset(OUTSIDE[name]) if name in OUTSIDE else None
        (declaration, *others) = self._classes[name]
        inherited = [self._declared_names(base) for base in declaration.bases]
        if others or None in inherited or "__getattr__" in declaration.names:
            return None
        return frozenset(declaration.names).union(
            dir(object), {"__dict__", "__dataclass_fields__"}, *inherited
        )


def class_in(annotation: ast.expr) -> str:
    """The class of an annotation: ``Name``, ``"Name"``, ``Name[…]`` or ``Name | None``; empty for others."""
    match annotation:
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
            return name
        case ast.Constant(value=str(text)):
            return class_in(ast.parse(text, mode="eval").body)
        case ast.BinOp(left=left, right=ast.Constant(value=None)):
            return class_in(left)
        case _:
            return ""


def narrowed_by(node: ast.AST) -> Iterator[str]:
    """The texts that a node finds to be of a narrower class, or binds again: pyright knows more of them."""
    match node:
        case ast.Call(func=ast.Name(id="isinstance" | "hasattr" | "issubclass"), args=[value, *_]):
            yield ast.unparse(value)
        case ast.Match(subject=value):
            yield from (ast.unparse(part) for part in getattr(value, "elts", [value]))
        case ast.Name(ctx=ast.Store()):
            yield node.id
        case _:
            pass
