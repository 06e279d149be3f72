"""Errors of unknown names."""

import pytest

from pulse.errors import InputError, LoadError
from pulse.support.naming import MAX_LISTED_NAMES, require_name, unknown_name


def test_a_known_name_is_returned() -> None:
    assert require_name("view", "encoder", ("encoder", "rest"), InputError) == "encoder"


def test_an_unknown_name_is_refused_with_the_place_and_the_names() -> None:
    with pytest.raises(LoadError, match=r"^a\.toml: unknown key 'q'; choose one of from, as$"):
        require_name("key", "q", ("from", "as"), LoadError, "a.toml")
    with pytest.raises(LoadError, match=r"^unknown key 'q'; there is none$"):
        require_name("key", "q", (), LoadError)


def test_a_similar_name_is_suggested() -> None:
    names = (f"wire {number}" for number in range(3))
    assert unknown_name("wire", "wire2", names) == (
        "unknown wire 'wire2' (did you mean wire 2?); choose one of wire 0, wire 1, wire 2"
    )


def test_many_names_are_counted() -> None:
    text = unknown_name("wire", "q", map(str, range(MAX_LISTED_NAMES + 5)))
    assert text.endswith(f", {MAX_LISTED_NAMES - 1} and 5 more")
