"""Every word of the public names is ordinary or in the glossary, and words of a private dialect stay away."""

import ast
import re
from collections.abc import Iterable

import pulse
import streaming
from tests.documents.pages import ROOT, pages
from tests.documents.vocabulary import commands, definitions, docstrings
from tests.sources import modules_in, nodes_in, tree_of

MAX_TERMS = 40
TERM = re.compile(r"^\| ([a-z][a-z -]*) \|", re.MULTILINE)
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
DIALECT = {
    *("room", "rooms", "waves", "voices", "obey", "obeys", "wish", "wishes", "witness", "debt", "laws"),
    *("attended", "settled", "intake", "uncopied", "placer", "heard"),
}
"""Words that once named something of this project's own; the field has others."""
PHRASES = re.compile(
    r"\b(nobody|somebody|whoever|rooms?|heard|(is|are) told|None where|where there (is|are) (none|no)\b|as of ``)"
    r"|\A(Of|That of|Those of|For JSON|Another type)\b|\AIt,|one behind the other|Raises \w+(, \w+)* where\b"
    r"|where (there|none|nothing|either|neither) (is|are)\b"
    r"|\bso (many|much|few|long)\b(?!( \w+)? that\b)",
    re.IGNORECASE,
)
"""What docstrings once said in place of: unknown, unread, the caller, space, reported, None if, as in, this many;
first lines that are read only after another docstring; where for if, behind for after."""

TALES = re.compile(r"\b(nobody|somebody|whoever|anew|heard|(is|are) told(?! to\b))\b", re.IGNORECASE)
"""Words that docstrings of tests once had, as if there were persons in the runtime."""

FRAGMENTS = re.compile(r"\A(It|Then|As|What|So|Also|Although)\b")
"""First words of docstrings that are read only after the name above them."""

DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def parts(names: Iterable[str]) -> set[str]:
    """The words of names, in lower case: ``PulseError`` and ``--pulse-error`` are pulse and error."""
    return {word.lower() for name in names for word in WORD.findall(name) if len(word) > 1}


def terms() -> list[str]:
    """The terms of the glossary."""
    return [term for term in TERM.findall(pages()["docs/glossary.md"].text) if term != "term"]


def singular(words: Iterable[str]) -> set[str]:
    """The words as the glossary has them: ``chunking`` is of chunk, ``frames`` of frame."""
    return {re.sub(r"(s|ing)$", "", word) for word in words}


def test_the_glossary_is_short_sorted_and_linked() -> None:
    assert 20 < len(terms()) <= MAX_TERMS
    assert terms() == sorted(terms())
    for name in ("README.md", "ARCHITECTURE.md"):
        assert "docs/glossary.md" in pages()[name].links()


def test_public_names_are_ordinary_or_explained() -> None:
    options = {
        name for command, options_of_command in commands().items() for name in (command, *options_of_command)
    }
    public = parts([*pulse.__all__, *streaming.__all__, *options])
    ordinary = set((ROOT / "tests/documents/ordinary_words.txt").read_text("utf-8").split())
    explained = singular(parts(terms()))
    assert not {word for word in public - ordinary if not singular([word]) & explained}
    assert not ordinary - public, "no name has these words any more: take them off the list"


def test_no_word_of_a_dialect_comes_back() -> None:
    code = {name for folder in ("pulse", "streaming", "bench") for name in definitions(folder)}
    names = {name for name in code if parts([name]) & DIALECT}
    pattern = re.compile(rf"\b({'|'.join(sorted(DIALECT))})\b", re.IGNORECASE)
    texts = {name: matches for name, page in pages().items() if (matches := pattern.findall(page.prose))}
    assert not names
    assert not texts


def test_docstrings_are_free_of_a_dialect() -> None:
    texts = {
        name: text for folder in ("pulse", "streaming", "bench") for name, text in docstrings(folder).items()
    }
    assert len(texts) > 500
    assert not {name: match.group() for name, text in texts.items() if (match := PHRASES.search(text))}


def test_docstrings_of_tests_have_no_history() -> None:
    texts = docstrings("tests")
    assert len(texts) > 500
    assert not {name: match.group() for name, text in texts.items() if (match := TALES.search(text))}


def test_docstrings_of_tests_have_no_phrases_of_a_dialect() -> None:
    texts = docstrings("tests")
    assert not {name: match.group() for name, text in texts.items() if (match := PHRASES.search(text))}


def test_docstrings_of_tests_begin_as_sentences() -> None:
    nodes = [(path, node) for path in modules_in("tests") for node in nodes_in(tree_of(path))]
    texts = [(path, ast.get_docstring(node) or "") for path, node in nodes if isinstance(node, DOCUMENTED)]
    assert len(texts) > 5000
    beginnings = [f"{path}: {text}" for path, text in texts if FRAGMENTS.match(text)]
    assert not beginnings
