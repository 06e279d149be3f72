"""JavaScript and C keep the rules of Python: short lines, one statement each, short functions, names of the content."""

import re
from pathlib import Path

import pytest

from tests.invariants.limits import FOLDERS, MAX_BODY_LINES, MAX_COLUMNS, VAGUE
from tests.sources import ROOT, name_of

LANGUAGES = (".c", ".h", ".js", ".mjs", ".ts")
MARKUP = (".css", ".html")

TEXTS = re.compile(
    r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | `(?:\\.|[^`\\])*`""",
    re.DOTALL | re.VERBOSE,
)
"""Matches comments and strings."""
BRACKETS = re.compile(r"\([^()]*\)|\[[^][]*\]|\{[^{}]*\}")
NO_FUNCTION = re.compile(r" *(?:\} )?(?:catch|class|else|export class|for|if|switch|while)\b")
"""The beginning of a line whose brace opens something else."""
DECLARATIONS = re.compile(r" *(?:const|let|var) \w+(?: = .*)?, \w+(?: =|;|,)")
ASSIGNMENTS = re.compile(r" *(?:(?:else|for|if|while) +)*[\w>.*-]+ [-+*/|&]?= .*, [\w>.*-]+ [-+*/|&]?= ")
CASTS = re.compile(r" *\(void\)\w+, ")


def files_in(*endings: str) -> list[Path]:
    return [
        path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in endings
    ]


def code_of(text: str) -> str:
    """A text without its comments, and with empty strings; the lines stay."""

    def placeholder(match: re.Match[str]) -> str:
        lines = "\n" * match[0].count("\n")
        return lines if match[0].startswith("/") else f'""{lines}'

    return TEXTS.sub(placeholder, text)


CODES = {path: code_of(path.read_text("utf-8")) for path in files_in(*LANGUAGES)}


def crowded_lines(code: str) -> list[int]:
    """The numbers of the lines with several statements: divided by semicolons, or by commas of C or ``const``."""
    numbers: set[int] = set()
    opened: list[str] = []
    for number, line in enumerate(code.splitlines(), 1):
        for index, char in enumerate(line):
            if char in "([{":
                opened.append(char)
            elif char in ")]}" and opened:
                opened.pop()
            elif char == ";" and opened[-1:] in ([], ["{"]) and line[index + 1 :].strip(" };,)"):
                numbers.add(number)
        bare = line
        while bare != (bare := BRACKETS.sub("", bare)):
            pass
        if DECLARATIONS.match(bare) or ASSIGNMENTS.match(bare) or CASTS.match(line):
            numbers.add(number)
    return sorted(numbers)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("a = 1; b = 2;", [1]),
        ("if (x) { a(); b(); }", [1]),
        ("f(() => { a(); b(); });", [1]),
        ("low = high, high *= 2;", [1]),
        ("if (x) wait[1] = f(a, b), all->count = 2;", [1]),
        ("(void)path, (void)host;", [1]),
        ("const a = 1, b = 2;", [1]),
        ("let a, b = 2;", [1]),
        ("int a = 1, b = 2;\nfor (a = 0, b = 1; a < b; ++a) f(a);", []),
        ('static int f(void) { return 1; } /* one; two */\ng("a; b"); // a; b', []),
        ("const f = (x, y = 1) => x;\nconst { a, b = 1 } = x;\nf(a, (b) => {\n  g();\n});", []),
    ],
)
def test_lines_with_several_statements_are_found(text: str, numbers: list[int]) -> None:
    assert crowded_lines(code_of(text)) == numbers


def test_a_line_has_one_statement() -> None:
    statements = {
        path: code for path, code in CODES.items() if path.suffix != ".ts"
    }  # types have semicolons too
    wrong = {name_of(path): numbers for path, code in statements.items() if (numbers := crowded_lines(code))}
    assert not wrong


def test_lines_are_short() -> None:
    files = files_in(*LANGUAGES, *MARKUP)
    assert {path.suffix for path in files} == {*LANGUAGES, *MARKUP}
    wrong = [
        f"{name_of(path)}:{number}: {len(line)} columns"
        for path in files
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if len(line) > MAX_COLUMNS
    ]
    assert not wrong


def body_lines(code: str) -> dict[str, int]:
    """The lines in the braces of each function, by the line that opens them."""
    lengths: dict[str, int] = {}
    opened: list[int] = []
    for index, char in enumerate(code):
        if char == "{":
            opened.append(index)
        elif char == "}":
            begin = opened.pop()
            head = code[:begin].rpartition("\n")[2]
            if head.rstrip().endswith((")", "=>")) and not NO_FUNCTION.match(head):
                lengths[head.strip()] = max(0, code.count("\n", begin, index) - 1)
    assert not opened
    return lengths


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("int f(int a,\n      int b) {\n  if (a) {\n    b();\n  }\n}", {"int b)": 3}),
        ('class A {\n  get b() {\n    return "{";\n  }\n}', {"get b()": 1}),
        ("export class A extends (B ?? C) {\n  d = 1;\n}\nif (x) {\n  y();\n}", {}),
        ("const f = (x) => {\n  x();\n\n};\nstruct a {\n  int b;\n};", {"const f = (x) =>": 2}),
    ],
)
def test_lines_of_functions_are_counted(text: str, lengths: dict[str, int]) -> None:
    assert body_lines(code_of(text)) == lengths


def test_script_functions_are_short() -> None:
    lengths = {
        f"{name_of(path)}: {head}": lines
        for path, code in CODES.items()
        for head, lines in body_lines(code).items()
    }
    assert len(lengths) > 200
    assert not {name: lines for name, lines in lengths.items() if lines > MAX_BODY_LINES}


def vague_names(code: str) -> list[str]:
    return [word for word in re.findall(r"\w+", code) if word.strip("_") in VAGUE]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("void *made = x; /* of what is given */", ["made"]),
        ("this.asked = []; // for each", ["asked"]),
        ('f((each) => each.x, "found");', ["each", "each"]),
        ("framesMade = `got ${count}`;", []),
    ],
)
def test_vague_names_are_listed(text: str, names: list[str]) -> None:
    assert vague_names(code_of(text)) == names


def test_names_say_what_they_hold() -> None:
    assert not {name_of(path): names for path, code in CODES.items() if (names := vague_names(code))}
