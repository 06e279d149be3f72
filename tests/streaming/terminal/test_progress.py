"""A bar of progress fits into one line of the terminal."""

import io
from itertools import count

import pytest

from streaming.terminal import output, progress
from streaming.terminal.output import Terminal


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_long_title_keeps_its_ends_and_its_bar(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    monkeypatch.setattr(
        output, "terminal", lambda **_: Terminal(file=text, force_terminal=True, width=columns)
    )
    monkeypatch.setattr(progress, "monotonic", count().__next__)
    with progress.progress(f"{'long' * 100}.wav -> out.wav") as advance:
        advance(1, 2)
        advance(2, 2)
    shown = text.getvalue()
    assert "longlong" in shown
    assert "…" in shown
    assert "out.wav" in shown
    assert "100 %" in shown
    assert "\n\n" not in shown
