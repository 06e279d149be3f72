"""The names, paths, links, commands and options in the documents exist."""

import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby

import pytest

from pulse.errors import InputError
from tests.documents.pages import Page, expand_braces, package_rows, pages
from tests.documents.vocabulary import commands, files, members, modules, script_options, texts, words
from tests.sources import ROOT, modules_in, nodes_in, tree_of

PAGES = pages().values()
by_name = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)

DOTTED = re.compile(r"@?([^\W\d]\w*(?:\.[^\W\d]\w*)*)(\(.*\))?")
PATH = re.compile(r"[\w.{},*-]+(?:/[\w.{},*-]*)*")
SUFFIXES = (".py", ".md")
OURS = ("pulse", "streaming", "bench", "tests")
OF_OTHERS = {
    "numpy", "scipy", "torch", "torchaudio", "librosa", "onnx", "pickle", "copy", "os", "math", "nn", "module",
    "tf",
}  # fmt: skip
"""Where names begin that other packages explain."""
BUILT = ("build/site",)
"""Folders that a command makes."""
IN_MANY_FOLDERS = ("__init__.py",)
"""Files that a sentence may name without their folder."""
OF_EXTRAS = ("sphinx",)
"""Modules that an extra installs."""
TERMS = {
    *(
        "eventfd",
        "cfunc",
        "nnan",
        "ninf",
        "arcp",
        "nsz",
        "reassoc",
        "contract",
        "sudo",
        "fork",
        "forkserver",
        "fmod",
    ),
    *(
        "apply_lfr",
        "AudioSpectrogram",
        "Mfcc",
        "VADIterator",
        "get_speech_timestamps",
        "max_speech_duration_s",
    ),
    *(
        "jackd2",
        "pulseaudio",
        "my_sounds",
        "Din",
        "log1p_unit",
        "from_polar",
        "amplitude_to_db",
        "microfrontend",
    ),
    *("TensorArray", "TensorList", "axpy"),
}
"""Single words of other systems, and of the formulas on the pages."""


def is_path(span: str) -> bool:
    """Whether a code span names a file or folder of the repository."""
    return (
        bool(PATH.fullmatch(span)) and ("/" in span or span.endswith(SUFFIXES)) and not span.startswith("../")
    )


def files_meant(path: str, page: Page) -> list[str]:
    """The files or folders that a path may mean: one from the page's folder or the root, else all that end with it."""
    if "*" in path:
        return [str(file) for folder in (ROOT, page.folder) for file in folder.glob(path)]
    for folder in (page.folder, ROOT):
        if (folder / path).exists():
            return [path]
    return [file for file in files() if f"/{file}".rstrip("/").endswith(f"/{path.rstrip('/')}")]


def is_found(path: str, page: Page) -> bool:
    """Whether a path means exactly one file or folder of the repository."""
    count = len(files_meant(path, page))
    return count == 1 or (count > 1 and ("*" in path or path in IN_MANY_FOLDERS))


def resolves(dotted: str) -> bool:
    """Whether a dotted name can be imported; if an extra is missing, whether our code has its words."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        try:
            target = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        except InputError:  # it says what to install
            return all(part in words() for part in parts)
        return all((target := getattr(target, part, None)) is not None for part in parts[end:])
    return False


def is_known(dotted: str) -> bool:
    """Whether a name can be imported, is a class or constant of the module before it, or has words of our code."""
    first, *rest = dotted.split(".")
    if first in OF_OTHERS:
        return True
    if first in OURS and rest:
        return resolves(dotted) or dotted in texts() or is_file_of_a_user(dotted)
    if rest and first in members() and rest[0] not in members()[first]:
        return False
    if rest and first[0].islower() and rest[0][0].isupper():
        return any(rest[0] in defined for defined in modules().get(first, ()))
    return all(part in words() or part in TERMS or part.startswith("_") for part in (first, *rest))


def is_file_of_a_user(name: str) -> bool:
    """Whether the last part is a suffix of files."""
    return name.rpartition(".")[2] in ("wav", "onnx", "csv", "npy", "srt", "jsonl", "toml", "mvn")


def simple_commands(line: str) -> Iterator[list[str]]:
    """The words of each command in a line of a shell, comments left out."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    for ends, command in groupby(lexer, lambda word: not word.strip("|&;")):
        if not ends:
            yield list(command)


def wrong_words(command: Sequence[str]) -> list[str]:
    """The options of a command that it does not take, and commands that do not exist."""
    name, *arguments = command
    options = [word.partition("=")[0] for word in arguments if re.match(r"--?[a-z]", word)]
    if name == "pulse":
        command_name = next((word for word in arguments if not word.startswith("-")), "")
        known_options = commands().get(command_name)
        return [" ".join(command)] if known_options is None else sorted({*options} - known_options)
    if name.startswith("python") and "-m" in arguments:
        module = arguments[arguments.index("-m") + 1]
        paths = [word for word in arguments if word.startswith("tests/")]
        ours = module.split(".")[0] in ("bench", "docs", "tests")
        own_arguments = arguments[: arguments.index("--")] if "--" in arguments else arguments
        options_used = {word.partition("=")[0] for word in own_arguments if re.match("--[a-z]", word)}
        return [
            *([] if module in OF_EXTRAS or find_spec(module) else [module]),
            *(path for path in paths if not (ROOT / path).exists()),
            *(sorted(options_used - script_options()) if ours else []),
        ]
    return []


@by_name
def test_paths_and_names_exist(page: Page) -> None:
    spans = [span for span in page.spans() if "<" not in span and "…" not in span]
    paths = [span for span in spans if is_path(span)]
    wrong = [
        path
        for span in paths
        for path in expand_braces(span)
        if path not in BUILT and not is_found(path, page)
    ]
    names = [match[1] for span in spans if span not in paths and (match := DOTTED.fullmatch(span))]
    unknown = [name for name in names if not is_known(name) and not is_file_of_a_user(name)]
    assert not wrong + unknown


def test_names_in_the_table_of_packages_are_of_the_package() -> None:
    """A bare name is a module of the package, or defined or used as a decorator there."""
    rows = [*package_rows()]
    assert len(rows) > 50
    wrong = []
    for paths, contents in rows:
        modules = [
            file
            for path in paths
            for file in ([ROOT / path] if path.endswith(".py") else (ROOT / path).rglob("*.py"))
        ]
        code = "\n".join(file.read_text("utf-8") for file in modules)
        for name in re.findall(r"`@?(\w+)`", contents):
            is_module = any(file.stem == name for file in modules)
            if not is_module and not re.search(rf"(\b(def|class) |@){name}\b", code):
                wrong.append((paths[0], name))
    assert not wrong


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("pulse/program/weights.py", True),
        ("program/weights.py", True),
        ("weights.py", False),  # of two packages and more
        ("pulse/program/kernels/", True),
        ("kernels/nowhere.py", False),
        ("docs/*.md", True),
    ],
)
def test_a_path_means_one_file(path: str, is_one: bool) -> None:
    assert is_found(path, pages()["ARCHITECTURE.md"]) is is_one


@by_name
def test_commands_and_options_exist(page: Page) -> None:
    lines = [line for block in page.blocks("sh") for line in block.replace("\\\n", " ").splitlines()]
    lines += [
        span for span in page.spans() if re.match(r"(pulse|python|pytest) [\w-]", span) and "…" not in span
    ]
    options = [span.split()[0].partition("=")[0] for span in page.spans() if re.match(r"--[a-z]", span)]
    everywhere = frozenset[str]().union(*commands().values()) | script_options()
    assert not [word for line in lines for command in simple_commands(line) for word in wrong_words(command)]
    assert not set(options) - everywhere


@by_name
def test_links_of_pages_have_targets(page: Page) -> None:
    for link in page.links():
        path, _, anchor = link.partition("#")
        target = (page.folder / path).resolve() if path else ROOT / page.name
        assert target.exists(), link
        if anchor:
            assert anchor in pages()[target.relative_to(ROOT).as_posix()].anchors(), link


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("State.step", True),
        ("PulsedModel.pulse", True),
        ("State.stepped", False),
        ("TypedModel.wire", False),
        ("pulse.load", True),
        ("pulse.loaded", False),
        ("team.RowInParts", True),
        ("weights.RowInParts", False),
        ("nowhere.RowInParts", False),
    ],
)
def test_members_are_known(name: str, is_one: bool) -> None:
    assert is_known(name) is is_one


def test_all_pages_and_their_mentions_are_read() -> None:
    assert len(PAGES) > 20
    assert sum(len(page.spans()) for page in PAGES) > 1000


def names_in_docstrings(package: str) -> Iterator[tuple[str, str, str]]:
    """Module, dotted name, and the name with the prefix of our package, where it begins with one of its folders."""
    for path in modules_in(package):
        here = path.relative_to(ROOT)
        for node in nodes_in(tree_of(path)):
            if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
                continue
            for span in re.findall(r"``([^`]+)``", str(node.value.value)):
                match = DOTTED.fullmatch(span)
                if match is None or "." not in match[1] or match[1].endswith(SUFFIXES):
                    continue
                first = match[1].partition(".")[0]
                is_ours = first not in OF_OTHERS and (ROOT / package / first).is_dir()
                yield str(here), match[1], f"{package}.{match[1]}" if is_ours else match[1]


@pytest.mark.parametrize("package", ["pulse", "streaming"])
def test_dotted_names_in_docstrings_exist(package: str) -> None:
    names = [*names_in_docstrings(package)]
    assert len(names) > 50
    assert [
        (module, name) for module, name, full in names if not is_known(full) and not is_file_of_a_user(name)
    ] == []
