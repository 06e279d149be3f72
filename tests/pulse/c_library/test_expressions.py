"""Lengths as C: each kind of expression calls functions that the library has, and gives the values of the dim."""

import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

import pulse.c_library
from pulse.c_library.expressions import expression
from pulse.dim.scope import SymbolScope

LENGTHS = ("3*T - 7", "(T + 3)/4", "max(0, T - 5)", "min(T, 40)", "max(1, min(2*T, T + 9)/3)", "(T >= 8)*T")
MAX_FRAMES = 64
HELPERS = re.compile(r"^static int64_t \w+_(?:div|i64)\(.*$", re.MULTILINE)


def helpers() -> str:
    """The functions of ``shell.c`` that compute lengths."""
    lines = HELPERS.findall((files(pulse.c_library) / "templates" / "shell.c").read_text("utf-8"))
    assert len(lines) == 4
    return "\n".join(lines)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc) is installed")
def test_lengths_in_c_are_those_of_the_dims(tmp_path: Path) -> None:
    scope = SymbolScope()
    symbol, dims = scope.symbol("T"), [scope.parse(text) for text in LENGTHS]
    texts = [expression(dim) for dim in dims]
    assert all(any(name in text for text in texts) for name in ("floor_div", "min_i64", "max_i64", ">="))
    prints = "".join(f'    printf("%lld ", (long long)({text}));\n' for text in texts)
    source, program = tmp_path / "lengths.c", tmp_path / "lengths"
    source.write_text(
        f"#include <stdint.h>\n#include <stdio.h>\n{helpers()}\n"
        f"int main(void) {{\n  for (int64_t n = 0; n <= {MAX_FRAMES}; n++) {{\n{prints}  }}\n  return 0;\n}}\n"
    )
    subprocess.run(
        ("cc", "-std=c99", "-Werror", "-Wno-unused-function", "-O1", source, "-o", program), check=True
    )
    output = subprocess.run((program,), check=True, capture_output=True, text=True).stdout
    expected = [dim.eval({symbol: frames}) for frames in range(MAX_FRAMES + 1) for dim in dims]
    assert [int(number) for number in output.split()] == expected
