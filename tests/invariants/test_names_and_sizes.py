"""No function is a bare participle, no local a vague word; functions fit on a screen, files on a few screens."""

import ast
import itertools
import re
from collections.abc import Iterator

import pytest

from tests.invariants.limits import FOLDERS, MAX_BODY_LINES, MAX_LINES, MAX_TEST_NAME, PACKAGES, VAGUE
from tests.sources import ROOT, modules_in, name_of, nodes_in, tree_of

ENDINGS = (".c", ".css", ".h", ".html", ".js", ".mjs", ".py", ".sh", ".ts")

IRREGULAR = """
    begun bent bought broken brought built caught chosen done drawn driven fallen fed felt forgotten found frozen
    given gone got gotten grown had heard held hidden hung kept known laid led left lent lost made meant met
    overwritten paid proven rebuilt rewritten said seen sent shaken shown sold sought spent stolen struck swept taken
    taught thought thrown told torn undone withdrawn won worn woven written
"""
"""Participles without an ending of their own; not those that are verbs too, such as cut, put, read, set and split."""
ENDED_PARTICIPLE = re.compile(r"[a-z0-9]+(ed|ing)")
PARTICLES = {"apart", "away", "back", "down", "in", "off", "on", "out", "over", "together", "up"}
"""A participle with one of these is still one: ``laid_out``."""
PREPOSITIONS = """
    about above across after against along among around as at before behind below beneath beside besides between
    beyond by down during for from in inside into near of off on onto out outside over past per round since through
    throughout till to toward towards under until up upon via with within without
"""
ADJECTIVES = {"both", "either", "plain", "spatial"}
"""Adjectives and pronouns that once were names of functions, without the noun: ``plain``."""
WORDS = {
    "embed": "a verb",
    "feed": "a verb",
    "need": "a verb",
    "ping": "a verb, and the frame of WebSocket",
    "ring": "a verb",
    "round": "a verb",
    "chunking": "a noun: how a model is called",
    "hamming": "a name: the window of R. W. Hamming",
    "listing": "a noun: the text of a program",
    "mapping": "a noun: an object of JSON",
    "ranking": "a noun: workers from the best to the worst",
    "sampling": "a noun: where an interpolation reads",
    "timing": "a noun: frames before and after a resampler",
    "to": "a name: PyTorch's method",
}
"""Function names that only look like participles or prepositions."""


def is_participle(word: str) -> bool:
    """Whether a word is a participle, or one with a particle: ``laid_out``."""
    stem, _, particle = word.rpartition("_")
    if particle in PARTICLES and stem:
        return is_participle(stem)
    return word not in WORDS and (word in IRREGULAR.split() or bool(ENDED_PARTICIPLE.fullmatch(word)))


def is_preposition(word: str) -> bool:
    return word not in WORDS and word in PREPOSITIONS.split()


def decorators_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    return [ast.unparse(decorator) for decorator in function.decorator_list]


def is_statement(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is a property that says yes or no, such as ``muted``, or sets it."""
    decorators = decorators_of(function)
    gives_bool = function.returns is not None and ast.unparse(function.returns) == "bool"
    is_setter = any(decorator.endswith(".setter") for decorator in decorators)
    return is_setter or (gives_bool and "property" in decorators)


def is_constructor(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it makes an instance from something else: ``Digest.of(content)`` reads as a noun."""
    makers = {"classmethod", "staticmethod"}
    return function.name in ("of", "at", "over") and not makers.isdisjoint(decorators_of(function))


def misnamed_functions(tree: ast.Module) -> Iterator[str]:
    """The names of functions that are bare participles, adjectives or prepositions."""
    for node in nodes_in(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        word = node.name.strip("_")
        if (is_participle(word) or word in ADJECTIVES) and not is_statement(node):
            yield word
        if is_preposition(word) and not is_constructor(node):
            yield word


@pytest.mark.parametrize("folder", FOLDERS)
def test_functions_are_no_bare_participles_or_prepositions(folder: str) -> None:
    wrong = [
        f"{name_of(path)}: {function}"
        for path in modules_in(folder)
        for function in misnamed_functions(tree_of(path))
    ]
    assert not wrong


def vague_names(tree: ast.Module) -> list[str]:
    """The names of parameters and locals in ``VAGUE``; fields of classes may have them."""
    names: list[str] = []
    nodes = list(nodes_in(tree))
    fields = {
        id(statement.target)
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if id(node) not in fields:
                names.append(name)
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                names.append(name)
            case _:
                pass
    return [name for name in names if name in VAGUE]


def test_locals_are_no_vague_words() -> None:
    wrong = {name_of(path): names for path in modules_in(*FOLDERS) if (names := vague_names(tree_of(path)))}
    assert not wrong


OTHER_LIMITS = re.compile(r"_?(MOST|LEAST|LARGEST|SMALLEST|LONGEST|SHORTEST|HIGHEST|LOWEST|FEWEST)(_|$)")
LIMIT_TEXT = re.compile(
    r"The (default )?(most|least|largest|smallest|greatest|longest|shortest|highest|lowest|fewest)\b"
    r"|(Default m|M)(aximum|inimum)\b"
)
TIMEOUT_TEXT = re.compile(r"The seconds that \S.* may take\b")


def misnamed_limits(tree: ast.Module) -> list[str]:
    """Constants that their names or docstrings call limits, but not ``MAX_``, ``MIN_`` or ``_TIMEOUT_S``."""
    names: list[str] = []
    for statement, after in itertools.zip_longest(tree.body, tree.body[1:]):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                pass
            case _:
                continue
        text = ""
        match after:
            case ast.Expr(value=ast.Constant(value=str(text))):
                pass
            case _:
                pass
        if not name.isupper():
            continue
        is_limit = OTHER_LIMITS.match(name) or LIMIT_TEXT.match(text)
        is_timeout = TIMEOUT_TEXT.match(text)
        if (is_limit and not re.match(r"_?(MAX|MIN)_", name)) or (
            is_timeout and not name.endswith("_TIMEOUT_S")
        ):
            names.append(name)
    return names


def test_limits_are_called_min_and_max() -> None:
    wrong = {
        name_of(path): names for path in modules_in(*FOLDERS) if (names := misnamed_limits(tree_of(path)))
    }
    assert not wrong


SCRIPT_CONSTANT = re.compile(r"^(?:export )?(?:const|let) ([A-Z][A-Z0-9_]+)\b", re.M)
SCRIPT_FUNCTION = re.compile(
    r"^ *(?:export )?(?:static |async )*(?:function )?(\w+)\([^()]*(?:\([^()]*\)[^()]*)*\) \{$"
    r"|^ *(?:export )?const (\w+) = (?:async )?(?:\([^()]*\)|\w+) =>",
    re.M,
)


def misnamed_in_script(text: str) -> list[str]:
    """The limits of a script that are not ``MAX_`` or ``MIN_``, and its functions that are bare participles."""
    names = [name for name in SCRIPT_CONSTANT.findall(text) if OTHER_LIMITS.match(name)]
    functions = [method or arrow for method, arrow in SCRIPT_FUNCTION.findall(text)]
    return names + [name for name in functions if is_participle(name.strip("_"))]


def test_scripts_follow_the_rules_of_names() -> None:
    scripts = [path for folder in PACKAGES for path in sorted((ROOT / folder).rglob("*.js"))]
    texts = {name_of(path): path.read_text("utf-8") for path in scripts}
    assert len(texts) > 5
    assert all(SCRIPT_FUNCTION.search(text) for text in texts.values())
    assert not {name: names for name, text in texts.items() if (names := misnamed_in_script(text))}


def test_names_of_tests_are_short() -> None:
    wrong = [
        f"{name_of(path)}: {node.name}"
        for path in modules_in("tests")
        for node in nodes_in(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and len(node.name) > MAX_TEST_NAME
    ]
    assert not wrong


def test_files_are_short() -> None:
    files = [
        path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in ENDINGS
    ]
    lengths = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in files}
    assert len(lengths) > len(modules_in(*FOLDERS))
    assert not {name: lines for name, lines in lengths.items() if lines > MAX_LINES}


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function without its signature and its docstring."""
    begin, *rest = function.body
    first = rest[0] if rest and ast.get_docstring(function, clean=False) is not None else begin
    return (function.body[-1].end_lineno or 0) - first.lineno + 1


def test_functions_are_short() -> None:
    wrong = [
        f"{name_of(path)}: {node.name}: {lines} lines"
        for path in modules_in(*PACKAGES)  # cases of tests may be long lists
        for node in nodes_in(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := body_lines(node)) > MAX_BODY_LINES
    ]
    assert not wrong, f"divide them, or join parameters that belong together in a record: {wrong}"


def test_breaches_of_the_rules_of_names_are_found() -> None:
    functions = "def joined(x): ...\ndef of(x): ...\ndef joined_frames(x): ...\n"
    muted = "class A:\n  @property\n  def muted(self) -> bool: ..."
    assert [*misnamed_functions(ast.parse(functions + muted))] == ["joined", "of"]
    assert vague_names(ast.parse("found = told.given")) == ["found"]
    limits = (
        "MOST_ROWS = 8\nSIZE = 8\n'The most rows of a block.'\nOPEN_S = 8\n'The seconds that it may take.'"
    )
    assert misnamed_limits(ast.parse(limits)) == ["MOST_ROWS", "SIZE", "OPEN_S"]
    assert misnamed_in_script("const MOST_ROWS = 6;\nfunction told(x) {\n") == ["MOST_ROWS", "told"]
