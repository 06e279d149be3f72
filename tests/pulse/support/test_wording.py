"""Counts in messages agree with their nouns."""

import pytest

from pulse.dim import SymbolScope
from pulse.support.wording import choose_wording, count_of, span_of, use_spelling


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 frames"), (1, "1 frame"), (2, "2 frames"), (-1, "-1 frames"), (2400, "2400 frames")],
)
def test_a_noun_is_singular_for_one_alone(count: int, text: str) -> None:
    assert count_of(count, "frame") == text


def test_a_count_may_have_another_plural_and_form() -> None:
    assert count_of(1, "axis", "axes") == "1 axis"
    assert count_of(3, "axis", "axes") == "3 axes"
    assert count_of(2400, "frame", form=",") == "2,400 frames"


def test_a_count_may_depend_on_a_symbol() -> None:
    length = SymbolScope().symbol("T")
    assert count_of(2 * length, "frame") == "2*T frames"


def test_a_span_of_one_length_is_that_length() -> None:
    assert span_of(1, 4241) == "1 to 4,241 frames"
    assert span_of(3, 3) == "3 frames"
    assert span_of(1, 1) == "1 frame"


def test_advice_on_python_is_for_python() -> None:
    assert choose_wording("use pulse.load", "give the file") == "use pulse.load"
    with use_spelling(lambda parameter, _: f"--{parameter}"):
        assert choose_wording("use pulse.load", "give the file") == "give the file"
