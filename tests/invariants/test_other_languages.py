"""JavaScript and C keep the rules of Python: short lines, one statement each, short functions, names of the content."""

import re
from pathlib import Path

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


def test_names_say_what_they_hold() -> None:
    assert not {name_of(path): names for path, code in CODES.items() if (names := vague_names(code))}


def test_breaches_in_code_are_found_and_not_in_texts() -> None:
    code = code_of('a = 1; b = 2;\nlow = high, high *= 2;\nint a = 1, b = 2;\nf("a; b"); // a; b\nmade = x;')
    assert crowded_lines(code) == [1, 2]
    assert vague_names(code) == ["made"]
    assert body_lines("int f(int a) {\n  if (a) {\n    b();\n  }\n}") == {"int f(int a)": 3}
