"""Files that leave pyright's strict mode do not become more, and all of them have their attributes checked."""

from tests.sources import modules_in

MAX_FILES = 54
"""Modules that numba or an untyped package shapes. It may only fall."""


def test_relaxed_files_do_not_become_more() -> None:
    lines = [
        line
        for path in modules_in("pulse", "streaming")
        for line in path.read_text("utf-8").splitlines()
        if line.startswith("# pyright:")
    ]
    assert 0 < len(lines) <= MAX_FILES, "give types instead"
    assert not [line for line in lines if "reportAttributeAccessIssue" in line], "ignore single lines instead"
