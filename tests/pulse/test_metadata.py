"""Metadata of files: what they say is read back."""

import pytest

from pulse.metadata import Codes, codes_entry, read_codes


def test_codes_are_read_back_from_metadata() -> None:
    codes = Codes(0.10196078568696976, -128)
    metadata = dict([codes_entry("x y", codes)])
    assert read_codes(metadata, "x y") == codes
    assert read_codes(metadata, "x") is None


@pytest.mark.parametrize("text", ["", "0.1", "0.1 2.5", "a 3", "0.1 2 3"])
def test_an_unknown_entry_gives_no_codes(text: str) -> None:
    assert read_codes({"codes of x": text}, "x") is None
