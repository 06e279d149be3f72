"""The repository's vocabulary: the words of its code, its files, and the commands with their options."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import typer.main

from streaming.cli.commands import app
from tests.sources import ROOT, modules_in, name_of, nodes_in, tree_of

FOLDERS = ("pulse", "streaming", "bench", "demos", "docs", "tests")
WORD = re.compile(r"[^\W\d]\w*")


@cache
def files() -> frozenset[str]:
    """The files and folders of the repository; folders end with a slash."""
    inside = [path for folder in (*FOLDERS, ".ci") for path in (ROOT / folder).rglob("*")]
    paths = [path for path in (*inside, *ROOT.iterdir()) if "__pycache__" not in path.parts]
    return frozenset(f"{path.relative_to(ROOT).as_posix()}{'/' * path.is_dir()}" for path in paths)


@cache
def words() -> frozenset[str]:
    """The identifiers of the code, and the words of its strings other than docstrings."""
    names: set[str] = {path.rstrip("/").rpartition("/")[2].removesuffix(".py") for path in files()}
    for path in modules_in(*FOLDERS):
        if path.parent != ROOT / "tests" / "documents":
            names.update(_words_of(tree_of(path)))
    names.update(WORD.findall((ROOT / "pyproject.toml").read_text("utf-8")))
    return frozenset(names)


def _words_of(tree: ast.Module) -> Iterator[str]:
    texts = {id(node.value) for node in nodes_in(tree) if isinstance(node, ast.Expr)}
    for node in nodes_in(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.keyword(arg=str(name)) | ast.alias(name=name):
                yield from WORD.findall(name)
            case ast.Constant(value=str(text)) if id(node) not in texts:
                yield from WORD.findall(text)
            case _:
                pass


@cache
def modules() -> dict[str, list[frozenset[str]]]:
    """Last part of a module's name -> the classes and constants that each such module of ours defines."""
    by_name: dict[str, list[frozenset[str]]] = {}
    for path in modules_in(*FOLDERS):
        body = tree_of(path).body
        targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
        targets += [node.target for node in body if isinstance(node, ast.AnnAssign)]
        classes = [node.name for node in body if isinstance(node, ast.ClassDef)]
        defined = frozenset([*classes, *(target.id for target in targets if isinstance(target, ast.Name))])
        by_name.setdefault(path.stem if path.stem != "__init__" else path.parent.name, []).append(defined)
    return by_name


@cache
def members() -> dict[str, frozenset[str]]:
    """Class -> its methods, fields and attributes set on ``self``, with those of our base classes."""
    own_names: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for path in modules_in("pulse", "streaming"):
        for node in nodes_in(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                own_names.setdefault(node.name, set()).update(_members_of(node))
                names = {base.id for base in node.bases if isinstance(base, ast.Name)}
                bases.setdefault(node.name, set()).update(names)

    def inherited_names(name: str, below: frozenset[str]) -> frozenset[str]:
        above = bases.get(name, set()) - below
        return frozenset(own_names.get(name, ())).union(
            *(inherited_names(base, below | {name}) for base in above)
        )

    return {name: inherited_names(name, frozenset()) for name in own_names}


def _members_of(kind: ast.ClassDef) -> Iterator[str]:
    for node in ast.walk(kind):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name
            case _:
                pass


@cache
def docstrings(folder: str) -> dict[str, str]:
    """File -> its docstrings and the notes below its fields, with single spaces."""
    collected: dict[str, str] = {}
    for path in modules_in(folder):
        texts = [
            node.value.value
            for node in nodes_in(tree_of(path))
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ]
        collected[name_of(path)] = " ".join(" ".join(text.split()) for text in texts if isinstance(text, str))
    return collected


@cache
def messages(folder: str) -> dict[str, str]:
    """File -> the strings of its code with three words and more, a line each; values inside of them are ``…``."""
    collected: dict[str, str] = {}
    for path in modules_in(folder):
        nodes = list(nodes_in(tree_of(path)))
        parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        parts |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        texts = [_text_of(node) for node in nodes if id(node) not in parts]
        collected[name_of(path)] = "\n".join(text for text in texts if len(text.split()) > 2)
    return collected


def _text_of(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text_of(part) or "…" for part in values)
        case _:
            return ""


@cache
def texts() -> frozenset[str]:
    """The strings in the code of ``pulse``."""
    nodes = (node for path in modules_in("pulse") for node in nodes_in(tree_of(path)))
    values = (node.value for node in nodes if isinstance(node, ast.Constant))
    return frozenset(text for text in values if isinstance(text, str))


@cache
def commands() -> dict[str, frozenset[str]]:
    """Command of ``pulse`` -> its options; those of ``pulse`` itself under the empty name."""
    group = typer.main.get_command(app)
    by_name = {"": group, **group.commands}  # typer types it too widely
    return {
        name: frozenset(
            option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
        )
        | {"--help"}
        for name, command in by_name.items()
    }


@cache
def script_options() -> frozenset[str]:
    """The options of the scripts: strings that begin with two hyphens in the code that ``python -m`` runs."""
    texts = [
        path.read_text("utf-8")
        for folder in ("bench", "demos", "docs", "tests")
        for path in (ROOT / folder).rglob("*.py")
    ]
    return frozenset(option for text in texts for option in re.findall(r"\"(--[a-z][a-z-]+)\"", text))
