"""Words of public names are ordinary or in the glossary; names and texts keep the rules of words."""

import ast
import re
from collections.abc import Iterable, Mapping

import pytest

import pulse
import streaming
from tests.documents.pages import pages
from tests.documents.vocabulary import commands, docstrings, messages
from tests.sources import ROOT, modules_in, name_of, nodes_in, tree_of

MAX_TERMS = 40
TERM = re.compile(r"^\| ([a-z][a-z -]*) \|", re.MULTILINE)
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
CODE = re.compile(r"`+[^`]*`+")
TYPES = r"(b?f16|f32|f64|u?int8|int16|int32|int64)"
RULES = {
    "after, not behind; before, not in front of": r"\bbehind\b|\bin front\b",
    "continue or resume, not go on": r"\b(go(es|ne|ing)?|went) on\b",
    "minimum, smallest or lowest, not least as an adjective": r"\bleast\b",
    "no longer, not any more": r"\bany more\b",
    "bf16 weights, not weights of bf16": (
        rf"\b(weights|activations|codes|lanes|sums|rows|models) of {TYPES}\b(?! codes)"
    ),
    "16-bit samples, not samples of 16 bits": r"\bof \d+ bits\b",
    "a JACK server, not a server of JACK": (
        r"\b(clients?|devices?|files?|hosts?|inputs?|modules?|programs?|servers?|units?) of "
        r"(JACK|PortAudio|PyTorch|TorchScript|WebAssembly|sound|systemd)\b"
    ),
    "audio, a recording or a signal, not a sound": (
        r"\b(one|two|several|each|(a|another|new|longest|whole|short)( \w+)?) sounds?\b(?! (card|file|server)s?\b)"
    ),
    "choose one of a, b, not there are a, b": r"; there (is|are) …",
    "the caller or the user, not somebody; reported, not told": (
        r"\b(nobody|somebody|whoever|heard|(is|are) told(?! to\b))\b"
    ),
    "None if, not None where; if, not where there is": (
        r"None where\b|\bwhere (there|none|nothing|either|neither) (is|are)\b"
    ),
    "this many, not so many": r"\bso (many|much|few|long)\b(?!( \w+)? that\b)",
    "as in, not as of": r"\bas of\b",
    "the time axis, not the axis of time or of frames": r"\baxis of (time|frames)\b",
    "quantised, not quantized": r"(?<![\w-])quantiz(ed|es|ing)\b",
}
"""Rule of words in CONTRIBUTING -> pattern of excluded text."""
REAL_MEANINGS = re.compile(
    r"\b(leaves?|left|lags?|falls?|furthest|ever further) (\w+ )?behind\b"
    r"|\bbehind (an?|its|one|the) (WebSocket|commands|input|interface)\b|\bis behind row\b|\bthe\s+table behind it\b"
    r"|\bat\s+least\b|\bleast common multiple\b|\badvanced the\s+least\b"
    r"|\ba sound (card|server)s?\b|\bany more than\b",
    re.IGNORECASE,
)
"""Uses of these words that mean what they say."""
FIXED_WORDS = {
    # "weights of f32" is in program files
    *("streaming/reports/compilation.py", "pulse/program/file/proof_note.py"),
    "pulse/pulsify/bands/pattern.py",  # has a field "behind"
}
"""Files with such words in a format or a name."""

FIRST_LINES = re.compile(r"\A(Of|That of|Those of|For JSON|Another type)\b|\AIt,|Raises \w+(, \w+)* where\b")
"""First lines of docstrings that are read only after another docstring, and where for if."""

FRAGMENTS = re.compile(r"\A(It|Then|As|What|So|Also|Although)\b")
"""First words of docstrings that are read only after the name above them."""
PREPOSITIONS = re.compile(r"\A(To|From|With|Without|For|Of|In|By)\b")
"""Other such first words."""

DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def parts(names: Iterable[str]) -> set[str]:
    """The words of names, in lower case: ``PulseError`` and ``--pulse-error`` are pulse and error."""
    return {word.lower() for name in names for word in WORD.findall(name) if len(word) > 1}


def terms() -> list[str]:
    """The first column of the table in the glossary."""
    return [term for term in TERM.findall(pages()["docs/glossary.md"].text) if term != "term"]


def singular(words: Iterable[str]) -> set[str]:
    """Words without endings, as in the glossary: ``chunking`` is chunk, ``frames`` is frame."""
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
    assert not ordinary - public, "no name has these words now: take them off the list"


def broken_rules(texts: Mapping[str, str]) -> list[str]:
    """The violations of rules in texts: file, rule and words."""
    return [
        f"{name}: {rule}: {match.group()}"
        for name, text in texts.items()
        if name not in FIXED_WORDS
        for prose in (REAL_MEANINGS.sub("", CODE.sub("", text)),)
        for rule, pattern in RULES.items()
        for match in re.finditer(pattern, prose, re.IGNORECASE)
    ]


@pytest.mark.parametrize("folder", ["pulse", "streaming", "bench", "demos", "tests"])
def test_docstrings_keep_the_rules_of_words(folder: str) -> None:
    texts = docstrings(folder)
    assert broken_rules(texts) == []
    assert not [name for name, text in texts.items() if FIRST_LINES.search(text)]


@pytest.mark.parametrize("folder", ["pulse", "streaming", "bench", "demos"])
def test_messages_keep_the_rules_of_words(folder: str) -> None:
    assert broken_rules(messages(folder)) == []


def test_pages_keep_the_rules_of_words() -> None:
    stating = {"CONTRIBUTING.md", "CHANGELOG.md"}
    assert broken_rules({name: page.prose for name, page in pages().items() if name not in stating}) == []


def test_contributing_states_the_rules_of_words() -> None:
    text = " ".join(pages()["CONTRIBUTING.md"].text.split())
    assert [rule for rule in RULES if rule not in text] == []


def test_docstrings_of_tests_begin_as_sentences() -> None:
    nodes = [(path, node) for path in modules_in("tests") for node in nodes_in(tree_of(path))]
    texts = [(path, ast.get_docstring(node) or "") for path, node in nodes if isinstance(node, DOCUMENTED)]
    assert len(texts) > 5000
    assert not [f"{path}: {text}" for path, text in texts if FRAGMENTS.match(text)]
    assert not [f"{path}: {text}" for path, text in texts if PREPOSITIONS.match(text)]


def test_names_of_tests_keep_the_rules_of_words() -> None:
    names = {
        f"{name_of(path)}: {node.name}": node.name.replace("_", " ")
        for path in modules_in("tests")
        for node in nodes_in(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }
    assert len(names) > 1500
    assert broken_rules(names) == []
