"""Each case of a test says what it is: a value without a short text is refused, where pytest would give it a number."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.case_ids import MAX_CHARACTERS
from tests.sources import ROOT


def id_in(config: pytest.Config, value: object) -> str:
    """The text that pytest gives it in a case of any test."""
    return config.hook.pytest_make_parametrize_id(config=config, val=value, argname="value")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((1, 2.5, None), "(1,2.5,None)"),
        ([["--rate", 8000], ()], "[[--rate,8000],()]"),
        ({"pads": [1, 2], "mode": "edge"}, "{pads=[1,2],mode=edge}"),
        ({"b", "a"}, "{a,b}"),
        ("", "''"),
        (b"a\0", r"a\x00"),
        (np.zeros((2, 3), np.float32), "float32[2,3]"),
        (np.float32, "float32"),
        (partial(np.zeros, (2, 3), dtype="f4"), "zeros((2,3),dtype=f4)"),
        (Path("a/b"), "a/b"),
        (re.compile("a+"), "a+"),
        (..., "..."),
    ],
)
def test_the_id_of_a_value_shows_what_is_in_it(pytestconfig: pytest.Config, value: Any, text: str) -> None:
    assert id_in(pytestconfig, value) == text


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(lambda: 0, id="function"),
        pytest.param(object(), id="object"),
        pytest.param([{"key": object()}], id="object in containers"),
        pytest.param("x" * (MAX_CHARACTERS + 1), id="long text"),
    ],
)
def test_a_value_without_a_short_text_needs_an_id(pytestconfig: pytest.Config, value: object) -> None:
    with pytest.raises(pytest.Collector.CollectError, match="give its case an id"):
        id_in(pytestconfig, value)


@pytest.mark.slow
@pytest.mark.skipif(
    pytest.version_tuple < (9,), reason="older versions of pytest number equal ids in silence"
)
def test_no_two_cases_of_a_test_have_the_same_id() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-m", "slow or not slow"]
    option = ["-o", "strict_parametrization_ids=true"]
    process = subprocess.run([*command, *option], cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout[-5000:]
